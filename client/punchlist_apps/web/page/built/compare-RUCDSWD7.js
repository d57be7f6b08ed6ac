/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as T,b as q}from"./chunk-PN67PNZI.js";import{b as R,c as i,d as z,e as G,k as H}from"./chunk-O7LX4QH6.js";import"./chunk-PF7GWB5L.js";import{a as k,c as D,e as d,f as E,n as L}from"./chunk-KQ67PHBF.js";import{I as O,w as b}from"./chunk-LEMMXRVP.js";import"./chunk-B67QXF7G.js";import{V as w,X as c,Y as S,c as C,d as M,ea as W,l as I,u as m}from"./chunk-DB5ATF4C.js";import{d as x,i as y,j as p,l}from"./chunk-OD44XGYS.js";var F=matchMedia("(pointer: coarse)").matches?48:34,v=y(null),h=p(()=>{w.value;let t=c.value.to===null?w.value?.rows:S.value?.rows;return b.value&&t?z(b.value.rows,t):null}),$=p(()=>{let t=[],e=null;for(let s of h.value??[])v.value!==null&&s.group!==v.value||(s.group!==e?.head&&t.push(e={head:s.group,count:0,key:`g${s.group}`}),e.count++,t.push({...s,key:`${s.group} ${s.task.id}`}));return t}),A=p(()=>{let{from:t,to:e}=c.value,s=new Map;for(let n of H.value)if(!(n.version<=t||e!==null&&n.version>e))for(let{id:o}of n.lines)s.set(o,n);return s}),N=t=>M({...C.value,task:t},{trail:!1}),u=t=>()=>{let e=$.value.filter(o=>o.task),s=e.findIndex(o=>o.key===r.value),n=e[s<0?0:Math.min(e.length-1,Math.max(0,s+t))];n&&(r.value=n.key)},r=y(null),J=()=>{let t=$.value.find(({key:e})=>e===r.value);t&&N(t.task.id)};O("list/compare",{down:{run:u(1),list:!0},up:{run:u(-1),list:!0},first:{run:u(-1/0),list:!0},last:{run:u(1/0),list:!0},page_down:{run:u(12),list:!0},page_up:{run:u(-12),list:!0},open:{run:J,list:!0}});function K(){let t=i.map((s,n)=>h.value.filter(({group:o})=>o===n).length),e=({value:s,count:n,children:o})=>l`<button class="chip-button"
    aria-pressed=${v.value===s?"true":"false"} onClick=${()=>v.value=s}>
    ${o} <b>${n.toLocaleString()}</b></button>`;return l`<div class="tools past-chips" role="group" aria-label="Differences">
    <b>version ${c.value.from} → ${c.value.to??"now"}</b>
    <${e} value=${null} count=${h.value.length}>all<//>
    ${i.map(([s],n)=>t[n]>0&&l`<${e} key=${s} value=${n} count=${t[n]}>${s}<//>`)}
  </div>`}function Q(){let t=$.value.findIndex(e=>e.key===r.value);return x(()=>{t>=0&&!document.activeElement.closest("dialog, input, .strip")&&document.querySelector(".change.here")?.focus({preventScroll:!0})},[r.value,t]),h.value?l`<${K} />
    ${$.value.length?l`<${L} items=${$.value} size=${F} active=${t} class="rows" role="list" aria-label="Differences">
          ${e=>l`<${V} key=${e.key} item=${e} />`}<//>`:l`<p class="hush">No task differs between these two versions.</p>`}`:l`<p class="hush" role="status">Reading both versions…</p>`}var B={height:`${F}px`};function V({item:{head:t,count:e,key:s,group:n,task:o,before:g}}){if(!o){let[U,,j]=i[t];return l`<div role="listitem" class=${`group-head g-${j}`} style=${B}>
      ${U} <span class="count">${e.toLocaleString()}</span></div>`}let[,a,_]=i[n],f=A.value.get(o.id),P=r.value===s||W.value===o.id;return l`<div role="listitem" style=${B}><button class=${`change g-${_}${P?" here":""}`}
    onClick=${()=>N(o.id)} onFocus=${()=>r.value=s}>
    <span class="sign" aria-hidden="true">${a}</span><span class="id">#${o.id}</span>
    <${D} state=${m(o)} /><span class="cut"><${X} group=${_||i[n][0]} task=${o} before=${g} /></span>
    <span class="actor">${f&&l`<${E} of=${f.actor} size="small" /><${d} class="cut" of=${f.actor} />`}</span>
    <time>${I(f?.at??o.updated_at)}</time></button></div>`}function X({group:t,task:e,before:s}){let n=s?G(s,e).filter(a=>a!=="title"):[],o={failed:e.fail_reason,completed:e.result_summary,asks:e.result_summary}[t],g=t==="Reworded"&&s.title!==e.title;return l`${g?l`<${T} before=${s.title} after=${e.title} />`:l`<${d} of=${e.title} />`}
    ${o&&l` <${d} class=${t==="failed"?"bad":"hush"} of=${o} />`}
    ${t==="Other states"&&l` <span class="hush">${k[m(s)]} → ${k[m(e)]}</span>`}
    ${["Reworded","Moved","Waits changed"].includes(t)&&n.map(a=>l` <${q} key=${a} name=${a}
      before=${R(a,s)} after=${R(a,e)} />`)}`}export{Q as default};
