/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as A,b as k}from"./chunk-MJAC5S7V.js";import{a as Z,d as D,e as P,f as u,g as R}from"./chunk-VTPJTOYB.js";import{M as g,Q as N,b as v,c as G,f as m,g as U,i as L,ia as w,j as x,ja as z,la as V,m as E,qa as O}from"./chunk-MKJRN2L2.js";import{i as h,k as y,l,m as F,n as S,v as _}from"./chunk-LCO4CKYC.js";var J=60,le=600,f=h({events:[],hasOlder:!0});function Y(s,n=f.peek().hasOlder){let t=[...new Map([...f.peek().events,...s].map(a=>[a.seq,a])).values()].sort((a,i)=>i.seq-a.seq);f.value={events:t.slice(0,Math.max(le,f.peek().events.length)),hasOlder:n}}async function ee(){let s=f.peek().events.at(-1)?.seq,n=new URLSearchParams({limit:J,...s&&{before:s}}),e=await O(()=>_("GET",`/api/v1/events/recent?${n}`));e&&Y(e.events,e.events.length===J)}z.add(s=>Y(s));var Q=!1;y(()=>{Q!==!1&&(Q=!1,V.followEvents(!1))});var C={"1 h":36e5,"8 h":288e5,today:null},q=3,ie=3,re=8,ce=30,ue=97,I=h("1 h"),X=()=>new Date().setHours(0,0,0,0),pe=()=>C[I.value]?w.value-C[I.value]:X(),$e=5e3,T=h([]),j=0;async function fe(){j=0;let s=Math.min(X(),Date.now()-C["8 h"]);try{let n=new URLSearchParams({from_at:s,to_at:Date.now()});T.value=(await _("GET",`/api/v1/spans?${n}`)).spans}catch(n){if(!(n instanceof F))throw n}}y(()=>{g.value,["now","agent"].includes(G.value.screen)&&S.value&&!S.value.scope.list&&!j&&(j=setTimeout(fe,T.peek().length?$e:0))});var M=s=>s===S.value?.person||s.startsWith("punch "),te=({event:s})=>s.type==="StatusChanged"&&(!!s.waits_for||["completed","failed"].includes(s.to));function de(){let s=new Map,n=e=>(s.has(e)||s.set(e,{name:e,running:[],results:[],spans:[],isHere:!1}),s.get(e));for(let e of g.value.values())for(let t of e.running??[])t.owner&&n(t.owner).running.push({...t,card:e});for(let{name:e,is_here:t}of Z.value?.agents??[])M(e)||(n(e).isHere=t);for(let e of f.value.events)te(e)&&!M(e.actor)&&n(e.actor).results.push(e);for(let e of T.value)e.owner&&!M(e.owner)&&n(e.owner).spans.push(e);for(let e of s.values())e.running.sort((t,a)=>t.since-a.since);return[...s.values()].sort((e,t)=>!e.running.length-!t.running.length||(e.name<t.name?-1:1))}function he(s){let n=s.spans.filter(({to_at:i})=>i>=X()),e=(...i)=>n.filter(({outcome:r})=>i.includes(r)).length,[t,a]=[e("completed","waits"),e("failed")];return[t&&`${t} done today`,a&&`${a} failed`].filter(Boolean).join(" \xB7 ")}function ve({name:s,running:[n]}){return n?[s,n.title,L(w.value-n.since),n.active_form].filter(Boolean).join(", "):s}function me({agent:s,isCompact:n}){let{name:e,running:t,results:a}=s,i=[...new Set(t.map(({card:o})=>N(o)))],r={screen:"agent",rest:[e]};return l`<div class="lane" role="group" aria-label=${U(ve(s))}>
    <div class="top"><${R} of=${e} /><a class="cut" href=${v(r)} onClick=${m(r)}>
        <b><${u} of=${e} /></b></a>
      ${i.length>0&&l`<span class="hush cut">in <${u} of=${i.join(", ")} /></span>`}
      <span class="tally">${he(s)}</span></div>
    ${!n&&s.spans.length>0&&l`<${ge} agent=${s} />`}
    ${t.slice(0,n?1:q).map(o=>l`<${we} key=${`${o.card.conversation} ${o.id}`} task=${o} agent=${s} />`)}
    ${t.length>q&&l`<p class="hush">and ${t.length-q} more</p>`}
    ${!n&&a.slice(0,ie).map(o=>l`<${be} key=${o.seq} entry=${o} />`)}
  </div>`}function ge({agent:s}){let[n,e]=[pe(),w.value],t=o=>100*(Math.min(e,Math.max(n,o))-n)/(e-n),a=s.spans.filter(({to_at:o})=>(o??e)>n),i=a.map(({from_at:o,to_at:c,outcome:$,conversation:p,task:d})=>l`
    <i key=${`${p} ${d} ${o}`} class=${`o-${$}`}
      style=${{left:`${t(o)}%`,width:`${t(c??e)-t(o)}%`}}></i>`),r=`${E(a.length,"task")} since ${x(n)}`;return l`<div class="strip" role="img" aria-label=${r}>${i}</div>
    <div class="axis" aria-hidden="true">${[0,.25,.5,.75].map(o=>l`<span key=${o}>${x(n+o*(e-n))}</span>`)}<span>now</span></div>`}function we({task:s,agent:n}){let{card:e,id:t,title:a,active_form:i,since:r}=s,o={name:e.conversation,task:t},$=n.spans.find(d=>d.outcome==="running"&&d.task===t&&d.conversation===e.conversation)?.estimate_ms,p=$&&Math.min(ue,100*(w.value-r)/$);return l`<div class="doing-now"><${D} state="in_progress" />
    <a class="cut" href=${v(o)} onClick=${m(o)}>
      <b><${u} of=${a} /></b> <span class="id">#${t}</span></a>
    <span class="took"><${P} at=${r} />${$&&` of ${L($)}`}</span>
    ${i&&l`<${u} class="now-doing cut" of=${i} />`}
    ${$&&l`<div class="progress" aria-hidden="true"><i style=${{width:`${p}%`}}></i></div>`}
  </div>`}var ke={asks:"asks",failed:"failed",completed:"completed"};function be({entry:s}){let{conversation:n,event:e,at:t,about:a}=s,{more:i,tone:r}=A(e),o={name:n,task:k(e)};return l`<div class="result"><${D} state=${ke[r]??"completed"} />
    <a class="cut" href=${v(o)} onClick=${m(o)}><${u} of=${a?.title??`#${k(e)}`} /></a>
    <${u} class="said cut" of=${i} /><${P} at=${t} /></div>`}var oe=({of:s,options:n,label:e})=>l`<div class="choices" role="group" aria-label=${e}>
  ${n.map(t=>l`<button key=${t} aria-pressed=${s.value===t}
    onClick=${()=>s.value=t}>${t}</button>`)}</div>`;function ye(){let s=de(),n=s.filter(o=>!o.running.length&&!o.isHere),e=s.filter(o=>o.running.length||o.isHere||o.results.length).slice(0,ce),t=[...g.value.values()].reduce((o,{counts:c})=>o+c.pending-(c.blocked??0),0),a=n.filter(o=>!e.includes(o)),i=e.length>re,r=s.length-e.length-a.length;return l`<section class="lanes" aria-labelledby="h-agents">
    <div class="column-head"><h2 id="h-agents">Agents</h2><span class="count">${e.length}</span>
      <span class="room"></span>
      ${!i&&T.value.length>0&&l`<${oe} of=${I} options=${Object.keys(C)} label="Span" />`}
    </div>
    <div class="scroller" tabindex="0" role="group" aria-label="Agents">
      ${e.map(o=>l`<${me} key=${o.name} agent=${o} isCompact=${i} />`)}
      ${!e.length&&l`<p class="hush">No agent works. ${E(t,"task is","tasks are")} ready:
        ${" "}<code>punch setup claude-code</code> connects an agent.</p>`}
      ${r>0&&l`<p class="hush">${r} more</p>`}
      ${a.length>0&&l`<p class="hush">Not here now: ${a.slice(0,5).map(({name:o})=>l`<span key=${o}><${u} of=${o} /> </span>`)}${a.length>5&&`and ${a.length-5} more`}</p>`}
    </div>
  </section>`}var se=h("all"),ne={all:()=>!0,results:te,people:({actor:s})=>M(s)},Se=({event:s})=>s.type==="TaskEdited"&&Object.keys(s).every(n=>["type","task","active_form"].includes(n));function _e(s){let n=new Map,e=new Set;for(let t of s){let{conversation:a,call:i,version:r,actor:o}=t;if(Se(t)){if(e.has(o))continue;e.add(o)}let c=`${a} ${i||r}`;n.has(c)?n.get(c).unshift(t):n.set(c,[t])}return[...n].map(([t,a])=>({key:t,entries:a}))}var xe={completed:"good",failed:"bad",asks:"asks",in_progress:""};function Ee({entries:[s,...n]}){let{at:e,actor:t,event:a,conversation:i,about:r}=s,{verb:o,more:c,tone:$}=A(a),p=k(a),d={name:i,task:p},W=g.value.get(i),B=n.filter(K=>A(K.event).verb===o&&k(K.event)!==p);return l`<li class="happened"><time title=${new Date(e).toLocaleString()}>${x(e)}</time>
    <${R} of=${t} size="small" /><div>
      <span class="sr"><${u} of=${t} /> </span><span class=${xe[$]??""}><${u} of=${o} /></span>
      ${p&&l` <a href=${v(d)} onClick=${m(d)}><b><${u} of=${r?.title??`#${p}`} /></b></a>`}
      ${B.length>0&&` and ${E(B.length,"other task")}`}
      ${c&&l`: <${u} of=${c.length>120?`${c.slice(0,119)}\u2026`:c} />`}
      <p class="where"><${u} of=${W?N(W):r?.list??i} />${p&&` #${p}`}</p>
    </div></li>`}var ae=30,H=h(ae),b=h(null);function Oe(){let s=_e(f.value.events.filter(ne[se.value])),n=b.value?s.findIndex(({key:i})=>i===b.value):0,e=s.slice(Math.max(0,n),Math.max(0,n)+H.value),t=({pointerType:i})=>i!=="touch"&&(b.value=e[0]?.key??null),a=()=>{H.value+=ae,H.value>s.length&&O(ee)};return l`<section class="feed" aria-labelledby="h-feed">
    <div class="column-head"><h2 id="h-feed">What happens</h2>
      ${n>0&&l`<button class="new" onClick=${()=>b.value=null}>${n} new ↑</button>`}
      <span class="room"></span><${oe} of=${se} options=${Object.keys(ne)} label="Show" /></div>
    <div class="scroller" tabindex="0" role="group" aria-label="Newest first" onPointerEnter=${t}
      onPointerLeave=${()=>b.value=null}>
      <div role="log" aria-live="off" aria-label="What happens"><ol>
        ${e.map(({key:i,entries:r})=>l`<${Ee} key=${i} entries=${r} />`)}</ol></div>
      ${!e.length&&l`<p class="hush">Nothing yet.</p>`}
      ${(f.value.hasOlder||s.length>e.length)&&e.length>0&&l`
        <button class="more" onClick=${a}>Older</button>`}
    </div>
  </section>`}function Ae(){return l`<${ye} /><${Oe} />`}export{f as a,ee as b,I as c,T as d,te as e,de as f,we as g,be as h,_e as i,Ee as j,Ae as k};
