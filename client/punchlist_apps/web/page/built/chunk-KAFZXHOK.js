/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as P}from"./chunk-3OLJYULV.js";import{L as T,_ as K,g as E,sa as h,ua as D}from"./chunk-IALAHY4L.js";import{b as p,d as w,e as k,i as C,l as n,y as v}from"./chunk-OD44XGYS.js";var x=C(null);function j({task:e,member:o,label:s,kind:c="line",children:i}){return x.value===`${e.id} ${o}`?n`<${_} task=${e} member=${o} label=${s} kind=${c} />`:n`<div class="in-place">${i}${K.value&&n`<button class="text" aria-label=${`Edit the ${s}`}
    onClick=${()=>x.value=`${e.id} ${o}`}>edit</button>`}</div>`}function _({task:e,member:o,label:s,kind:c}){let[i,I]=p({text:e[o]??"",version:e.version}),[r,S]=p(i.text),[u,y]=p(null),d=k(null);w(()=>{d.current.focus(),d.current.setSelectionRange?.(r.length,r.length)},[]);let a=()=>x.value=null,b=async t=>{try{let f={[o]:r||null,task_version:t},l=await v("PATCH",h(e.id),f);a(),P(`Edited #${e.id}: ${s}`,[l])}catch(f){if(f.kind!=="version_conflict")return T(f.message,"bad");let l=await D(()=>v("GET",h(e.id)));if(!l)return;let $={text:l.task[o]??"",version:l.task.version};$.text===i.text?await b($.version):y($)}},g=()=>r===i.text?a():b(i.version),R=()=>{I(u),y(null),d.current.focus()},m={ref:d,value:r,"aria-label":s,onKeyDown:t=>{t.isComposing||(t.key==="Escape"&&(t.preventDefault(),t.stopPropagation(),a()),t.key==="Enter"&&(c==="line"||t.ctrlKey||t.metaKey)&&(t.preventDefault(),g()))},onInput:t=>S(t.currentTarget.value)};return n`<div class="in-place editor">
    ${c==="line"?n`<input type="text" maxlength="500" ...${m} />`:n`<textarea rows="6" maxlength="65536" ...${m}></textarea>`}
    ${u&&n`<div class="note bad" role="alert"><h3>It was changed while you wrote</h3>
      <p class="source">${E(u.text)}</p>
      <button onClick=${R}>Keep mine</button> <button onClick=${a}>Take theirs</button></div>`}
    ${!u&&n`<div class="row-buttons"><button class="primary" onClick=${g}>Save</button>
      <button onClick=${a}>Cancel</button></div>`}
  </div>`}export{x as a,j as b};
