/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{b as M,c as z,d as L}from"./chunk-JLJ4HU2R.js";import"./chunk-BILQ7APC.js";import"./chunk-JTC77UJH.js";import"./chunk-OUQ3P2J5.js";import"./chunk-4GEH7PW4.js";import{c as D,d as C,e as u,f as S,k as T,l as y,n as I}from"./chunk-R6VQCR7I.js";import"./chunk-4PHI2A4W.js";import"./chunk-D6VCSTRL.js";import{E as b,I as x}from"./chunk-EOHURGU6.js";import"./chunk-3OLJYULV.js";import{_ as c,c as f,d as m,ea as r,la as d,t as v,u as g,y as h,za as w}from"./chunk-IALAHY4L.js";import{i as p,l as o}from"./chunk-OD44XGYS.js";var F=100,$=p(null),_=e=>m({...f.value,task:e},{trail:!1});function H(){return o`<div class="flow">${d.value.map(e=>o`<${R} key=${e.title} column=${e} />`)}</div>`}function R({column:{title:e,to:i,tasks:l}}){let s=n=>c.value&&i&&(n.preventDefault(),$.value=e),t=n=>{n.preventDefault(),$.value=null,b(n.dataTransfer.getData("text/plain"),i)},a=l.findIndex(n=>n.id===r.value);return o`<section class=${`column${$.value===e?" over":""}`} onDragOver=${s}
    onDragLeave=${()=>$.value=null} onDrop=${t}>
    <h2>${e} <span class="count">${l.length.toLocaleString()}</span></h2>
    <${I} items=${l} size=${F} active=${a} class="stack" role="listbox" aria-label=${e}
      aria-activedescendant=${a<0?void 0:`t-${r.value}`}>
      ${(n,B)=>o`<${A} key=${n.id} task=${n} index=${B} count=${l.length} />`}
    <//>
  </section>`}function A({task:e,index:i,count:l}){let s=r.value===e.id,t=w(e),a=L(e);return o`<div id=${`t-${e.id}`} class=${`chip${s?" here":""}`} role="option"
    aria-selected=${s?"true":"false"} aria-posinset=${i+1} aria-setsize=${l}
    draggable=${c.value?"true":"false"}
    onDragStart=${n=>n.dataTransfer.setData("text/plain",e.id)}
    onClick=${()=>_(e.id)}>
    <p class="t">${t&&o`<b aria-hidden="true" class=${`p-${e.priority}`}>${t}</b> `}
      <${u} of=${e.title} /><${y} of=${e} waits /></p>
    <p class="facts"><${z} of=${e} />
      ${a&&o`<span class="waits" aria-hidden="true">waits for ${a}</span>`}
      ${!h(e)&&e.labels?.length>0&&o`<${M} of=${e.labels} />`}</p>
    <p class="facts"><${D} state=${g(e)} /><span class="id">#${e.id}</span><${T} of=${e} />
      ${e.owner&&o`<span class="held-by"><${S} of=${e.owner} size="small" />
        <${u} class="owner" of=${v(e).slice(1)} /></span>`}
      <span class="age"><${C} at=${e.status_changed_at} /></span></p>
  </div>`}var O=e=>()=>{let i=d.value.map(({tasks:a})=>a).filter(a=>a.length),l=i.findIndex(a=>a.some(n=>n.id===r.value)),s=Math.max(0,i[l]?.findIndex(a=>a.id===r.value)??0),t=i[l<0?0:l+e];t&&_(t[Math.min(s,t.length-1)].id)};x("list/flow",{left:{run:O(-1)},right:{run:O(1)}});export{H as default};
