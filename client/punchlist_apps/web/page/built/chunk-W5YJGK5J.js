/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{A as H,F as Y,G as Z,R as ne,U as se,k as V,n as M,o as W,p as N,q as O,r as J,s as F,u as p,v as I,w as g,y as Q,z as B}from"./chunk-WFWCPALT.js";import{d as z,e as ee,f as d,g as te,h as R}from"./chunk-VTPJTOYB.js";import{M as S,N as q,Q as K,X as L,b as D,f as G}from"./chunk-MKJRN2L2.js";import{b as x,c as U,d as X,e as y,i as C,l as a,o as j}from"./chunk-LCO4CKYC.js";var oe=3,_=10,ie=C(0),m=C(null),T=C([]);function ue(e){let t=new Map,n=e.filter(({list:i})=>(t.set(i,(t.get(i)??0)+1),t.get(i)<=oe)),o=n.slice(0,_+ie.value),c=[...t].map(([i,s])=>{let r=S.value.get(i);return[r,Math.max(s,W(r))-Math.min(s,oe)]});return{shown:o,left:n.length-o.length,further:c.filter(([,i])=>i>0)}}function $e(e,t,n){let o=new Map(t.map(s=>[s.key,s])),c=s=>o.get(s.key)??s;if(e.length&&n==="pointer")return e.map(s=>g(s)?c(s):s);if(e.length&&n)return e.filter(s=>o.has(s.key)||I(s)).map(c);let i=t.filter(s=>!p(s)||I(s));return e.forEach((s,r)=>o.has(s.key)||!I(s)||i.splice(r,0,s)),i}function fe({onOpen:e=B}){let t=y(null),n=y([]),[o,c]=x(""),[i,s]=x(!1),{shown:r,left:v,further:k}=ue(M.value);F.value;let $=$e(n.current,r,i?"":o),w=r.filter(({key:l})=>!$.some(u=>u.key===l)).length,h=M.value.filter(l=>l.kind==="failed"&&!p(l));X(()=>{n.current=$,T.value=$,s(!1),$.some(u=>u.key===m.value&&!p(u))||(m.value=$.find(u=>!p(u))?.key??null)});let f=({type:l,currentTarget:u})=>{let ce=!pe&&l!=="pointerleave"&&u.matches(":hover"),re=u.scrollTop>0||u.contains(document.activeElement);c(ce?"pointer":re?"use":"")},b=()=>(t.current.scrollTo(0,0),s(!0));return a`<section class="needs" aria-labelledby="h-needs">
    <div class="column-head"><h2 id="h-needs">Needs you</h2><span class="count">${N.value}</span>
      ${w>0&&a`<button class="new" onClick=${b}>${w} new ↑</button>`}
      <span class="room"></span>
      ${h.length>1&&L.value&&a`<button class="quiet" onClick=${()=>Q(h)}>
        Retry ${h.length} failed</button>`}</div>
    <div class="scroller" ref=${t} tabindex=${$.length?void 0:"0"} role="group" aria-label="What needs you"
      onPointerEnter=${f} onPointerLeave=${f} onFocusIn=${f} onFocusOut=${f} onScroll=${f}>
      <ol>${$.map(l=>a`<${me} key=${l.key} need=${l} holds=${o==="pointer"}
        onOpen=${e} />`)}</ol>
      ${!$.length&&a`<p class="hush">Nothing needs you.</p>`}
      ${v>0&&a`<button class="more" onClick=${()=>ie.value+=_}>
        Show ${Math.min(v,_)} more</button>`}
      ${k.map(([l,u])=>a`<p class="further" key=${l.conversation}>
        <a href=${D(ae(l))} onClick=${G(ae(l))}>
          and ${u.toLocaleString()} more in <${d} of=${K(l)} /> ▸</a></p>`)}
    </div>
    <p class="sr" role="status"><${de} /></p>
  </section>`}var pe=matchMedia("(hover: none)").matches,ae=({conversation:e})=>({name:e,query:{q:"is:failed"}});function de(){let e=M.value.reduce((n,o)=>n&&n.since>o.since?n:o,null),t=y(e?.key);return!e||e.key===t.current?null:a`New: <${d} of=${e.title} />, ${O(e)}`}function me({need:e,holds:t,onOpen:n}){let o=y(null),[c,i]=x(0),s=m.value===e.key,r=p(e)&&F.value.get(e.key);U(()=>{r||i(o.current.offsetHeight)});let v=()=>m.value=e.key,{kind:k,list:$,listTitle:w,id:h,title:f,text:b,owner:l,frees:u}=e;return a`<li data-need=${e.key}><article ref=${o} onFocusIn=${v} onClick=${v}
    class=${`need k-${k}${s?" here":""}${r?" folded":""}`} tabindex=${s?"0":"-1"}
    aria-label=${`${f}, ${O(e)}`} style=${r&&t?{height:`${c}px`}:{}}>
    ${r?a`<p class="answer"><${z} state="completed" /><span>${r.text}</span>
          <${d} class="cut" of=${f} />${r.undo&&a`
            <button class="text" onClick=${r.undo}>Undo</button>`}</p>`:a`<p class="kind"><${z} state=${J[k]} /><b>${g(e)?"Changed: read it again":O(e)}</b>
            <span class="room"></span><${d} class="cut" of=${w} /><${ee} at=${e.since} /></p>
          <h3><${d} of=${f} />${h&&a` <span class="id">#${h}</span>`}</h3>
          ${b&&a`<p class="text"><${d} of=${b} /></p>`}
          ${(l||u>0)&&a`<p class="facts">
            ${l&&a`<${te} of=${l} size="small" /><${d} class="cut" of=${l} />`}
            ${u>0&&a`<span class="frees">frees ${u<99?u:"99 or more"}</span>`}</p>`}
          <${he} need=${e} onOpen=${n} />`}
  </article></li>`}function he({need:e,onOpen:t}){let n=j.value==="away",o=L.value?H.filter(([,,,,c])=>c.includes(e.kind)):[];return a`<div class="answers">
    ${o.map(([c,i,s,r])=>a`<button key=${c}
      class=${c==="approve"?"primary":""} disabled=${n||g(e)}
      title=${n?"The server is away.":void 0}
      onClick=${()=>r(e)}>${i} <${R} of=${s} /></button>`)}
    ${t&&a`<button class="quiet" onClick=${()=>t(e)}>Open <${R} of="enter" /></button>`}
  </div>`}var E=()=>T.value.find(({key:e})=>e===m.value);function P(e){e&&(m.value=e.key,queueMicrotask(()=>{let t=document.querySelector(`[data-need="${CSS.escape(e.key)}"] article`);t?.focus(),t?.scrollIntoView({block:"nearest"})}))}function A(e){let t=T.value.filter(o=>!p(o)),n=t.findIndex(({key:o})=>o===m.value);P(t[Math.min(t.length-1,Math.max(0,n+e))])}var le=e=>()=>{let t=[...document.querySelectorAll(".now .scroller")],n=t.findIndex(c=>c.contains(document.activeElement)),o=Math.min(t.length-1,Math.max(0,Math.max(0,n)+e));o?t[o].focus():P(E())},ve=([,,,e,t])=>async()=>{let n=E();if(!n||!t.includes(n.kind)||g(n))return;let o=T.value,c=o.indexOf(n);await e(n)&&P([...o.slice(c+1),...o.slice(0,c)].find(i=>!p(i)&&i.key!==n.key))},ye=(e=B)=>({down:{run:()=>A(1)},up:{run:()=>A(-1)},first:{run:()=>A(-1/0)},last:{run:()=>A(1/0)},left:{run:le(-1)},right:{run:le(1)},open:{run:()=>E()&&e(E())},...Object.fromEntries(H.map(t=>[t[0],{run:ve(t),change:!0}]))});Y("now",ye());var ge=V(()=>import("./agents-SZEOXB4S.js"));function ke(){let e=q.value&&!S.value.size;return a`<${ne} title="Now"><${we} /><//>
    ${e?a`<main class="board" id="main"><${se} />
          <p class="begin"><button class="primary" onClick=${()=>Z("add")}>Begin a list</button></p></main>`:a`<main class="now" id="main">
          ${q.value?a`<${fe} />`:a`<p class="hush" role="status">Opening…</p>`}
          <${ge} /></main>`}`}function we(){let e=[...S.value.values()].flatMap(n=>n.running??[]),t=new Set(e.map(({owner:n})=>n).filter(Boolean)).size;return a`<p class="figures"><span><b>${t}</b> ${t===1?"agent":"agents"} at work</span>
    <span><b>${N.value}</b> ${N.value===1?"needs":"need"} you</span></p>`}export{m as a,T as b,fe as c,he as d,ye as e,ke as f};
