/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{b as O,c as b}from"./chunk-L4KXB44Y.js";import{a as J}from"./chunk-4GEH7PW4.js";import{c as P,d as q,e as u,f as H}from"./chunk-R6VQCR7I.js";import{O as k,S as N,b as m,c as x,f as g,g as z,i as D,l as A,ma as w,na as V,o as E,pa as Z,ua as M}from"./chunk-IALAHY4L.js";import{i as h,k as S,l,m as U,n as v,y as _}from"./chunk-OD44XGYS.js";var le=["now","agent"],Q=60,ie=600,$=h({events:[],hasOlder:!0});function ee(n,s=$.peek().hasOlder,e=$.peek().events.length){let i=[...new Map([...$.peek().events,...n].map(a=>[a.seq,a])).values()].sort((a,r)=>r.seq-a.seq);$.value={events:i.slice(0,Math.max(ie,e)),hasOlder:s}}async function I(){let n=$.peek().events.at(-1)?.seq,s=new URLSearchParams({limit:Q,...n&&{before:n}}),e=await M(()=>_("GET",`/api/v1/events/recent?${s}`));e&&ee(e.events,e.events.length===Q,1/0)}V.add(n=>ee(n));var Y=!1;S(()=>{let n=le.includes(x.value.screen)&&!!v.value&&!v.value.scope.list;n!==Y&&(Y=n,Z.followEvents(n),n&&($.value={events:[],hasOlder:!0},I()))});var T={"1 h":36e5,"8 h":288e5,today:null},R=3,re=3,ce=8,ue=30,pe=97,X=h("1 h"),B=()=>new Date().setHours(0,0,0,0),$e=()=>T[X.value]?w.value-T[X.value]:B(),fe=5e3,L=h([]),W=0;async function de(){W=0;let n=Math.min(B(),Date.now()-T["8 h"]);try{let s=new URLSearchParams({from_at:n,to_at:Date.now()});L.value=(await _("GET",`/api/v1/spans?${s}`)).spans}catch(s){if(!(s instanceof U))throw s}}S(()=>{k.value,["now","agent"].includes(x.value.screen)&&v.value&&!v.value.scope.list&&!W&&(W=setTimeout(de,L.peek().length?fe:0))});var C=n=>n===v.value?.person||n.startsWith("punch "),te=({event:n})=>n.type==="StatusChanged"&&(!!n.waits_for||["completed","failed"].includes(n.to));function he(){let n=new Map,s=e=>(n.has(e)||n.set(e,{name:e,running:[],results:[],spans:[],isHere:!1}),n.get(e));for(let e of k.value.values())for(let o of e.running??[])o.owner&&s(o.owner).running.push({...o,card:e});for(let{name:e,is_here:o}of J.value?.agents??[])C(e)||(s(e).isHere=o);for(let e of $.value.events)te(e)&&!C(e.actor)&&s(e.actor).results.push(e);for(let e of L.value)e.owner&&!C(e.owner)&&s(e.owner).spans.push(e);for(let e of n.values())e.running.sort((o,i)=>o.since-i.since);return[...n.values()].sort((e,o)=>!e.running.length-!o.running.length||(e.name<o.name?-1:1))}function ve(n){let s=n.spans.filter(({to_at:a})=>a>=B()),e=(...a)=>s.filter(({outcome:r})=>a.includes(r)).length,[o,i]=[e("completed","waits"),e("failed")];return[o&&`${o} done today`,i&&`${i} failed`].filter(Boolean).join(" \xB7 ")}function me({name:n,running:[s]}){return s?[n,s.title,D(w.value-s.since),s.active_form].filter(Boolean).join(", "):n}function ge({agent:n,isCompact:s}){let{name:e,running:o,results:i}=n,a=[...new Set(o.map(({card:t})=>N(t)))],r={screen:"agent",rest:[e]};return l`<div class="lane" role="group" aria-label=${z(me(n))}>
    <div class="top"><${H} of=${e} /><a class="cut" href=${m(r)} onClick=${g(r)}>
        <b><${u} of=${e} /></b></a>
      ${a.length>0&&l`<span class="hush cut">in <${u} of=${a.join(", ")} /></span>`}
      <span class="tally">${ve(n)}</span></div>
    ${!s&&n.spans.length>0&&l`<${ke} agent=${n} />`}
    ${o.slice(0,s?1:R).map(t=>l`<${we} key=${`${t.card.conversation} ${t.id}`} task=${t} agent=${n} />`)}
    ${o.length>R&&l`<p class="hush">and ${o.length-R} more</p>`}
    ${!s&&i.slice(0,re).map(t=>l`<${ye} key=${t.seq} entry=${t} />`)}
  </div>`}function ke({agent:n}){let[s,e]=[$e(),w.value],o=t=>100*(Math.min(e,Math.max(s,t))-s)/(e-s),i=n.spans.filter(({to_at:t})=>(t??e)>s),a=i.map(({from_at:t,to_at:c,outcome:f,conversation:p,task:d})=>l`
    <i key=${`${p} ${d} ${t}`} class=${`o-${f}`}
      style=${{left:`${o(t)}%`,width:`${o(c??e)-o(t)}%`}}></i>`),r=`${E(i.length,"task")} since ${A(s)}`;return l`<div class="strip" role="img" aria-label=${r}>${a}</div>
    <div class="axis" aria-hidden="true">${[0,.25,.5,.75].map(t=>l`<span key=${t}>${A(s+t*(e-s))}</span>`)}<span>now</span></div>`}function we({task:n,agent:s}){let{card:e,id:o,title:i,active_form:a,since:r}=n,t={name:e.conversation,task:o},f=s.spans.find(d=>d.outcome==="running"&&d.task===o&&d.conversation===e.conversation)?.estimate_ms,p=f&&Math.min(pe,100*(w.value-r)/f);return l`<div class="doing-now"><${P} state="in_progress" />
    <a class="cut" href=${m(t)} onClick=${g(t)}>
      <b><${u} of=${i} /></b> <span class="id">#${o}</span></a>
    <span class="took"><${q} at=${r} />${f&&` of ${D(f)}`}</span>
    ${a&&l`<${u} class="now-doing cut" of=${a} />`}
    ${f&&l`<div class="progress" aria-hidden="true"><i style=${{width:`${p}%`}}></i></div>`}
  </div>`}var be={asks:"asks",failed:"failed",completed:"completed"};function ye({entry:n}){let{conversation:s,event:e,at:o,about:i}=n,{more:a,tone:r}=O(e),t={name:s,task:b(e)};return l`<div class="result"><${P} state=${be[r]??"completed"} />
    <a class="cut" href=${m(t)} onClick=${g(t)}><${u} of=${i?.title??`#${b(e)}`} /></a>
    <${u} class="said cut" of=${a} /><${q} at=${o} /></div>`}var oe=({of:n,options:s,label:e})=>l`<div class="choices" role="group" aria-label=${e}>
  ${s.map(o=>l`<button key=${o} aria-pressed=${n.value===o}
    onClick=${()=>n.value=o}>${o}</button>`)}</div>`;function Se(){let n=he(),s=n.filter(t=>!t.running.length&&!t.isHere),e=n.filter(t=>t.running.length||t.isHere||t.results.length).slice(0,ue),o=[...k.value.values()].reduce((t,{counts:c})=>t+c.pending-(c.blocked??0),0),i=s.filter(t=>!e.includes(t)),a=e.length>ce,r=n.length-e.length-i.length;return l`<section class="lanes" aria-labelledby="h-agents">
    <div class="column-head"><h2 id="h-agents">Agents</h2><span class="count">${e.length}</span>
      <span class="room"></span>
      ${!a&&L.value.length>0&&l`<${oe} of=${X} options=${Object.keys(T)} label="Span" />`}
    </div>
    <div class="scroller" tabindex="0" role="group" aria-label="Agents">
      ${e.map(t=>l`<${ge} key=${t.name} agent=${t} isCompact=${a} />`)}
      ${!e.length&&l`<p class="hush">No agent works. ${E(o,"task is","tasks are")} ready:
        ${" "}<code>punch setup claude-code</code> connects an agent.</p>`}
      ${r>0&&l`<p class="hush">${r} more</p>`}
      ${i.length>0&&l`<p class="hush">Not here now: ${i.slice(0,5).map(({name:t})=>l`<span key=${t}><${u} of=${t} /> </span>`)}${i.length>5&&`and ${i.length-5} more`}</p>`}
    </div>
  </section>`}var ne=h("all"),se={all:()=>!0,results:te,people:({actor:n})=>C(n)},_e=({event:n})=>n.type==="TaskEdited"&&Object.keys(n).every(s=>["type","task","active_form"].includes(s));function xe(n){let s=new Map,e=new Set;for(let o of n){let{conversation:i,call:a,version:r,actor:t}=o;if(_e(o)){if(e.has(t))continue;e.add(t)}let c=`${i} ${a||r}`;s.has(c)?s.get(c).unshift(o):s.set(c,[o])}return[...s].map(([o,i])=>({key:o,entries:i}))}var Ae={completed:"good",failed:"bad",asks:"asks",in_progress:""};function Ee({entries:[n,...s]}){let{at:e,actor:o,event:i,conversation:a,about:r}=n,{verb:t,more:c,tone:f}=O(i),p=b(i),d={name:a,task:p},K=k.value.get(a),F=s.filter(G=>O(G.event).verb===t&&b(G.event)!==p);return l`<li class="happened"><time title=${new Date(e).toLocaleString()}>${A(e)}</time>
    <${H} of=${o} size="small" /><div>
      <span class="sr"><${u} of=${o} /> </span><span class=${Ae[f]??""}><${u} of=${p?t.replace(/ it$/,""):t} /></span>
      ${p&&l` <a href=${m(d)} onClick=${g(d)}><b><${u} of=${r?.title??`#${p}`} /></b></a>`}
      ${F.length>0&&` and ${E(F.length,"other task")}`}
      ${c&&l`: <${u} of=${c.length>120?`${c.slice(0,119)}\u2026`:c} />`}
      <p class="where"><${u} of=${K?N(K):r?.list??a} />${p&&` #${p}`}</p>
    </div></li>`}var ae=30,j=h(ae),y=h(null);function Me(){let n=xe($.value.events.filter(se[ne.value])),s=y.value?n.findIndex(({key:a})=>a===y.value):0,e=n.slice(Math.max(0,s),Math.max(0,s)+j.value),o=({pointerType:a})=>a!=="touch"&&(y.value=e[0]?.key??null),i=()=>{j.value+=ae,j.value>n.length&&M(I)};return l`<section class="feed" aria-labelledby="h-feed">
    <div class="column-head"><h2 id="h-feed">What happens</h2>
      ${s>0&&l`<button class="new" onClick=${()=>y.value=null}>${s} new ↑</button>`}
      <span class="room"></span><${oe} of=${ne} options=${Object.keys(se)} label="Show" /></div>
    <div class="scroller" tabindex="0" role="group" aria-label="Newest first" onPointerEnter=${o}
      onPointerLeave=${()=>y.value=null}>
      <div role="log" aria-live="off" aria-label="What happens"><ol>
        ${e.map(({key:a,entries:r})=>l`<${Ee} key=${a} entries=${r} />`)}</ol></div>
      ${!e.length&&l`<p class="hush">Nothing yet.</p>`}
      ${($.value.hasOlder||n.length>e.length)&&e.length>0&&l`
        <button class="more" onClick=${i}>Older</button>`}
    </div>
  </section>`}function Oe(){return l`<${Se} /><${Me} />`}export{$ as a,I as b,X as c,L as d,te as e,he as f,we as g,ye as h,xe as i,Ee as j,Oe as k};
