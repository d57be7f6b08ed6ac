/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{f as W}from"./chunk-2RK6HVVF.js";import{k as v,l as P}from"./chunk-JTC77UJH.js";import"./chunk-OUQ3P2J5.js";import"./chunk-4GEH7PW4.js";import{c as M,d as H,e as c,f as T,h as q,m as E,n as G}from"./chunk-R6VQCR7I.js";import{a as f,b as C,c as R,d as x,e as m,f as z,g as h,h as I}from"./chunk-EOHURGU6.js";import"./chunk-3OLJYULV.js";import{O as $,P as F,Q as L,R as N,S as _,b as p,c as b,e as k,f as u,i as w,ma as B,o as d,p as S,t as O}from"./chunk-IALAHY4L.js";import{l as t,o as y}from"./chunk-OD44XGYS.js";var j=matchMedia("(pointer: coarse)").matches?56:42,K=3;function Q(){let e=[];for(let s of x())if(e.push({section:s}),!h(s.key))for(let n of s.cards){let a=(n.running??[]).slice(0,K),o=n.counts.in_progress-a.length;e.push({card:n,moved:s.moved?.has(n.conversation),more:o});for(let l of a)e.push({card:n,task:l})}return e}function U(){if(!F.value)return t`<${v} title="Lists" /><main class="board">
      <p class="hush" role="status">${y.value==="away"?"":"Opening\u2026"}</p></main>`;let e=Q(),s=[...$.value.values()].reduce((a,{counts:o})=>a+o.pending+o.in_progress+o.paused,0),n=e.findIndex(({card:a,task:o})=>a&&!o&&a.conversation===f.value);return t`<${v} title="Lists">
      <span class="facts">${$.value.size.toLocaleString()}, with ${d(s,"open task")}</span>
      <${P} of=${N} label="Filter lists" /><${D} /><//>
    <main class="lists" id="main">
      ${e.length>0&&t`<${G} items=${e} size=${j} active=${n} class="table" role="group"
        aria-label="Lists" onPointerEnter=${m} onPointerLeave=${()=>C.value=null}
        onFocusIn=${m} onFocusOut=${z}>
        ${a=>t`<${V} key=${X(a)} ...${a} />`}<//>`}
      ${!e.length&&($.value.size?t`<${J} />`:t`<${W} />`)}
    </main>`}var X=({section:e,card:s,task:n})=>e?`section ${e.key}`:`${s.conversation} ${n?.id??""}`,D=()=>t`<div class="segments" role="group" aria-label="Order of the lists">
  ${Object.keys(R).map(e=>t`<button key=${e} class="quiet"
    aria-pressed=${(b.value.query.sort??"need")===e?"true":"false"}
    onClick=${()=>k({sort:e==="need"?"":e})}>by ${e}</button>`)}</div>`,J=()=>t`<div class="teach">
  <h2>No matching lists</h2>
  <p>${d($.value.size,"list is","lists are")} hidden by the filter. <${q} of="escape" /> clears it.</p>
</div>`;function V({section:e,card:s,task:n,moved:a,more:o}){let l={height:`${j}px`};if(e){let i=h(e.key);return t`<h2 class=${`group-head sec-${e.key}`} style=${l}>
      <button class="text" aria-expanded=${i?"false":"true"} onClick=${()=>I(e.key)}>
        <span aria-hidden="true">${i?"\u25B8":"\u25BE"}</span> ${e.title}</button>${" "}
      <span class="count">${e.cards.length.toLocaleString()}</span></h2>`}return n?t`<${ee} card=${s} task=${n} style=${l} />`:t`<${Z} card=${s} moved=${a} more=${o} style=${l} />`}function Y({counts:e,damaged:s,settings:n,shared:a,waiting:o=0}){return[s&&["bad","damaged"],a&&["warn",S(a)],o>0&&["asks",d(o,"waits for a yes","wait for a yes")],e.failed&&n?.on_failure==="stop"&&["bad","stopped"],e.failed&&["bad",`${e.failed} failed`],e.paused>o&&["warn",`${e.paused-o} paused`],e.blocked&&["dim",`${e.blocked} blocked`]].filter(Boolean)}function Z({card:e,moved:s,more:n,style:a}){let{counts:o,conversation:l}=e,i=L(o),A=[...new Set((e.running??[]).map(r=>r.owner).filter(Boolean))];return t`<a class=${`card${f.value===l?" picked":""}`} data-list=${l} style=${a}
    href=${p({name:l})} onClick=${u({name:l})}>
    <span class="moved" title=${s?"Sorts in when you leave the table":void 0}>${s?"\u2022":""}</span>
    <b><${c} class="cut" of=${_(e)} /></b>
    <${E} counts=${o} />
    <span class="done">${i?`${o.completed} of ${i}`:"empty"}</span>
    <span class="notes">${Y(e).map(([r,g])=>t`<span key=${g} class=${r}>${g}</span>`)}</span>
    <span class="agents">${A.map(r=>t`<${T} key=${r} of=${r} />`)}
      ${n>0&&t`<span class="hush">${n} more at work</span>`}</span>
    <span class="when">${w(B.value-e.updated_at)}<span class="sr"> ago</span></span>
  </a>`}function ee({card:e,task:s,style:n}){let a={name:e.conversation,task:s.id};return t`<a class="running" style=${n} href=${p(a)} onClick=${u(a)}>
    <${M} state="in_progress" /><span class="what cut"><${c} of=${s.title} />${" "}
      <span class="id">#${s.id}</span></span>
    <${c} class="doing cut" of=${s.active_form} />
    ${s.owner&&t`<${c} class="owner" of=${O(s)} />`}<${H} at=${s.since} /></a>`}export{U as default};
