/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{i as m,j as u,l as f}from"./chunk-DOUKHA6Y.js";import"./chunk-L4KXB44Y.js";import{e as $}from"./chunk-R6VQCR7I.js";import{A as l}from"./chunk-EOHURGU6.js";import{d as c}from"./chunk-3OLJYULV.js";import{X as a,_ as n,g as i,l as r}from"./chunk-IALAHY4L.js";import{l as t}from"./chunk-OD44XGYS.js";var p=400,v=({event:{task:o,blocker:e}},s)=>o===s||o?.id===s||e===s;function h({task:o}){queueMicrotask(m);let e=(u.value??[]).filter(s=>v(s,o)).toReversed();return t`<ol class="story">${e.slice(0,p).map(s=>t`<${b} key=${s.seq} entry=${s} />`)}</ol>`}var b=({entry:o})=>t`<li class=${a.value.to===o.version?"here":""}>
  <button title=${`Version ${o.version}: show the list as it was`}
    onClick=${()=>l({to:o.version})}>
    <span class="when">${r(o.at)}</span><span class="said"><${f} of=${o.event} /></span>
    <${$} class="owner" of=${o.actor} />
  </button>
  ${n.value&&t`<button class="quiet" title=${`Undo this change by ${i(o.actor)}`}
    aria-label=${`Undo version ${o.version}`} onClick=${()=>c(o)}>↶</button>`}</li>`;export{h as default};
