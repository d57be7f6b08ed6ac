/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{b as O,c as b}from"./chunk-L4KXB44Y.js";import{a as J}from"./chunk-4GEH7PW4.js";import{c as P,d as q,e as u,f as H}from"./chunk-R6VQCR7I.js";import{O as k,S as N,b as m,c as x,f as g,g as z,i as D,l as A,ma as w,na as V,o as E,pa as Z,ua as M}from"./chunk-IALAHY4L.js";import{i as h,k as S,l,m as U,n as v,y as _}from"./chunk-OD44XGYS.js";var le=["now","agent"],Q=60,ie=600,p=h({events:[],hasOlder:!0});function ee(n,s=p.peek().hasOlder,e=p.peek().events.length){let i=[...new Map([...p.peek().events,...n].map(a=>[a.seq,a])).values()].sort((a,r)=>r.seq-a.seq);p.value={events:i.slice(0,Math.max(ie,e)),hasOlder:s}}async function I(){let n=p.peek().events.at(-1)?.seq,s=new URLSearchParams({limit:Q,...n&&{before:n}}),e=await M(()=>_("GET",`/api/v1/events/recent?${s}`));e&&ee(e.events,e.events.length===Q,1/0)}V.add(n=>ee(n));var Y=!1;S(()=>{let n=le.includes(x.value.screen)&&!!v.value&&!v.value.scope.list;n!==Y&&(Y=n,Z.followEvents(n),n&&(p.value={events:[],hasOlder:!0},I()))});var C={"1 h":36e5,"8 h":288e5,today:null},R=3,re=3,ce=8,ue=30,$e=97,X=h("1 h"),B=()=>new Date().setHours(0,0,0,0),pe=()=>C[X.value]?w.value-C[X.value]:B(),fe=5e3,L=h([]),W=0;async function de(){W=0;let n=Math.min(B(),Date.now()-C["8 h"]);try{let s=new URLSearchParams({from_at:n,to_at:Date.now()});L.value=(await _("GET",`/api/v1/spans?${s}`)).spans}catch(s){if(!(s instanceof U))throw s}}S(()=>{k.value,["now","agent"].includes(x.value.screen)&&v.value&&!v.value.scope.list&&!W&&(W=setTimeout(de,L.peek().length?fe:0))});var T=n=>n===v.value?.person||n.startsWith("punch "),te=({event:n})=>n.type==="StatusChanged"&&(!!n.waits_for||["completed","failed"].includes(n.to));function he(){let n=new Map,s=e=>(n.has(e)||n.set(e,{name:e,running:[],results:[],spans:[],isHere:!1}),n.get(e));for(let e of k.value.values())for(let t of e.running??[])t.owner&&s(t.owner).running.push({...t,card:e});for(let{name:e,is_here:t}of J.value?.agents??[])T(e)||(s(e).isHere=t);for(let e of p.value.events)te(e)&&!T(e.actor)&&s(e.actor).results.push(e);for(let e of L.value)e.owner&&!T(e.owner)&&s(e.owner).spans.push(e);for(let e of n.values())e.running.sort((t,i)=>t.since-i.since);return[...n.values()].sort((e,t)=>!e.running.length-!t.running.length||(e.name<t.name?-1:1))}function ve(n){let s=n.spans.filter(({to_at:a})=>a>=B()),e=(...a)=>s.filter(({outcome:r})=>a.includes(r)).length,[t,i]=[e("completed","waits"),e("failed")];return[t&&`${t} done today`,i&&`${i} failed`].filter(Boolean).join(" \xB7 ")}function me({name:n,running:[s]}){return s?[n,s.title,D(w.value-s.since),s.active_form].filter(Boolean).join(", "):n}function ge({agent:n,isCompact:s}){let{name:e,running:t,results:i}=n,a=[...new Set(t.map(({card:o})=>N(o)))],r={screen:"agent",rest:[e]};return l`<div class="lane" role="group" aria-label=${z(me(n))}>
    <div class="top"><${H} of=${e} /><a class="cut" href=${m(r)} onClick=${g(r)}>
        <b><${u} of=${e} /></b></a>
      ${a.length>0&&l`<span class="hush cut">
        <${u} of=${`${s?`${t[0].title}, `:""}in ${a.join(", ")}`} /></span>`}
      <span class="tally">${ve(n)}</span></div>
    ${!s&&n.spans.length>0&&l`<${ke} agent=${n} />`}
    ${!s&&t.slice(0,R).map(o=>l`<${we} key=${`${o.card.conversation} ${o.id}`} task=${o} agent=${n} />`)}
    ${!s&&t.length>R&&l`<p class="hush">and ${t.length-R} more</p>`}
    ${!s&&i.slice(0,re).map(o=>l`<${ye} key=${o.seq} entry=${o} />`)}
  </div>`}function ke({agent:n}){let[s,e]=[pe(),w.value],t=o=>100*(Math.min(e,Math.max(s,o))-s)/(e-s),i=n.spans.filter(({to_at:o})=>(o??e)>s),a=i.map(({from_at:o,to_at:c,outcome:f,conversation:$,task:d})=>l`
    <i key=${`${$} ${d} ${o}`} class=${`o-${f}`}
      style=${{left:`${t(o)}%`,width:`${t(c??e)-t(o)}%`}}></i>`),r=`${E(i.length,"task")} since ${A(s)}`;return l`<div class="strip" role="img" aria-label=${r}>${a}</div>
    <div class="axis" aria-hidden="true">${[0,.25,.5,.75].map(o=>l`<span key=${o}>${A(s+o*(e-s))}</span>`)}<span>now</span></div>`}function we({task:n,agent:s}){let{card:e,id:t,title:i,active_form:a,since:r}=n,o={name:e.conversation,task:t},f=s.spans.find(d=>d.outcome==="running"&&d.task===t&&d.conversation===e.conversation)?.estimate_ms,$=f&&Math.min($e,100*(w.value-r)/f);return l`<div class="doing-now"><${P} state="in_progress" />
    <a class="cut" href=${m(o)} onClick=${g(o)}>
      <b><${u} of=${i} /></b> <span class="id">#${t}</span></a>
    <span class="took"><${q} at=${r} />${f&&` of ${D(f)}`}</span>
    ${a&&l`<${u} class="now-doing cut" of=${a} />`}
    ${f&&l`<div class="progress" aria-hidden="true"><i style=${{width:`${$}%`}}></i></div>`}
  </div>`}var be={asks:"asks",failed:"failed",completed:"completed"};function ye({entry:n}){let{conversation:s,event:e,at:t,about:i}=n,{more:a,tone:r}=O(e),o={name:s,task:b(e)};return l`<div class="result"><${P} state=${be[r]??"completed"} />
    <a class="cut" href=${m(o)} onClick=${g(o)}><${u} of=${i?.title??`#${b(e)}`} /></a>
    <${u} class="said cut" of=${a} /><${q} at=${t} /></div>`}var oe=({of:n,options:s,label:e})=>l`<div class="choices" role="group" aria-label=${e}>
  ${s.map(t=>l`<button key=${t} aria-pressed=${n.value===t}
    onClick=${()=>n.value=t}>${t}</button>`)}</div>`;function Se(){let n=he(),s=n.filter(o=>!o.running.length&&!o.isHere),e=n.filter(o=>o.running.length||o.isHere||o.results.length).slice(0,ue),t=[...k.value.values()].reduce((o,{counts:c})=>o+c.pending-(c.blocked??0),0),i=s.filter(o=>!e.includes(o)),a=e.length>ce,r=n.length-e.length-i.length;return l`<section class="lanes" aria-labelledby="h-agents">
    <div class="column-head"><h2 id="h-agents">Agents</h2><span class="count">${e.length}</span>
      <span class="room"></span>
      ${!a&&L.value.length>0&&l`<${oe} of=${X} options=${Object.keys(C)} label="Span" />`}
    </div>
    <div class="scroller" tabindex="0" role="group" aria-label="Agents">
      ${e.map(o=>l`<${ge} key=${o.name} agent=${o} isCompact=${a} />`)}
      ${!e.length&&l`<p class="hush">No agent works. ${E(t,"task is","tasks are")} ready:
        ${" "}<code>punch setup claude-code</code> connects an agent.</p>`}
      ${r>0&&l`<p class="hush">${r} more</p>`}
      ${i.length>0&&l`<p class="hush">Not here now: ${i.slice(0,5).map(({name:o})=>l`<span key=${o}><${u} of=${o} /> </span>`)}${i.length>5&&`and ${i.length-5} more`}</p>`}
    </div>
  </section>`}var ne=h("all"),se={all:()=>!0,results:te,people:({actor:n})=>T(n)},_e=({event:n})=>n.type==="TaskEdited"&&Object.keys(n).every(s=>["type","task","active_form"].includes(s));function xe(n){let s=new Map,e=new Set;for(let t of n){let{conversation:i,call:a,version:r,actor:o}=t;if(_e(t)){if(e.has(o))continue;e.add(o)}let c=`${i} ${a||r}`;s.has(c)?s.get(c).unshift(t):s.set(c,[t])}return[...s].map(([t,i])=>({key:t,entries:i}))}var Ae={completed:"good",failed:"bad",asks:"asks",in_progress:""};function Ee({entries:[n,...s]}){let{at:e,actor:t,event:i,conversation:a,about:r}=n,{verb:o,more:c,tone:f}=O(i),$=b(i),d={name:a,task:$},K=k.value.get(a),F=s.filter(G=>O(G.event).verb===o&&b(G.event)!==$);return l`<li class="happened"><time title=${new Date(e).toLocaleString()}>${A(e)}</time>
    <${H} of=${t} size="small" /><div>
      <span class="sr"><${u} of=${t} /> </span><span class=${Ae[f]??""}><${u} of=${$?o.replace(/ it$/,""):o} /></span>
      ${$&&l` <a href=${m(d)} onClick=${g(d)}><b><${u} of=${r?.title??`#${$}`} /></b></a>`}
      ${F.length>0&&` and ${E(F.length,"other task")}`}
      ${c&&l`: <${u} of=${c.length>120?`${c.slice(0,119)}\u2026`:c} />`}
      <p class="where"><${u} of=${K?N(K):r?.list??a} />${$&&` #${$}`}</p>
    </div></li>`}var ae=16,j=h(ae),y=h(null);function Me(){let n=xe(p.value.events.filter(se[ne.value])),s=y.value?n.findIndex(({key:a})=>a===y.value):0,e=n.slice(Math.max(0,s),Math.max(0,s)+j.value),t=({pointerType:a})=>a!=="touch"&&(y.value=e[0]?.key??null),i=()=>{j.value+=ae,j.value>n.length&&M(I)};return l`<section class="feed" aria-labelledby="h-feed">
    <div class="column-head"><h2 id="h-feed">What happens</h2>
      ${s>0&&l`<button class="new" onClick=${()=>y.value=null}>${s} new ↑</button>`}
      <span class="room"></span><${oe} of=${ne} options=${Object.keys(se)} label="Show" /></div>
    <div class="scroller" tabindex="0" role="group" aria-label="Newest first" onPointerEnter=${t}
      onPointerLeave=${()=>y.value=null}>
      <div role="log" aria-live="off" aria-label="What happens"><ol>
        ${e.map(({key:a,entries:r})=>l`<${Ee} key=${a} entries=${r} />`)}</ol></div>
      ${!e.length&&l`<p class="hush">Nothing yet.</p>`}
      ${(p.value.hasOlder||n.length>e.length)&&e.length>0&&l`
        <button class="more" onClick=${i}>Older</button>`}
    </div>
  </section>`}function Oe(){return l`<${Se} /><${Me} />`}export{p as a,I as b,X as c,L as d,te as e,he as f,we as g,ye as h,xe as i,Ee as j,Oe as k};
