/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as k}from"./chunk-B67QXF7G.js";import{L as m,_ as w,g,sa as C}from"./chunk-DB5ATF4C.js";import{b as $,d as v,e as x,i as y,l as n,y as b}from"./chunk-OD44XGYS.js";var d=y(null);function H({task:e,member:o,label:i,kind:l="line",children:s}){return d.value===`${e.id} ${o}`?n`<${P} task=${e} member=${o} label=${i} kind=${l} />`:n`<div class="in-place">${s}${w.value&&n`<button class="text" aria-label=${`Edit the ${i}`}
    onClick=${()=>d.value=`${e.id} ${o}`}>edit</button>`}</div>`}function P({task:e,member:o,label:i,kind:l}){let[s,E]=$({text:e[o]??"",version:e.version}),[r,K]=$(s.text),[c,f]=$(null),u=x(null);v(()=>{u.current.focus(),u.current.setSelectionRange?.(r.length,r.length)},[]);let a=()=>d.value=null,p=async()=>{if(r===s.text)return a();try{let t={[o]:r||null,task_version:s.version},D=await b("PATCH",C(e.id),t);a(),k(`Edited #${e.id}: ${i}`,[D])}catch(t){t.kind==="version_conflict"?f({text:e[o]??"",version:t.facts.actual}):m(t.message,"bad")}},T=()=>{E(c),f(null),u.current.focus()},h={ref:u,value:r,"aria-label":i,onKeyDown:t=>{t.isComposing||(t.key==="Escape"&&(t.preventDefault(),t.stopPropagation(),a()),t.key==="Enter"&&(l==="line"||t.ctrlKey||t.metaKey)&&(t.preventDefault(),p()))},onInput:t=>K(t.currentTarget.value)};return n`<div class="in-place editor">
    ${l==="line"?n`<input type="text" maxlength="500" ...${h} />`:n`<textarea rows="6" maxlength="65536" ...${h}></textarea>`}
    ${c&&n`<div class="note bad" role="alert"><h3>It was changed while you wrote</h3>
      <p class="source">${g(c.text)}</p>
      <button onClick=${T}>Keep mine</button> <button onClick=${a}>Take theirs</button></div>`}
    ${!c&&n`<div class="row-buttons"><button class="primary" onClick=${p}>Save</button>
      <button onClick=${a}>Cancel</button></div>`}
  </div>`}export{d as a,H as b};
