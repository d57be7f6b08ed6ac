/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as ne,g as ae}from"./chunk-6GZQHV6V.js";import{i as oe,j as re}from"./chunk-BVF5SRNS.js";import{h as te,i as K}from"./chunk-FILNCON5.js";import{E as M,X as D,t as p,u as ee}from"./chunk-T4PI47YH.js";import"./chunk-EDIWW2I7.js";import"./chunk-COBCRPKV.js";import{F as x,L as H,M as j,R as J,S as G,U as O,_ as Q,c as y,ca as X,da as E,g as h,i as W,ma as Z,va as T,wa as b}from"./chunk-IKIOKO4K.js";import{a as q,b as g,d as P,e as F,k as Y,l as o,m as S,n as A,o as _,p as z,q as C,r as k,t as B,u as U,v as V}from"./chunk-OD44XGYS.js";var N="punchlist.letters-off",ue={ArrowDown:"down",ArrowUp:"up",ArrowLeft:"left",ArrowRight:"right",Home:"home",End:"end",PageUp:"pageup",PageDown:"pagedown",Enter:"enter",Escape:"escape",Backspace:"backspace"," ":"space"},me=new Map(x.flatMap(e=>e.keys.flatMap(t=>t.keys.map(n=>[n,t])))),I=()=>localStorage.getItem(N)!==null,se=e=>e?localStorage.removeItem(N):localStorage.setItem(N,"1");function pe(e){let t=ue[e.key]??e.key;return e.altKey?{up:"K",down:"J"}[t]??null:(e.ctrlKey||e.metaKey)&&t.toLowerCase()==="z"?e.shiftKey?"U":"u":e.ctrlKey||e.metaKey?`ctrl+${t.toLowerCase()}`:t}var de={now:"now",inbox:"now",list:"list",timeline:"list"},fe="a[href], button, summary, select";function $e(e){let t=pe(e),n=me.get(t);if(!n||e.isComposing||T.value&&t!=="ctrl+k")return;let{target:a}=e;if(a.closest?.("input:not([type=range]), textarea, select"))return t!=="escape"?void 0:(a.blur(),a.id==="filter"&&((y.value.name?X:J).value=""),e.preventDefault());(t==="enter"||t==="space")&&a.closest?.(fe)||a.type==="range"&&["up","down","home","end","pageup","pagedown"].includes(t)||t.length===1&&I()||n.in.includes(de[y.value.screen]??"board")&&(e.preventDefault(),D(n.name))}var ie=()=>document.addEventListener("keydown",$e);var he={form:ge,help:ke,palette:p(()=>import("./palette-POIBB7JI.js"),"late"),picker:p(()=>import("./picker-X2GVMWEW.js"))};function le(){let e=T.value;return e&&o`<${be} key=${e.kind+(e.title??"")} open=${e} />`}function be({open:e}){let t=F(null);P(()=>{let s=document.activeElement;return t.current.showModal(),t.current.querySelector("[data-first]")?.focus({preventScroll:!0}),()=>s?.isConnected&&s.focus?.({preventScroll:!0})},[]);let n=s=>s.target===t.current&&b(),a=s=>(s.preventDefault(),b()),l=he[e.kind];return o`<dialog ref=${t} class=${e.kind} aria-labelledby="dialog-title" onCancel=${a}
    onMouseDown=${n}><${l} ...${e} /></dialog>`}function ge({title:e,text:t=[],lines:n=[],code:a,fields:l=[],values:s={},confirm:d,danger:i,only:c,send:u}){let[v,R]=g(null);return o`<form method="dialog" onSubmit=${async r=>{r.preventDefault();let m={};for(let[f,L]of new FormData(r.currentTarget))m[f]=m[f]&&L?`${m[f]}T${L}`:m[f]||L.trim();if(!u)return b(m);try{b(await u(m))}catch(f){if(!(f instanceof S))throw f;R(f.message)}}} onKeyDown=${r=>r.key==="Enter"&&(r.ctrlKey||r.metaKey)&&r.currentTarget.requestSubmit()}>
    <h2 id="dialog-title"><bdi>${e}</bdi></h2>
    ${n.length>0&&o`<ul class="lines">
      ${n.map((r,m)=>o`<li key=${m}><bdi>${r}</bdi></li>`)}</ul>`}
    ${t.map(r=>o`<p key=${r}>${r}</p>`)}
    ${a&&o`<${K} of=${a} />`}
    <div class="fields">${l.map((r,m)=>o`<${we} key=${r.name} field=${r} value=${s[r.name]??""} first=${m===0} />`)}</div>
    <div class="buttons">
      ${v&&o`<p class="bad" role="alert" tabindex="-1" ref=${ye}>${h(v)}</p>`}
      <span class="room"></span>
      ${!c&&o`<button type="button" onClick=${()=>b()}>Cancel</button>`}
      <button type="submit" class=${i?"danger":"primary"} data-first=${l.length?void 0:!0}>
        ${d}</button>
    </div>
  </form>`}var ye=e=>e?.focus({preventScroll:!0});function we({field:e,value:t,first:n}){let{name:a,label:l,kind:s="line",hint:d,required:i,options:c,half:u,rows:v=4,offer:R}=e,$=`f-${a}`,w={id:$,name:a,"data-first":n||void 0,"aria-describedby":d?`${$}-hint`:void 0};return o`<div class=${`field${u?" half":""}`}>
    <label for=${$}>${l}${d&&o` <span class="hush" id=${`${$}-hint`}>${d}</span>`}</label>
    ${s==="long"?o`<textarea ...${w} required=${i} rows=${v} maxlength="65536"
          defaultValue=${t}></textarea>`:s==="choice"?o`<select ...${w}>${c.map(r=>o`<option key=${r} value=${r} selected=${r===t}>${r}</option>`)}</select>`:s==="time"?o`<span class="pair"><input ...${w} type="date" defaultValue=${t.slice(0,10)} />
              <input type="time" name=${a} aria-label="Time of day, optional"
                defaultValue=${t.slice(11)} /></span>`:o`<input ...${w} type="text" required=${i} maxlength=${a==="title"?500:8192}
              autocomplete="off" defaultValue=${t} list=${c&&`${$}-options`} />
              ${c&&o`<datalist id=${`${$}-options`}>
                ${c.map(r=>o`<option key=${r} value=${r} />`)}</datalist>`}`}
  </div>`}function ke(){let[e,t]=g(I()),[n,a]=g(""),l=i=>(se(!i.currentTarget.checked),t(i.currentTarget.checked)),s=n.trim().toLowerCase(),d=x.map(({title:i,keys:c})=>({title:i,keys:c.filter(u=>`${u.does} ${u.keys.join(" ")}`.toLowerCase().includes(s))})).filter(({keys:i})=>i.length);return o`<h2 id="dialog-title" tabindex="-1" data-first>Keys</h2>
    <input type="search" aria-label="Search the keys" placeholder="Search the keys" value=${n}
      onInput=${i=>a(i.currentTarget.value)} />
    <div class="groups">${d.map(({title:i,keys:c})=>o`<section key=${i}>
      <h3>${i}</h3><dl>${c.map(u=>o`<${ve} key=${u.name} ...${u} />`)}</dl></section>`)}</div>
    ${!d.length&&o`<p role="status">No key does that.</p>`}
    <div class="buttons">
      <label class="check">
        <input type="checkbox" checked=${e} onChange=${l} /> Turn off single-letter keys</label>
      <span class="room"></span><button class="primary" onClick=${()=>b()}>Close</button></div>`}var ve=({keys:e,does:t})=>o`<div>
  <dt>${e.map(n=>o`<${te} key=${n} of=${n} />`)}</dt><dd>${t}</dd></div>`;function ce(){return o`<main class="door" id="main">
    <img src="/icon.svg" alt="" width="56" height="56" />
    <h1>punchlist</h1>
    ${k.value&&o`<p class="bad" role="alert">${h(k.value)}</p>`}
    <p>This page shows your task lists to you alone. To sign this browser in, run</p>
    <${K} of=${V()} />
    <p>and open the link it prints. A link works once, within a minute; then this browser stays signed in.</p>
    <p class="waiting" role="status"><i aria-hidden="true"></i>Waiting…</p>
    <${Se} />
  </main>`}function Se(){let[e,t]=g("");return o`<form class="code-form" onSubmit=${async a=>{a.preventDefault();let l=a.currentTarget.elements.code;t("");try{await U({code:l.value.replace(/\D/g,"")})}catch(s){if(!(s instanceof S))throw s;t(s.message),l.select()}}}>
    <label for="code">Or enter the six digits that <code>punch web --code</code> prints</label>
    <span class="pair"><input id="code" name="code" required inputmode="numeric" autocomplete="one-time-code"
      maxlength="11" pattern="\\D*(\\d\\D*){6}" title="six digits" />
      <button>Sign in</button></span>
    ${e&&o`<p class="bad" role="alert">${h(e)}</p>`}
  </form>`}var Ce={away:["Away.","The server has not responded for"],silent:["Not answering.","The server is there, but has not answered for"]};function xe(){let e=Ce[_.value];return e&&o`<div class="away-banner" role="alert"><span><b>${e[0]}</b> ${e[1]}
    ${" "}<time>${W(Math.max(1e3,Z.value-z.value))}</time>. This is the last known state;
    it updates when the server is back.</span></div>`}function Ee(){let t=C.value.some(n=>n.isLate)?"Still waiting for the server\u2026":"Saving\u2026";return o`<div class="pending" role="status" hidden=${!C.value.length}>${C.value.length>0&&t}</div>`}var Te={start:"Start",done:"Done",pause:"Pause",reopen:"Reopen",delete:"Delete"},De=()=>E.value.size>0&&o`<div class="marked-bar" role="region" aria-label="Marked tasks">
  <b>${E.value.size} marked</b>
  ${Q.value&&Object.entries(Te).map(([e,t])=>o`<button key=${e} onClick=${()=>D(e)}>${t}</button>`)}
  <button class="quiet" onClick=${()=>E.value=new Set}>Unmark</button>
</div>`;function Ke(e){e.preventDefault(),document.querySelector("#main [tabindex], #main a, #main button")?.focus()}var Le={now:ae,inbox:p(()=>import("./inbox-P3ZJO4EG.js"),"inbox"),lists:ne,list:p(()=>import("./list-OJCEQLYT.js"),"late"),timeline:p(()=>import("./timeline-X6F6O7OF.js"),"timeline"),agent:p(()=>import("./agent-XMFTKABW.js"),"inbox"),who:p(()=>import("./who-RJQ6EGQV.js")),chat:p(()=>import("./chat-WAPYBM7V.js"),"late")};function Ae(){return A.value?o`<a class="skip" href="#main" onClick=${Ke}>Skip to the screen</a>
    <div class="frame"><${oe} /><div class="page"><${xe} />
      <${Le[y.value.screen]} />
      <${De} /></div><${re} /></div>
    <${Ee} /><${j} /><${le} />`:o`<${ce} />`}var Oe={now:"Now",inbox:"Inbox",lists:"Lists",timeline:"Timeline",who:"Who is there",chat:"Chat"};Y(()=>{let{name:e,screen:t,rest:n}=y.value,a=e?O.value?G(O.value):e:Oe[t]??n[0];document.title=`${M.value?`(${M.value}) `:""}${h(a)} \xB7 punchlist`});async function Me(){try{await B()}catch(e){A.value?H(e.message,"bad"):k.value=e.message}ie(),q(o`<${Ae} />`,document.querySelector("#app")),ee()}Me();
