/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{b as Q,c as V}from"./chunk-L4KXB44Y.js";import{b as ts}from"./chunk-KXD3ATBC.js";import{a as h,b as W,c as Z,d as ss,e as es}from"./chunk-2RK6HVVF.js";import{k as K}from"./chunk-JTC77UJH.js";import{a as D,b as L,e as F,f as N,g as H,h as O,i as J,l as U,n as f}from"./chunk-OUQ3P2J5.js";import"./chunk-4GEH7PW4.js";import{c as E,d as X,e as c,f as T}from"./chunk-R6VQCR7I.js";import"./chunk-D6VCSTRL.js";import{I as B}from"./chunk-EOHURGU6.js";import"./chunk-KAFZXHOK.js";import"./chunk-3OLJYULV.js";import{D as P,N as R,O as S,S as j,b as G,c as u,d as Y,f as M,g as m,h as d,l as x,ua as z}from"./chunk-IALAHY4L.js";import{b as p,c as w,k as A,l as e,n as C,y as g}from"./chunk-OD44XGYS.js";var os="punchlist.seen",cs=500,$s=200,ps=({list:s,id:t})=>Y({screen:"inbox",rest:[s,t]},{trail:!1});B("inbox",es(f));var ns=()=>{let[s,t]=u.value.rest;return t&&{list:s,id:t,key:`${s} ${t}`,listTitle:S.value.has(s)?j(S.value.get(s)):s}};A(()=>{u.value.screen==="inbox"&&u.value.rest.length&&(h.value=ns().key)});function us(){let s=W.value,t=s.findIndex(({key:i})=>i===h.value),a=s[t]??L.value.find(({key:i})=>i===h.value)??ns(),l=s.slice(t+1).find(i=>!J(i));return e`<${K} title="Inbox">${t>=0&&e`<span class="done">${t+1} of ${s.length}</span>`}<//>
    <main class="now inbox" id="main"><${Z} onOpen=${f} />
      ${a?e`<${ks} key=${a.key} need=${a} next=${l} />`:e`<section class="question"><div class="teach"><h2>Nothing needs you</h2>
            <p>Tasks that wait for your yes, and tasks that failed, appear here.</p></div></section>`}
    </main>`}var ms=()=>JSON.parse(localStorage.getItem(os)??"{}");function ds(s){let{[s]:t,...a}=ms(),l=Object.entries(a).slice(1-cs);return localStorage.setItem(os,JSON.stringify(Object.fromEntries([...l,[s,Date.now()]]))),t}async function fs(s,t){let a=`${R}${encodeURIComponent(s.list)}/events?limit=${$s}`,[{task:l},{events:i}]=await Promise.all([g("GET",U(s)),t?g("GET",a):{events:[]}]);return{task:l,news:i.filter(({at:k,event:y})=>k>t&&V(y)===s.id)}}var hs=500;function ks({need:s,next:t}){let[a]=p(()=>ds(s.key)),[l,i]=p(null),[k,y]=p(!H.peek().size);w(()=>{z(()=>fs(s,a)).then(i)},[s.version,O.value.get(s.key)]),w(()=>{let n=setTimeout(()=>y(!0),hs);return()=>clearTimeout(n)},[]);let{task:o,news:I=[]}=l??{},{list:as,listTitle:is,id:v}=s,_={name:as,task:v},ls=o?.title??s.title,$=o?.owner??s.owner,r=s.kind??(o?.waits_for==="yes"?"yes":null),b=r==="yes"&&o?{...s,kind:r,owner:$,by:o.gate?.by}:s,q=o?o.fail_reason||o.result_summary:s.text,rs=O.value.has(s.key);return e`<section class="question" aria-labelledby="h-question">
    <div class="scroller" tabindex="0" role="group" aria-label="The question">
      <p class="kind"><span class=${`pill k-${r}`}><${E} state=${N[r]??"completed"} />
        ${r?F(b).toLowerCase():"answered"}</span><span class="room"></span>
        <a href=${G(_)} onClick=${M(_)}><${c} of=${is} />${v&&` #${v}`}</a></p>
      <h2 id="h-question"><${c} of=${ls} /></h2>
      ${$&&e`<p class="facts"><${T} of=${$} size="small" /><${c} of=${$} />
        ${s.since&&e`<span>${P.dot} <${X} at=${s.since} /> ago</span>`}</p>`}
      ${rs&&e`<p class="changed" role="status">It has changed since you read it. This is how it is now.</p>`}
      ${I.length>0&&e`<div class="box"><h3>Since you last looked, ${x(a)}</h3><ul>
        ${I.map(n=>e`<${vs} key=${n.seq} entry=${n} />`)}</ul></div>`}
      ${q&&e`<p class="prose">${d(q)}</p>`}
      ${o?.description&&e`<details><summary>Description</summary>
        <p class="prose">${d(o.description)}</p></details>`}
      ${r&&o?.blocks?.length>0&&e`<p class="frees">${r==="yes"?"Your yes":"It"} frees
        ${" "}${o.blocks.map(n=>`#${n}`).join(", ")}</p>`}
      ${o?.links?.length>0&&e`<div class="box">
        ${o.links.map(n=>e`<${ts} key=${n.kind+n.to} link=${n} />`)}</div>`}
      ${o?.notes?.length>0&&e`<div class="box"><h3>Notes</h3>${o.notes.map(n=>e`
        <p key=${n.version} class="prose"><span class="hush"><${c} of=${n.actor} />, ${x(n.at)}</span>
          ${" "}${d(n.text)}</p>`)}</div>`}
      ${t&&e`<button class="box next" onClick=${()=>ps(t)}><span class="hush">Next</span>
        <${E} state=${N[t.kind]} /><${c} class="cut" of=${t.title} /><span class="room"></span>›</button>`}
    </div>
    ${r&&(D(b)?e`<p class="refused">${ys(b)}</p>`:e`<fieldset class="thumbs" disabled=${!k}><legend class="sr">Your answer</legend>
          <${ss} need=${{...s,kind:r,version:s.version??o?.version}} onOpen=${f} /></fieldset>`)}
  </section>`}var ys=({by:s})=>s&&s!==C.value?.person?`Only ${m(s)} can say yes.`:"You did this one yourself, so another person answers.";function vs({entry:{actor:s,event:t}}){let{verb:a,more:l,tone:i}=Q(t);return e`<li><${T} of=${s} size="small" /><span><span class="sr">${m(s)} </span>
    <span class=${i==="failed"?"bad":""}>${m(a)}</span>${l&&e`: <${c} of=${l} />`}</span></li>`}export{us as default};
