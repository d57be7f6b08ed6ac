/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as D,b as E}from"./chunk-5D32GGUK.js";import{h as O,i as T}from"./chunk-R6VQCR7I.js";import{t as w}from"./chunk-EOHURGU6.js";import"./chunk-3OLJYULV.js";import{F as _,g as C,wa as h}from"./chunk-IALAHY4L.js";import{b as g,d as v,e as S,l as e,m as x}from"./chunk-OD44XGYS.js";var K={Move:{down:"next",up:"previous",left:"fold a group, or the column to the left",right:"unfold a group, or the column to the right",first:"first",last:"last",page_down:"a page down",page_up:"a page up",open:"open",back:"back"},Go:{search:"search the tasks of all lists",palette:"find a task, a list or a command",home:"now: what needs you, and who works",inbox:"the inbox: what waits for an answer",lists:"all lists",timeline:"the timeline of all lists",who:"who is there",help:"these keys"},See:{filter:"filter: is:blocked @ann p:high +label words",sort:"sort by the next column",group:"group by state, owner, label or parent",view_list:"as a list",view_flow:"as columns",view_graph:"as a graph",view_history:"what happened",view_timeline:"as a timeline",fit:"fit the graph or timeline",why:"why it can't start"},Work:{start:"start",done:"done, with a result",fail:"failed, with a reason",pause:"pause",reopen:"reopen, or retry a failed task",approve:"approve: it counts as done",reject:"reject, with a reason; in the past: back to now",hand:"hand to an agent or a person",claim:"claim",release:"release a claim"},Change:{add:"add",edit:"edit",edit_all:"edit all members in a form",blockers:"what it waits for",note:"write a note on it",delete:"delete, after a question",move_down:"move down",move_up:"move up",raise:"more urgent",lower:"less urgent",mark:"mark, to change several together; in the past: play",mark_all:"mark all visible tasks",copy:"copy number and title",repeat:"repeat the last change"},Past:{undo:"undo your last change, or in the history the chosen one",redo:"redo",older:"a version back",newer:"a version forward"}};var P={form:L,help:F,palette:w(()=>import("./palette-GF75QKDT.js"),"late"),picker:w(()=>import("./picker-FL2XXOGB.js"))};function q({open:s}){let a=S(null);v(()=>{let r=document.activeElement;return a.current.showModal(),a.current.querySelector("[data-first]")?.focus({preventScroll:!0}),()=>r?.isConnected&&r.focus?.({preventScroll:!0})},[]);let n=r=>r.target===a.current&&h(),l=r=>(r.preventDefault(),h()),u=P[s.kind];return e`<dialog ref=${a} class=${s.kind} aria-labelledby="dialog-title" onCancel=${l}
    onMouseDown=${n}><${u} ...${s} /></dialog>`}function L({title:s,text:a=[],lines:n=[],code:l,fields:u=[],values:r={},confirm:p,danger:o,only:c,send:i}){let[m,k]=g(null);return e`<form method="dialog" onSubmit=${async t=>{t.preventDefault();let d={};for(let[$,y]of new FormData(t.currentTarget))d[$]=d[$]&&y?`${d[$]}T${y}`:d[$]||y.trim();if(!i)return h(d);try{h(await i(d))}catch($){if(!($ instanceof x))throw $;k($.message)}}} onKeyDown=${t=>t.key==="Enter"&&(t.ctrlKey||t.metaKey)&&t.currentTarget.requestSubmit()}>
    <h2 id="dialog-title"><bdi>${s}</bdi></h2>
    ${n.length>0&&e`<ul class="lines">
      ${n.map((t,d)=>e`<li key=${d}><bdi>${t}</bdi></li>`)}</ul>`}
    ${a.map(t=>e`<p key=${t}>${t}</p>`)}
    ${l&&e`<${T} of=${l} />`}
    <div class="fields">${u.map((t,d)=>e`<${V} key=${t.name} field=${t} value=${r[t.name]??""} first=${d===0} />`)}</div>
    <div class="buttons">
      ${m&&e`<p class="bad" role="alert" tabindex="-1" ref=${j}>${C(m)}</p>`}
      <span class="room"></span>
      ${!c&&e`<button type="button" onClick=${()=>h()}>Cancel</button>`}
      <button type="submit" class=${o?"danger":"primary"} data-first=${u.length?void 0:!0}>
        ${p}</button>
    </div>
  </form>`}var j=s=>s?.focus({preventScroll:!0});function V({field:s,value:a,first:n}){let{name:l,label:u,kind:r="line",hint:p,required:o,options:c,half:i,rows:m=4,offer:k}=s,f=`f-${l}`,b={id:f,name:l,"data-first":n||void 0,"aria-describedby":p?`${f}-hint`:void 0};return e`<div class=${`field${i?" half":""}`}>
    <label for=${f}>${u}${p&&e` <span class="hush" id=${`${f}-hint`}>${p}</span>`}</label>
    ${r==="long"?e`<textarea ...${b} required=${o} rows=${m} maxlength="65536"
          defaultValue=${a}></textarea>`:r==="choice"?e`<select ...${b}>${c.map(t=>e`<option key=${t} value=${t} selected=${t===a}>${t}</option>`)}</select>`:r==="time"?e`<span class="pair"><input ...${b} type="date" defaultValue=${a.slice(0,10)} />
              <input type="time" name=${l} aria-label="Time of day, optional"
                defaultValue=${a.slice(11)} /></span>`:e`<input ...${b} type="text" required=${o} maxlength=${l==="title"?500:8192}
              autocomplete="off" defaultValue=${a} list=${c&&`${f}-options`} />
              ${c&&e`<datalist id=${`${f}-options`}>
                ${c.map(t=>e`<option key=${t} value=${t} />`)}</datalist>`}`}
  </div>`}function F(){let[s,a]=g(D()),[n,l]=g(""),u=o=>(E(!o.currentTarget.checked),a(o.currentTarget.checked)),r=n.trim().toLowerCase(),p=Object.entries(K).map(([o,c])=>({title:o,keys:Object.entries(c).map(([i,m])=>({name:i,does:m,keys:_[i][0]})).filter(({does:i,keys:m})=>`${i} ${m.join(" ")}`.toLowerCase().includes(r))})).filter(({keys:o})=>o.length);return e`<h2 id="dialog-title" tabindex="-1" data-first>Keys</h2>
    <input type="search" aria-label="Search the keys" placeholder="Search the keys" value=${n}
      onInput=${o=>l(o.currentTarget.value)} />
    <div class="groups">${p.map(({title:o,keys:c})=>e`<section key=${o}>
      <h3>${o}</h3><dl>${c.map(i=>e`<${M} key=${i.name} ...${i} />`)}</dl></section>`)}</div>
    ${!p.length&&e`<p role="status">No key does that.</p>`}
    <div class="buttons">
      <label class="check">
        <input type="checkbox" checked=${s} onChange=${u} /> Turn off single-letter keys</label>
      <span class="room"></span><button class="primary" onClick=${()=>h()}>Close</button></div>`}var M=({keys:s,does:a})=>e`<div>
  <dt>${s.map(n=>e`<${O} key=${n} of=${n} />`)}</dt><dd>${a}</dd></div>`;export{q as default};
