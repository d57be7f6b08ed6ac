/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{c as H,e as h}from"./chunk-KQ67PHBF.js";import{a as E}from"./chunk-MRBJGJFD.js";import{a as j}from"./chunk-B67QXF7G.js";import{$ as m,V as A,sa as S,u as T,ua as _,wa as k,y as D}from"./chunk-DB5ATF4C.js";import{b as f,d as C,e as x,l,y as M}from"./chunk-OD44XGYS.js";var W=60;function B(o,n,d){let a=new Map([[d,null]]);for(let i of a.keys()){if(i===n){let e=[];for(let u=i;u!==null;u=a.get(u))e.push(`#${u}`);return[...e,`#${n}`].join(" \u2192 ")}for(let e of o.get(i)?.blocked_by??[])a.has(e)||a.set(e,i)}return""}function F({id:o}){A.value;let{tasks:n}=m.value,d=n.get(o),[a,i]=f(""),[e,u]=f(d?.blocked_by??[]),[L,p]=f(0),y=x(null);if(C(()=>y.current.focus({preventScroll:!0}),[]),!d)return l`<p role="alert">This task was deleted.</p>`;let N=a.toLowerCase().split(/\s+/).filter(Boolean),O=t=>N.every(s=>`#${t.id} ${t.title}`.toLowerCase().includes(s)),g=t=>e.includes(t.id)?0:D(t)?2:1,r=m.value.sorted().filter(t=>t.id!==o&&O(t)).sort((t,s)=>g(t)-g(s)).slice(0,W).map(t=>({other:t,circle:e.includes(t.id)?"":B(n,o,t.id)})),c=Math.min(L,r.length-1),$=({other:t,circle:s})=>{s||u(e.includes(t.id)?e.filter(b=>b!==t.id):[...e,t.id])},w=async()=>{let t=E(d.blocked_by??[],e);if(k(),!Object.keys(t).length)return;let s=await _(()=>M("PATCH",S(o),t));s&&j(`#${o} waits for ${e.map(b=>`#${b}`).join(" ")||"nothing"}`,[s])},v={ArrowDown:()=>p(Math.min(r.length-1,c+1)),ArrowUp:()=>p(Math.max(0,c-1))," ":()=>r[c]?$(r[c]):null,Enter:()=>{if(!a.trim())return w();r[c]&&$(r[c]),i("")}},P=t=>{!v[t.key]||t.isComposing||t.key===" "&&a||(t.preventDefault(),v[t.key]())};return l`<h2 id="dialog-title">What #${o} waits for</h2>
    <p class="chosen">${e.map(t=>l`<button key=${t} class="label"
      aria-label=${`No longer wait for #${t}`} onClick=${()=>u(e.filter(s=>s!==t))}>
      #${t} <${h} of=${n.get(t)?.title??""} /> ×</button>`)}
      ${!e.length&&l`<span class="hush">nothing yet</span>`}</p>
    <input ref=${y} data-first type="text" role="combobox" aria-expanded="true" aria-controls="candidates" aria-label="Find a task"
      aria-activedescendant=${r.length?`candidate-${c}`:void 0} placeholder="Words or a number"
      autocomplete="off" value=${a} onKeyDown=${P}
      onInput=${t=>(i(t.currentTarget.value),p(0))} />
    <div id="candidates" role="listbox" aria-label="Tasks" aria-multiselectable="true">${r.map((t,s)=>l`<${K} key=${t.other.id} ...${t} index=${s} isHere=${s===c}
        isChosen=${e.includes(t.other.id)} onClick=${()=>$(t)} />`)}</div>
    ${!r.length&&l`<p role="status">No task fits.</p>`}
    <div class="buttons"><span class="hush">Enter chooses what you typed, and then saves</span><span class="room"></span>
      <button onClick=${()=>k()}>Cancel</button><button class="primary" onClick=${w}>Save</button></div>`}var K=({other:o,circle:n,index:d,isHere:a,isChosen:i,onClick:e})=>l`<div id=${`candidate-${d}`} role="option"
  class=${a?"here":""} aria-selected=${i?"true":"false"} aria-disabled=${n?"true":void 0}
  onClick=${e}>
  <span class="tick" aria-hidden="true">${i?"\u2713":""}</span>
  <${H} state=${T(o)} /><span class="id">#${o.id}</span><${h} class="cut" of=${o.title} />
  ${n&&l`<span class="hush">would wait for itself: ${n}</span>`}</div>`;export{B as a,F as b};
