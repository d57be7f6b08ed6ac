/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{e as x}from"./chunk-E2QJGZ27.js";import{K as $,P as o,Y as h,Z as w,c as p,d as u,f,la as D,n as v,o as m,oa as C,p as g,qa as c,va as b,xa as O}from"./chunk-LZR44I4I.js";import{i as d,l as i}from"./chunk-IAONOKGE.js";var y=76,l=d(null);function T(){return i`<div class="flow">${w.value.map((e,t)=>i`<${H} key=${t} column=${h[t]} tasks=${e} />`)}</div>`}function H({column:e,tasks:t}){let s=a=>$.value&&(a.preventDefault(),l.value=e.title),n=a=>{a.preventDefault(),l.value=null,x(a.dataTransfer.getData("text/plain"),e.to)},r=t.findIndex(a=>a.id===o.value);return i`<section class=${`column${l.value===e.title?" over":""}`} onDragOver=${s}
    onDragLeave=${()=>l.value=null} onDrop=${n}>
    <h2>${e.title} <span class="count">${t.length.toLocaleString()}</span></h2>
    <${O} items=${t} size=${y} active=${r} class="stack" role="listbox" aria-label=${e.title}
      aria-activedescendant=${r<0?void 0:`t-${o.value}`}>
      ${(a,S)=>i`<${I} key=${a.id} task=${a} index=${S} count=${t.length} />`}
    <//>
  </section>`}function I({task:e,index:t,count:s}){let n=o.value===e.id,r=D(e);return i`<div id=${`t-${e.id}`} class=${`chip${n?" here":""}`} role="option"
    aria-selected=${n?"true":"false"} aria-posinset=${t+1} aria-setsize=${s}
    draggable=${$.value?"true":"false"}
    onDragStart=${a=>a.dataTransfer.setData("text/plain",e.id)}
    onClick=${()=>u({...p.value,task:e.id},{trail:!1})}>
    <p class="t">${r&&i`<b aria-hidden="true" class=${`p-${e.priority}`}>${r}</b> `}
      <${c} of=${e.title} /><${b} of=${e} waits /></p>
    <p class="facts"><${C} state=${m(e)} /><span class="id">#${e.id}</span>
      ${e.waits_for&&i`<span class="waits" aria-hidden="true">waits for ${f(g(e))}</span>`}
      ${e.owner&&i`<${c} class="owner" of=${v(e)} />`}</p>
  </div>`}export{T as default};
