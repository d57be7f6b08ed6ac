/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{c as L,e as h}from"./chunk-R6VQCR7I.js";import{a as H}from"./chunk-4PHI2A4W.js";import{a as E}from"./chunk-3OLJYULV.js";import{$ as m,V as S,sa as _,u as D,ua as j,wa as k,y as A}from"./chunk-IALAHY4L.js";import{b as f,d as x,e as M,l as c,y as T}from"./chunk-OD44XGYS.js";var B=60;function F(o,n,u){let a=new Map([[u,null]]);for(let i of a.keys()){if(i===n){let r=[];for(let e=i;e!==null;e=a.get(e))r.push(`#${e}`);return[...r,`#${n}`].join(" \u2192 ")}for(let r of o.get(i)?.blocked_by??[])a.has(r)||a.set(r,i)}return""}function K({id:o}){S.value;let{tasks:n}=m.value,u=n.get(o),[a,i]=f(""),[r]=f(u?.blocked_by??[]),[e,y]=f(r),[N,p]=f(0),g=M(null);if(x(()=>g.current.focus({preventScroll:!0}),[]),!u)return c`<p role="alert">This task was deleted.</p>`;let O=a.toLowerCase().split(/\s+/).filter(Boolean),P=t=>O.every(s=>`#${t.id} ${t.title}`.toLowerCase().includes(s)),w=t=>e.includes(t.id)?0:A(t)?2:1,l=m.value.sorted().filter(t=>t.id!==o&&P(t)).sort((t,s)=>w(t)-w(s)).slice(0,B).map(t=>({other:t,circle:e.includes(t.id)?"":F(n,o,t.id)})),d=Math.min(N,l.length-1),$=({other:t,circle:s})=>{s||y(e.includes(t.id)?e.filter(b=>b!==t.id):[...e,t.id])},v=async()=>{let t=H(r,e);if(k(),!Object.keys(t).length)return;let s=await j(()=>T("PATCH",_(o),t));s&&E(`#${o} waits for ${s.task.blocked_by.map(b=>`#${b}`).join(" ")||"nothing"}`,[s])},C={ArrowDown:()=>p(Math.min(l.length-1,d+1)),ArrowUp:()=>p(Math.max(0,d-1))," ":()=>l[d]?$(l[d]):null,Enter:()=>{if(!a.trim())return v();l[d]&&$(l[d]),i("")}},W=t=>{!C[t.key]||t.isComposing||t.key===" "&&a||(t.preventDefault(),C[t.key]())};return c`<h2 id="dialog-title">What #${o} waits for</h2>
    <p class="chosen">${e.map(t=>c`<button key=${t} class="label"
      title="No longer wait for it" onClick=${()=>y(e.filter(s=>s!==t))}>
      #${t} <${h} of=${n.get(t)?.title??""} /> <span aria-hidden="true">×</span></button>`)}
      ${!e.length&&c`<span class="hush">nothing yet</span>`}</p>
    <input ref=${g} data-first type="text" role="combobox" aria-expanded="true" aria-controls="candidates" aria-label="Find a task"
      aria-activedescendant=${l.length?`candidate-${d}`:void 0} placeholder="Words or a number"
      autocomplete="off" value=${a} onKeyDown=${W}
      onInput=${t=>(i(t.currentTarget.value),p(0))} />
    <div id="candidates" role="listbox" aria-label="Tasks" aria-multiselectable="true">${l.map((t,s)=>c`<${R} key=${t.other.id} ...${t} index=${s} isHere=${s===d}
        isChosen=${e.includes(t.other.id)} onClick=${()=>$(t)} />`)}</div>
    ${!l.length&&c`<p role="status">No task fits.</p>`}
    <div class="buttons"><span class="hush">Enter chooses what you typed, and then saves</span><span class="room"></span>
      <button onClick=${()=>k()}>Cancel</button><button class="primary" onClick=${v}>Save</button></div>`}var R=({other:o,circle:n,index:u,isHere:a,isChosen:i,onClick:r})=>c`<div id=${`candidate-${u}`} role="option"
  class=${a?"here":""} aria-selected=${i?"true":"false"} aria-disabled=${n?"true":void 0}
  onClick=${r}>
  <span class="tick" aria-hidden="true">${i?"\u2713":""}</span>
  <${L} state=${D(o)} /><span class="id">#${o.id}</span><${h} class="cut" of=${o.title} />
  ${n&&c`<span class="hush">would wait for itself: ${n}</span>`}</div>`;export{F as a,K as b};
