/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as l,b as A,e as C,f as N,g as O,h as R,i as H,j as S}from"./chunk-C3WZHTOE.js";import"./chunk-L4KXB44Y.js";import{k as y}from"./chunk-JTC77UJH.js";import"./chunk-OUQ3P2J5.js";import{a as r}from"./chunk-4GEH7PW4.js";import{e as v,f as b}from"./chunk-R6VQCR7I.js";import"./chunk-EOHURGU6.js";import"./chunk-3OLJYULV.js";import{D as u,b as c,c as h,f as p,g as f,ua as g}from"./chunk-IALAHY4L.js";import{l as t}from"./chunk-OD44XGYS.js";var w=20;function x(){let[n=""]=h.value.rest,o=N().find(e=>e.name===n)??{name:n,running:[],spans:[]},s=r.value?.agents.find(e=>e.name===n),a=l.value.events.filter(({actor:e})=>e===n),d=a.filter(C).slice(0,w),k=({conversation:e,id:i})=>o.running.some($=>$.card.conversation===e&&$.id===i),m=(s?.tasks??[]).filter(e=>!k(e));return t`<${y} title=${n||"Agent"} />
    <main class="board agent" id="main">
      <p class="facts"><${b} of=${n} />
        <span>${s?f(s.facts.join(` ${u.dot} `)):r.value&&"Not here now."}</span></p>
      <section aria-labelledby="h-holds"><h2 id="h-holds">Works on</h2>
        ${o.running.map(e=>t`<${O} key=${`${e.card.conversation} ${e.id}`} task=${e}
          agent=${o} />`)}
        ${m.map(e=>t`<${L} key=${`${e.conversation} ${e.id}`} task=${e} />`)}
        ${!o.running.length&&!m.length&&t`<p class="hush">Nothing.</p>`}</section>
      <section aria-labelledby="h-results"><h2 id="h-results">Results</h2>
        ${d.map(e=>t`<${R} key=${e.seq} entry=${e} />`)}
        ${!d.length&&t`<p class="hush">None among the events read so far.</p>`}</section>
      <section aria-labelledby="h-did"><h2 id="h-did">What it did</h2>
        <ol>${H(a).map(({key:e,entries:i})=>t`<${S} key=${e} entries=${i} />`)}</ol>
        ${!a.length&&t`<p class="hush">Nothing among the events read so far.</p>`}
        ${l.value.hasOlder&&t`<button class="more" onClick=${()=>g(A)}>Older</button>`}
      </section>
    </main>`}function L({task:n}){let o={name:n.conversation,task:n.id};return t`<p><a href=${c(o)} onClick=${p(o)}>
    <${v} of=${`${n.list} #${n.id} ${n.title}`} /></a></p>`}export{x as default};
