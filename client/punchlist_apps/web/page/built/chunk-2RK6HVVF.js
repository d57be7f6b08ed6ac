/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as ne}from"./chunk-JTC77UJH.js";import{b as M,c as Q,d as O,e as I,f as Y,g as B,i as d,j as A,k as g,m as Z,n as H,o as z}from"./chunk-OUQ3P2J5.js";import{c as R,d as ee,e as f,f as te,h as E}from"./chunk-R6VQCR7I.js";import{I as V,K as J,t as K}from"./chunk-EOHURGU6.js";import{O as S,P as F,S as G,_ as N,b as X,f as D}from"./chunk-IALAHY4L.js";import{b as x,c as U,d as j,e as y,i as C,l as o,o as W}from"./chunk-OD44XGYS.js";var se=3,_=10,le=C(0),h=C(null),L=C([]);function re(e){let t=new Map,n=e.filter(({list:i})=>(t.set(i,(t.get(i)??0)+1),t.get(i)<=se)),a=n.slice(0,_+le.value),c=[...t].map(([i,s])=>{let r=S.value.get(i);return[r,Math.max(s,Q(r))-Math.min(s,se)]});return{shown:a,left:n.length-a.length,further:c.filter(([,i])=>i>0)}}function ue(e,t,n){let a=new Map(t.map(s=>[s.key,s])),c=s=>a.get(s.key)??s;if(e.length&&n==="pointer")return e.map(s=>g(s)?c(s):s);if(e.length&&n)return e.filter(s=>a.has(s.key)||A(s)).map(c);let i=t.filter(s=>!d(s)||A(s));return e.forEach((s,r)=>a.has(s.key)||!A(s)||i.splice(r,0,s)),i}function $e({onOpen:e=H}){let t=y(null),n=y([]),[a,c]=x(""),[i,s]=x(!1),{shown:r,left:v,further:k}=re(M.value);B.value;let $=ue(n.current,r,i?"":a),w=r.filter(({key:l})=>!$.some(u=>u.key===l)).length,m=M.value.filter(l=>l.kind==="failed"&&!d(l));j(()=>{n.current=$,L.value=$,s(!1),$.some(u=>u.key===h.value&&!d(u))||(h.value=$.find(u=>!d(u))?.key??null)});let p=({type:l,currentTarget:u})=>{let ie=!pe&&l!=="pointerleave"&&u.matches(":hover"),ce=u.scrollTop>0||u.contains(document.activeElement);c(ie?"pointer":ce?"use":"")},b=()=>(t.current.scrollTo(0,0),s(!0));return o`<section class="needs" aria-labelledby="h-needs">
    <div class="column-head"><h2 id="h-needs">Needs you</h2><span class="count">${O.value}</span>
      ${w>0&&o`<button class="new" onClick=${b}>${w} new ↑</button>`}
      <span class="room"></span>
      ${m.length>1&&N.value&&o`<button class="quiet" onClick=${()=>Z(m)}>
        Retry ${m.length} failed</button>`}</div>
    <div class="scroller" ref=${t} tabindex=${$.length?void 0:"0"} role="group" aria-label="What needs you"
      onPointerEnter=${p} onPointerLeave=${p} onFocusIn=${p} onFocusOut=${p} onScroll=${p}>
      <ol>${$.map(l=>o`<${fe} key=${l.key} need=${l} holds=${a==="pointer"}
        onOpen=${e} />`)}</ol>
      ${!$.length&&o`<p class="hush">Nothing needs you.</p>`}
      ${v>0&&o`<button class="more" onClick=${()=>le.value+=_}>
        Show ${Math.min(v,_)} more</button>`}
      ${k.map(([l,u])=>o`<p class="further" key=${l.conversation}>
        <a href=${X(oe(l))} onClick=${D(oe(l))}>
          and ${u.toLocaleString()} more in <${f} of=${G(l)} /> ▸</a></p>`)}
    </div>
    <p class="sr" role="status"><${de} /></p>
  </section>`}var pe=matchMedia("(hover: none)").matches,oe=({conversation:e})=>({name:e,query:{q:"is:failed"}});function de(){let e=M.value.reduce((n,a)=>n&&n.since>a.since?n:a,null),t=y(e?.key);return!e||e.key===t.current?null:o`New: <${f} of=${e.title} />, ${I(e)}`}function fe({need:e,holds:t,onOpen:n}){let a=y(null),[c,i]=x(0),s=h.value===e.key,r=d(e)&&B.value.get(e.key);U(()=>{r||i(a.current.offsetHeight)});let v=()=>h.value=e.key,{kind:k,list:$,listTitle:w,id:m,title:p,text:b,owner:l,frees:u}=e;return o`<li data-need=${e.key}><article ref=${a} onFocusIn=${v} onClick=${v}
    class=${`need k-${k}${s?" here":""}${r?" folded":""}`} tabindex=${s?"0":"-1"}
    aria-label=${`${p}, ${I(e)}`} style=${r&&t?{height:`${c}px`}:{}}>
    ${r?o`<p class="answer"><${R} state="completed" /><span>${r.text}</span>
          <${f} class="cut" of=${p} />${r.undo&&o`
            <button class="text" onClick=${r.undo}>Undo</button>`}</p>`:o`<p class="kind"><${R} state=${Y[k]} /><b>${g(e)?"Changed: read it again":I(e)}</b>
            <span class="room"></span><${f} class="cut" of=${w} /><${ee} at=${e.since} /></p>
          <h3><${f} of=${p} />${m&&o` <span class="id">#${m}</span>`}</h3>
          ${b&&o`<p class="text"><${f} of=${b} /></p>`}
          ${(l||u>0)&&o`<p class="facts">
            ${l&&o`<${te} of=${l} size="small" /><${f} class="cut" of=${l} />`}
            ${u>0&&o`<span class="frees">frees ${u<99?u:"99 or more"}</span>`}</p>`}
          <${he} need=${e} onOpen=${n} />`}
  </article></li>`}function he({need:e,onOpen:t}){let n=W.value==="away",a=N.value?z.filter(([,,,,c])=>c.includes(e.kind)):[];return o`<div class="answers">
    ${a.map(([c,i,s,r])=>o`<button key=${c}
      class=${c==="approve"?"primary":""} disabled=${n||g(e)}
      title=${n?"The server is away.":void 0}
      onClick=${()=>r(e)}>${i} <${E} of=${s} /></button>`)}
    ${t&&o`<button class="quiet" onClick=${()=>t(e)}>Open <${E} of="enter" /></button>`}
  </div>`}var q=()=>L.value.find(({key:e})=>e===h.value);function P(e){e&&(h.value=e.key,queueMicrotask(()=>{let t=document.querySelector(`[data-need="${CSS.escape(e.key)}"] article`);t?.focus(),t?.scrollIntoView({block:"nearest"})}))}function T(e){let t=L.value.filter(a=>!d(a)),n=t.findIndex(({key:a})=>a===h.value);P(t[Math.min(t.length-1,Math.max(0,n+e))])}var ae=e=>()=>{let t=[...document.querySelectorAll(".now .scroller")],n=t.findIndex(c=>c.contains(document.activeElement)),a=Math.min(t.length-1,Math.max(0,Math.max(0,n)+e));a?t[a].focus():P(q())},me=([,,,e,t])=>async()=>{let n=q();if(!n||!t.includes(n.kind)||g(n))return;let a=L.value,c=a.indexOf(n);await e(n)&&P([...a.slice(c+1),...a.slice(0,c)].find(i=>!d(i)&&i.key!==n.key))},ve=(e=H)=>({down:{run:()=>T(1)},up:{run:()=>T(-1)},first:{run:()=>T(-1/0)},last:{run:()=>T(1/0)},left:{run:ae(-1)},right:{run:ae(1)},open:{run:()=>q()&&e(q())},...Object.fromEntries(z.map(t=>[t[0],{run:me(t),change:!0}]))});V("now",ve());var ye=K(()=>import("./agents-WYDHW2FF.js"),"inbox"),ge=()=>o`<div class="teach">
  <h2>No lists yet</h2>
  <p>Each agent and each project gets a list here as soon as it plans something. No need to reload.</p>
  <ol>
    <li>Connect your agent: <code>punch setup claude-code</code></li>
    <li>Or start a list yourself: <code>punch add "Write the parser"</code>, or press <${E} of="a" />.</li>
  </ol>
  ${N.value&&o`<p><button class="primary" onClick=${()=>J("add")}>Begin a list</button></p>`}
</div>`;function ke(){let e=F.value&&!S.value.size;return o`<${ne} title="Now"><${we} /><//>
    ${e?o`<main class="board" id="main"><${ge} /></main>`:o`<main class="now" id="main">
          ${F.value?o`<${$e} />`:o`<p class="hush" role="status">Opening…</p>`}
          <${ye} /></main>`}`}function we(){let e=[...S.value.values()].flatMap(n=>n.running??[]),t=new Set(e.map(({owner:n})=>n).filter(Boolean)).size;return o`<p class="figures"><span><b>${t}</b> ${t===1?"agent":"agents"} at work</span>
    <span><b>${O.value}</b> ${O.value===1?"needs":"need"} you</span></p>`}export{h as a,L as b,$e as c,he as d,ve as e,ge as f,ke as g};
