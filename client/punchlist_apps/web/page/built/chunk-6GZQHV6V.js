/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as M,l as xe}from"./chunk-BVF5SRNS.js";import{c as O,d as P,e as $,f as U,h as k,m as be,n as we}from"./chunk-FILNCON5.js";import{C as T,D as ve,E as R,F as q,G as ye,H as Q,J as h,K as z,L as N,N as ge,O as V,P as J,V as ke,X as H,a as X,b as $e,c as pe,d as de,e as K,f as fe,g as D,h as me,t as he}from"./chunk-T4PI47YH.js";import{O as m,P as C,Q as re,R as ce,S as E,_ as S,b as w,c as ne,e as ae,f as x,i as oe,ma as ue,o as A,p as le,t as ie}from"./chunk-IKIOKO4K.js";import{b as F,c as te,d as se,e as b,i as B,l as a,o as _}from"./chunk-OD44XGYS.js";var Ce=matchMedia("(pointer: coarse)").matches?56:42,Fe=3;function Be(){let e=[];for(let t of de())if(e.push({section:t}),!D(t.key))for(let s of t.cards){let n=(s.running??[]).slice(0,Fe),o=s.counts.in_progress-n.length;e.push({card:s,moved:t.moved?.has(s.conversation),more:o});for(let i of n)e.push({card:s,task:i})}return e}function rt(){if(!C.value)return a`<${M} title="Lists" /><main class="board">
      <p class="hush" role="status">${_.value==="away"?"":"Opening\u2026"}</p></main>`;let e=Be(),t=[...m.value.values()].reduce((n,{counts:o})=>n+o.pending+o.in_progress+o.paused,0),s=e.findIndex(({card:n,task:o})=>n&&!o&&n.conversation===X.value);return a`<${M} title="Lists">
      <span class="facts">${m.value.size.toLocaleString()}, with ${A(t,"open task")}</span>
      <${xe} of=${ce} label="Filter lists" /><${Ae} /><//>
    <main class="lists" id="main">
      ${e.length>0&&a`<${we} items=${e} size=${Ce} active=${s} class="table" role="group"
        aria-label="Lists" onPointerEnter=${K} onPointerLeave=${()=>$e.value=null}
        onFocusIn=${K} onFocusOut=${fe}>
        ${n=>a`<${Te} key=${_e(n)} ...${n} />`}<//>`}
      ${!e.length&&(m.value.size?a`<${Ee} />`:a`<${Y} />`)}
    </main>`}var _e=({section:e,card:t,task:s})=>e?`section ${e.key}`:`${t.conversation} ${s?.id??""}`,Ae=()=>a`<div class="segments" role="group" aria-label="Order of the lists">
  ${Object.keys(pe).map(e=>a`<button key=${e} class="quiet"
    aria-pressed=${(ne.value.query.sort??"need")===e?"true":"false"}
    onClick=${()=>ae({sort:e==="need"?"":e})}>by ${e}</button>`)}</div>`,Ee=()=>a`<div class="teach">
  <h2>No matching lists</h2>
  <p>${A(m.value.size,"list is","lists are")} hidden by the filter. <${k} of="escape" /> clears it.</p>
</div>`,Y=()=>a`<div class="teach">
  <h2>No lists yet</h2>
  <p>Each agent and each project gets a list here as soon as it plans something. No need to reload.</p>
  <ol>
    <li>Connect your agent: <code>punch setup claude-code</code></li>
    <li>Or start a list yourself: <code>punch add "Write the parser"</code>, or press <${k} of="a" />.</li>
  </ol>
  ${S.value&&a`<p><button class="primary" onClick=${()=>H("add")}>Begin a list</button></p>`}
</div>`;function Te({section:e,card:t,task:s,moved:n,more:o}){let i={height:`${Ce}px`};if(e){let l=D(e.key);return a`<h2 class=${`group-head sec-${e.key}`} style=${i}>
      <button class="text" aria-expanded=${l?"false":"true"} onClick=${()=>me(e.key)}>
        <span aria-hidden="true">${l?"\u25B8":"\u25BE"}</span> ${e.title}</button>${" "}
      <span class="count">${e.cards.length.toLocaleString()}</span></h2>`}return s?a`<${ze} card=${t} task=${s} style=${i} />`:a`<${qe} card=${t} moved=${n} more=${o} style=${i} />`}function Re({counts:e,damaged:t,settings:s,shared:n,waiting:o=0}){return[t&&["bad","damaged"],n&&["warn",le(n)],o>0&&["asks",A(o,"waits for a yes","wait for a yes")],e.failed&&s?.on_failure==="stop"&&["bad","stopped"],e.failed&&["bad",`${e.failed} failed`],e.paused>o&&["warn",`${e.paused-o} paused`],e.blocked&&["dim",`${e.blocked} blocked`]].filter(Boolean)}function qe({card:e,moved:t,more:s,style:n}){let{counts:o,conversation:i}=e,l=re(o),c=[...new Set((e.running??[]).map(p=>p.owner).filter(Boolean))];return a`<a class=${`card${X.value===i?" picked":""}`} data-list=${i} style=${n}
    href=${w({name:i})} onClick=${x({name:i})}>
    <span class="moved" title=${t?"Sorts in when you leave the table":void 0}>${t?"\u2022":""}</span>
    <b><${$} class="cut" of=${E(e)} /></b>
    <${be} counts=${o} />
    <span class="done">${l?`${o.completed} of ${l}`:"empty"}</span>
    <span class="notes">${Re(e).map(([p,v])=>a`<span key=${v} class=${p}>${v}</span>`)}</span>
    <span class="agents">${c.map(p=>a`<${U} key=${p} of=${p} />`)}
      ${s>0&&a`<span class="hush">${s} more at work</span>`}</span>
    <span class="when">${oe(ue.value-e.updated_at)}<span class="sr"> ago</span></span>
  </a>`}function ze({card:e,task:t,style:s}){let n={name:e.conversation,task:t.id};return a`<a class="running" style=${s} href=${w(n)} onClick=${x(n)}>
    <${O} state="in_progress" /><span class="what cut"><${$} of=${t.title} />${" "}
      <span class="id">#${t.id}</span></span>
    <${$} class="doing cut" of=${t.active_form} />
    ${t.owner&&a`<${$} class="owner" of=${ie(t)} />`}<${P} at=${t.since} /></a>`}var Se=3,Z=10,Me=B(0),y=B(null),G=B([]);function He(e){let t=new Map,s=e.filter(({list:i})=>(t.set(i,(t.get(i)??0)+1),t.get(i)<=Se)),n=s.slice(0,Z+Me.value),o=[...t].map(([i,l])=>{let c=m.value.get(i);return[c,Math.max(l,ve(c))-Math.min(l,Se)]});return{shown:n,left:s.length-n.length,further:o.filter(([,i])=>i>0)}}function Pe(e,t,s){let n=new Map(t.map(l=>[l.key,l])),o=l=>n.get(l.key)??l;if(e.length&&s==="pointer")return e.map(l=>N(l)?o(l):l);if(e.length&&s)return e.filter(l=>n.has(l.key)||z(l)).map(o);let i=t.filter(l=>!h(l)||z(l));return e.forEach((l,c)=>n.has(l.key)||!z(l)||i.splice(c,0,l)),i}function Ue({onOpen:e=V}){let t=b(null),s=b([]),[n,o]=F(""),[i,l]=F(!1),{shown:c,left:p,further:v}=He(T.value);Q.value;let d=Pe(s.current,c,i?"":n),I=c.filter(({key:r})=>!d.some(u=>u.key===r)).length,g=T.value.filter(r=>r.kind==="failed"&&!h(r));se(()=>{s.current=d,G.value=d,l(!1),d.some(u=>u.key===y.value&&!h(u))||(y.value=d.find(u=>!h(u))?.key??null)});let f=({type:r,currentTarget:u})=>{let Ie=!We&&r!=="pointerleave"&&u.matches(":hover"),Le=u.scrollTop>0||u.contains(document.activeElement);o(Ie?"pointer":Le?"use":"")},L=()=>(t.current.scrollTo(0,0),l(!0));return a`<section class="needs" aria-labelledby="h-needs">
    <div class="column-head"><h2 id="h-needs">Needs you</h2><span class="count">${R.value}</span>
      ${I>0&&a`<button class="new" onClick=${L}>${I} new ↑</button>`}
      <span class="room"></span>
      ${g.length>1&&S.value&&a`<button class="quiet" onClick=${()=>ge(g)}>
        Retry ${g.length} failed</button>`}</div>
    <div class="scroller" ref=${t} tabindex=${d.length?void 0:"0"} role="group" aria-label="What needs you"
      onPointerEnter=${f} onPointerLeave=${f} onFocusIn=${f} onFocusOut=${f} onScroll=${f}>
      <ol>${d.map(r=>a`<${Ge} key=${r.key} need=${r} holds=${n==="pointer"}
        onOpen=${e} />`)}</ol>
      ${!d.length&&a`<p class="hush">Nothing needs you.</p>`}
      ${p>0&&a`<button class="more" onClick=${()=>Me.value+=Z}>
        Show ${Math.min(p,Z)} more</button>`}
      ${v.map(([r,u])=>a`<p class="further" key=${r.conversation}>
        <a href=${w(Ne(r))} onClick=${x(Ne(r))}>
          and ${u.toLocaleString()} more in <${$} of=${E(r)} /> ▸</a></p>`)}
    </div>
    <p class="sr" role="status"><${je} /></p>
  </section>`}var We=matchMedia("(hover: none)").matches,Ne=({conversation:e})=>({name:e,query:{q:"is:failed"}});function je(){let e=T.value.reduce((s,n)=>s&&s.since>n.since?s:n,null),t=b(e?.key);return!e||e.key===t.current?null:a`New: <${$} of=${e.title} />, ${q(e)}`}function Ge({need:e,holds:t,onOpen:s}){let n=b(null),[o,i]=F(0),l=y.value===e.key,c=h(e)&&Q.value.get(e.key);te(()=>{c||i(n.current.offsetHeight)});let p=()=>y.value=e.key,{kind:v,list:d,listTitle:I,id:g,title:f,text:L,owner:r,frees:u}=e;return a`<li data-need=${e.key}><article ref=${n} onFocusIn=${p} onClick=${p}
    class=${`need k-${v}${l?" here":""}${c?" folded":""}`} tabindex=${l?"0":"-1"}
    aria-label=${`${f}, ${q(e)}`} style=${c&&t?{height:`${o}px`}:{}}>
    ${c?a`<p class="answer"><${O} state="completed" /><span>${c.text}</span>
          <${$} class="cut" of=${f} />${c.undo&&a`
            <button class="text" onClick=${c.undo}>Undo</button>`}</p>`:a`<p class="kind"><${O} state=${ye[v]} /><b>${N(e)?"Changed: read it again":q(e)}</b>
            <span class="room"></span><${$} class="cut" of=${I} /><${P} at=${e.since} /></p>
          <h3><${$} of=${f} />${g&&a` <span class="id">#${g}</span>`}</h3>
          ${L&&a`<p class="text"><${$} of=${L} /></p>`}
          ${(r||u>0)&&a`<p class="facts">
            ${r&&a`<${U} of=${r} size="small" /><${$} class="cut" of=${r} />`}
            ${u>0&&a`<span class="frees">frees ${u<99?u:"99 or more"}</span>`}</p>`}
          <${Xe} need=${e} onOpen=${s} />`}
  </article></li>`}function Xe({need:e,onOpen:t}){let s=_.value==="away",n=S.value?J.filter(([,,,,o])=>o.includes(e.kind)):[];return a`<div class="answers">
    ${n.map(([o,i,l,c])=>a`<button key=${o}
      class=${o==="approve"?"primary":""} disabled=${s||N(e)}
      title=${s?"The server is away.":void 0}
      onClick=${()=>c(e)}>${i} <${k} of=${l} /></button>`)}
    ${t&&a`<button class="quiet" onClick=${()=>t(e)}>Open <${k} of="enter" /></button>`}
  </div>`}var j=()=>G.value.find(({key:e})=>e===y.value);function ee(e){e&&(y.value=e.key,queueMicrotask(()=>{let t=document.querySelector(`[data-need="${CSS.escape(e.key)}"] article`);t?.focus(),t?.scrollIntoView({block:"nearest"})}))}function W(e){let t=G.value.filter(n=>!h(n)),s=t.findIndex(({key:n})=>n===y.value);ee(t[Math.min(t.length-1,Math.max(0,s+e))])}var Oe=e=>()=>{let t=[...document.querySelectorAll(".now .scroller")],s=t.findIndex(o=>o.contains(document.activeElement)),n=Math.min(t.length-1,Math.max(0,Math.max(0,s)+e));n?t[n].focus():ee(j())},Ke=([,,,e,t])=>async()=>{let s=j();if(!s||!t.includes(s.kind)||N(s))return;let n=G.value,o=n.indexOf(s);await e(s)&&ee([...n.slice(o+1),...n.slice(0,o)].find(i=>!h(i)&&i.key!==s.key))},De=(e=V)=>({down:{run:()=>W(1)},up:{run:()=>W(-1)},first:{run:()=>W(-1/0)},last:{run:()=>W(1/0)},left:{run:Oe(-1)},right:{run:Oe(1)},open:{run:()=>j()&&e(j())},...Object.fromEntries(J.map(t=>[t[0],{run:Ke(t),change:!0}]))});ke("now",De());var Qe=he(()=>import("./agents-2ZHTOARU.js"),"inbox");function Ve(){let e=C.value&&!m.value.size;return a`<${M} title="Now"><${Je} /><//>
    ${e?a`<main class="board" id="main"><${Y} />
          <p class="begin"><button class="primary" onClick=${()=>H("add")}>Begin a list</button></p></main>`:a`<main class="now" id="main">
          ${C.value?a`<${Ue} />`:a`<p class="hush" role="status">Opening…</p>`}
          <${Qe} /></main>`}`}function Je(){let e=[...m.value.values()].flatMap(s=>s.running??[]),t=new Set(e.map(({owner:s})=>s).filter(Boolean)).size;return a`<p class="figures"><span><b>${t}</b> ${t===1?"agent":"agents"} at work</span>
    <span><b>${R.value}</b> ${R.value===1?"needs":"need"} you</span></p>`}export{rt as a,y as b,G as c,Ue as d,Xe as e,De as f,Ve as g};
