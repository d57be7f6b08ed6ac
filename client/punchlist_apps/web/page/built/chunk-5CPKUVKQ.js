/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as ot}from"./chunk-5T3LDDHB.js";import{c as at,d as nt}from"./chunk-S7GZ7JHW.js";import{C as Ie,E as We,F as Be,G as ee,I as je,J as Ke,K as Je,L as Qe,M as Ze,N as et,O as oe,R as tt,S as st,a as Fe,b as Le,c as O,d as I,e as Ve,f as De,g as Ae,h as He,i as Ne,j as Ge,k as E}from"./chunk-WFWCPALT.js";import{d as Xe,e as ze,f as k,g as te,h as se,j as Ye,k as Ue,l as qe}from"./chunk-VTPJTOYB.js";import{$ as Ee,A as we,D as ye,E as Te,F as K,G as ke,H as xe,J,O as Ce,Q as Se,S as N,T as G,U as Oe,W as Q,X as S,Y as d,_ as g,a as z,aa as T,b as de,ba as R,c as y,ca as Pe,d as Y,fa as Z,g as x,ia as Me,j as fe,m as he,n as me,na as Re,p as ve,r as ge,s as U,t as q,va as _e,w as j,z as be}from"./chunk-MKJRN2L2.js";import{b as A,c as pe,d as B,e as X,f as $e,i as H,l as s,v as ue}from"./chunk-LCO4CKYC.js";var bt=6e4,wt=Pe(e=>ke(g.value,e),()=>[Math.floor(Me.value/bt)]);function it({children:e}){return s`<div class="tools">
    <div class="chips" role="group" aria-label="Filters">
      ${d.value&&ye.map(([t,o])=>s`<${yt} key=${t} name=${t} title=${o} />`)}
      <${kt} />
      ${Ke.value.map(t=>s`<${oe} key=${`all ${t.name}`} class="chip" view=${t} />`)}
      ${je.value.map(t=>s`<${oe} key=${t.name} class="chip" view=${t} />`)}
    </div>
    <${st} of=${g} label="Filter tasks" />
    <span class="room"></span>
    <${lt} title="Group" names=${Fe} value=${O.value} onPick=${Ve} />
    <${lt} title="Sort" names=${Le} value=${I.value} onPick=${De} />
    ${Qe.value&&s`<button class="quiet" onClick=${Ze}>Save view</button>`}
    ${Je.value&&s`<button class="quiet" onClick=${et}>Delete view</button>`}
    ${e}
  </div>`}function yt({name:e,title:t}){let o=K(g.value.toLowerCase()).includes(`is:${e}`);return s`<button class=${`chip c-${e}`} aria-pressed=${o?"true":"false"}
    onClick=${()=>R(`is:${e}`)}>${t} <b>${wt.value[e].toLocaleString()}</b></button>`}var lt=({title:e,names:t,value:o,onPick:a})=>s`<select class="pick" aria-label=${e}
  onChange=${n=>a(n.currentTarget.value)}>
  ${t.map(n=>s`<option key=${n} value=${n} selected=${n===o}>
    ${e}: ${n}</option>`)}</select>`,Tt=40;function kt(){let[e,t]=A(!1),o=K(g.value),a=e&&d.value?xe(g.value,d.value):[],n=()=>t(!0);return s`<select class="chip offers" aria-label="Add a filter" onPointerEnter=${n} onPointerDown=${n}
    onFocus=${n} onBlur=${()=>t(!1)} onChange=${r=>{R(r.currentTarget.value),r.currentTarget.value=""}}>
    <option value="">+ Filter</option>
    ${a.map(([r,c])=>s`<optgroup key=${r} label=${r}>
      ${c.slice(0,Tt).map(([p,$,h])=>s`<option key=${p} value=${p}>
        ${o.includes(p)?"\u2713 ":""}${x($)} (${h})</option>`)}</optgroup>`)}
  </select>`}var xt=24,rt=44,b=H(null),ae={before:{say:(e,t)=>`#${e} before #${t}`,post:e=>["POST","/move",{before:e}]},after:{say:(e,t)=>`#${e} after #${t}`,post:e=>["POST","/move",{after:e}]},onto:{say:(e,t)=>`#${e} waits for #${t}`,post:e=>["PATCH","",{add_blocked_by:[e]}]},into:{say:(e,t)=>`#${e} is part of #${t}`,post:e=>["PATCH","",{parent:e}]}};function Ct(e,{id:t,startX:o}){let a=document.elementFromPoint(e.clientX,e.clientY)?.closest(".row"),n=a?.id.slice(2);if(!n||n===t)return{over:null,where:null,box:null};let i=a.getBoundingClientRect(),r=(e.clientY-i.top)/i.height,c=e.clientX-o>xt?"into":r<1/3?"before":r>2/3?"after":"onto";return{over:n,where:c,box:i}}function St(e,t){let{top:o,bottom:a}=e.getBoundingClientRect();t<o+rt?e.scrollBy(0,-12):t>a-rt&&e.scrollBy(0,12)}function Ot({id:e,over:t,where:o}){if(!t)return;if(["before","after"].includes(o)&&I.value!=="order")return J("Sort by order to move tasks by hand.","bad");let{tasks:a}=d.value,n=o==="onto"&&ot(a,e,t);if(n)return J(`#${e} can't wait for #${t}: ${n} would be a circle.`,"bad");let[i,r,c]=ae[o].post(t);return Ie(ae[o].say(e,t),[a.get(e)],()=>ue(i,Re(e,r),c))}var ne=()=>b.value=null,ct=e=>{e.key!=="Escape"||!b.value||(e.preventDefault(),e.stopPropagation(),ne())},pt={onPointerDown:e=>{let t=e.target.closest(".grip")?.closest(".row")?.id.slice(2);!t||!S.value||e.button||(e.preventDefault(),e.currentTarget.setPointerCapture(e.pointerId),b.value={id:t,startX:e.clientX,x:e.clientX,y:e.clientY,over:null},addEventListener("keydown",ct,{capture:!0}))},onPointerMove:e=>{b.value&&(St(e.currentTarget,e.clientY),b.value={...b.value,x:e.clientX,y:e.clientY,...Ct(e,b.value)})},onPointerUp:()=>{removeEventListener("keydown",ct,{capture:!0});let e=b.value;ne(),e&&Ot(e)},onPointerCancel:ne};function $t(){let{id:e,x:t,y:o,over:a,where:n,box:i}=b.value??{};if(!a)return null;let r=n==="after"?i.bottom:i.top,c=["before","after"].includes(n),p={left:`${i.left}px`,width:`${i.width}px`,top:`${c?r-1:i.top}px`};return s`<div class=${`drop-mark ${c?"between":n}`} style=${{...p,height:`${c?2:i.height}px`}}></div>
    <div class="drop-words" style=${{left:`${t+14}px`,top:`${o+12}px`}}>${ae[n].say(e,a)}</div>`}var Et=E(()=>import("./detail-C3XROORX.js")),Pt=E(()=>import("./inline-K6APXTEB.js")),Mt={list:Ht,flow:E(()=>import("./flow-PH47B7HJ.js")),graph:E(()=>import("./graph-JKIPXOW4.js")),timeline:E(()=>import("./timeline-5NIY3TKR.js")),history:at};function Rt(){let{name:e,view:t}=y.value,o=Mt[t];G.value;let a=d.value,n=Oe.value||a?.version===0;return s`<div class=${`list-page v-${t}${Q.value?" past":""}${Z.value?" has-task":""}`}>
    <${Ft} name=${e} />
    <main id="main" class="panes">
      <div class="face" role="region" aria-label=${_t[t]}>
        ${n?s`<${Vt} name=${e} />`:a?s`<${o} />`:s`<p class="hush" role="status">Opening…</p>`}
        ${We.value&&S.value&&a&&s`<${Pt} />`}</div>
      ${Z.value&&s`<${Et} />`}
    </main>
  </div>`}var _t={list:"Tasks",flow:"Tasks by state",graph:"Dependencies",timeline:"Timeline",history:"What happened"},ut={list:"List",flow:"Columns",graph:"Graph",timeline:"Timeline",history:"History"};function Ft({name:e}){G.value;let{counts:t,damaged:o,shared:a}=d.value??{},{settings:n}=N.value??{},i=t?.failed>0&&n?.on_failure==="stop";return s`<div class="head" role="region" aria-label="The list">
    <${tt} title=${N.value?Se(N.value):e}>
      ${t&&s`<span class="done">${t.completed} of ${Ce(t)}</span>`}
      ${o&&s`<span class="pill bad" title=${x(o.reason)}>incomplete: its log is damaged</span>`}
      ${a&&s`<span class="pill warn" role="status">${me(a)}</span>`}
      ${i&&s`<span class="pill bad">stopped by a failure</span>`}
      ${n?.execution==="serial"&&s`<span class="pill">one at a time</span>`}
      ${t&&s`<${qe} counts=${t} />`}
      <${Lt} />
    <//>
    <${it}><${nt} /><//>
  </div>`}var dt=e=>Y({...y.value,view:e}),Lt=()=>s`<nav class="segments" aria-label="Views">
    ${z.map(e=>s`<a key=${e} href=${de({...y.value,view:e})}
      aria-current=${y.value.view===e?"page":void 0}
      onClick=${t=>(t.preventDefault(),dt(e))}>${ut[e]}</a>`)}
  </nav>
  <select class="pick views" aria-label="View" onChange=${e=>dt(e.currentTarget.value)}>
    ${z.map(e=>s`<option key=${e} value=${e} selected=${y.value.view===e}>
      ${ut[e]}</option>`)}</select>`,Vt=({name:e})=>s`<div class="teach">
  <h2>The list <${k} of=${e} /> does not exist</h2>
  <p>It appears here as soon as someone uses it.</p>
  ${S.value&&s`<p><button class="primary" onClick=${()=>ee("add")}>Add the first task</button></p>`}
</div>`;function Dt(){let e=d.value.tasks.size;return e?s`<div class="teach"><h2>No task fits</h2>
    <p>${he(e,"task is","tasks are")} hidden by <code>${x(g.value)}</code>.</p>
    <p><button onClick=${()=>g.value=""}>Clear <${se} of="escape" /></button></p>
    <p class="hush">Combine words to narrow it: <code>is:blocked</code> <code>@ann</code> <code>p:high</code>
      ${" "}<code>+label</code> <code>#4</code> or any text.</p></div>`:s`<div class="teach"><h2>Nothing to do here${Q.value?" at that time":""}</h2>
    ${S.value&&s`
      <p>Press <${se} of="a" /> to add a task, or let an agent plan: its tasks appear here automatically.</p>
      <p class="hush">From a terminal: <code>punch -c ${x(y.value.name)} add "Write the parser"</code></p>`}
  </div>`}var le=matchMedia("(pointer: coarse), (max-width: 700px)"),ht=H(le.matches);le.addEventListener("change",()=>ht.value=le.matches);var ft=6;function At(e,t,o){let[a,n]=[0,0];return e.map(i=>{let r={...i,top:a,rowsTop:a+(i.title?t:0),index:n};return a=r.bottom=r.rowsTop+i.shown.length*o,n+=i.shown.length,r})}function Ht(){let e=He.value;G.value;let t=X(null),o=X(null),[[a,n],i]=A([0,800]),[r,c]=ht.value?[44,56]:[32,34],p=$e(()=>At(e,r,c),[e,r]),$=!p.length,h=l=>p.flatMap(({shown:u,rowsTop:m})=>{let f=u.indexOf(l);return f<0?[]:[m+f*c]}),w=l=>h(l)[0]??null,W=l=>l!==null&&l>t.current.scrollTop-c&&l<t.current.scrollTop+t.current.clientHeight,_=()=>{let{scrollTop:l}=t.current,u=p.find(({bottom:L,shown:V})=>V.length&&L>l),m=u&&Math.max(0,Math.floor((l-u.rowsTop)/c)),f=W(w(T.value))?T.value:l>0?u?.shown[m]:null;o.current=f?{id:f,offset:w(f)-l}:null},M=()=>{let{scrollTop:l,clientHeight:u}=t.current;_(),(Math.abs(l-a)>=c||u!==n)&&i([l,u])},F=l=>{t.current.scrollTop=l,M()};if(B(()=>{if($)return;let l=new ResizeObserver(M);return l.observe(t.current),()=>l.disconnect()},[$]),B(()=>{if($)return;let{id:l,offset:u}=o.current??{},m=p.find(({shown:f})=>f.includes(l));m&&!m.isFolded&&w(l)-u!==t.current.scrollTop&&F(w(l)-u),_()},[p]),pe(()=>{let l=$?[]:h(T.value);if(!l.length)return;let{scrollTop:u,clientHeight:m}=t.current,f=p.at(-1),L=f.title?r:0,V=v=>f.isLast&&v<f.top?r:0,ce=v=>v<u+L,gt=v=>v+c>u+m-V(v);if(l.some(v=>!ce(v)&&!gt(v)))return;let[D]=l;F(ce(D)?D-L:D+c+V(D)-m)},[T.value,$]),$)return s`<${Dt} />`;let[ie,re]=[a-ft*c,a+n+ft*c],C=p.at(-1),vt=C.index+C.shown.length;return s`<${$t} /><div ref=${t} class=${`rows by-${O.value}`} role="listbox" aria-label="Tasks" tabindex="0"
    aria-multiselectable="true" aria-activedescendant=${w(T.value)===null?void 0:`t-${T.value}`}
    onScroll=${M} ...${pt}>
    <div class="all" role="presentation" style=${{height:`${C.bottom}px`}}>
      ${p.filter(l=>l.bottom>ie&&l.top<re).map(l=>s`<${Nt} key=${l.key} group=${l} from=${ie} to=${re} rowHeight=${c} count=${vt} />`)}
      ${C.isLast&&s`<div role="presentation" style=${{height:`${C.top}px`}}></div>
        <${mt} group=${C} />`}
    </div>
  </div>`}function Nt({group:e,from:t,to:o,rowHeight:a,count:n}){let i=d.value,r=Math.max(0,Math.floor((t-e.rowsTop)/a)),c=e.shown.slice(r,Math.max(0,Math.ceil((o-e.rowsTop)/a))),p=e.title&&`${x(e.title)}, ${e.ids.length}${e.isFolded?", folded":""}`;return s`<div class="group" role=${p?"group":"presentation"} aria-label=${p||void 0}
    style=${{top:`${e.top}px`,height:`${e.bottom-e.top}px`}}>
    ${e.title&&!e.isLast&&s`<${mt} group=${e} />`}
    <div class="some" role="presentation" style=${{top:`${e.rowsTop-e.top+r*a}px`}}>
      ${c.map(($,h)=>i.tasks.has($)&&s`<${zt} key=${$} task=${i.tasks.get($)}
        depth=${e.depth?.get($)??0} index=${e.index+r+h} count=${n} group=${e} />`)}</div>
  </div>`}var mt=({group:e})=>s`<div
  class=${`group-head${e.state?` g-${e.state}`:""}${e.isLast?" last":""}`}
  onClick=${()=>Ae(e,!e.isFolded)}>
  <span class="fold" aria-hidden="true">${e.isFolded?"\u25B8":"\u25BE"}</span>
  ${e.owner&&s`<${te} of=${e.owner} size="small" />`}
  <${k} class="cut" of=${e.title} />
  <span class="count">${e.ids.length.toLocaleString()}
    ${e.newest&&`, the newest ${fe(e.newest)}`}</span></div>`,P=3,Gt=({of:e})=>s`<span class="labels" aria-hidden="true">
  ${e.slice(0,P).map(t=>s`<span key=${t} class="label"
    onClick=${o=>(o.stopPropagation(),R(Te(t)))}><${k} of=${t} /></span>`)}
  ${e.length>P&&s`<span class="hush">+${e.length-P}</span>`}</span>`,It={in_progress:e=>["doing",e.active_form],failed:e=>["why",e.fail_reason],asks:e=>["asks",`waits for ${q(e)}`],paused:e=>e.waits_for&&["waits",`waits for ${q(e)}`],pending:e=>d.value.hasOpenParts(e)&&["waits","holds open tasks"]};function Wt({of:e}){let[t,o]=It[U(e)]?.(e)||[];return o&&s`<${k} class=${`reason ${t}`} of=${o} />`}function Bt(e){let t=j(e)?[]:e.open_blockers??[],o=t.length>P?` +${t.length-P}`:"";return t.slice(0,P).map(a=>`#${a}`).join(" ")+o}function Xt({of:e}){let t=O.value!=="parent"&&d.value.tasks.get(e.parent);return t&&s`<span class="parent"><${k} of=${t.title} /> › </span>`}function zt({task:e,depth:t,index:o,count:a,group:n}){let i=U(e),r=_e(e),c=Bt(e),p=e.status!=="completed"&&d.value.freesOf(e.id),$=ve(e),[h,w]=[T.value===e.id,Ee.value.has(e.id)],W=O.value==="label"&&e.labels?.[0]!==n.key&&e.labels?.length>1,_=({ctrlKey:M,metaKey:F})=>M||F?ee("mark",e.id):Y({...y.value,task:h?null:e.id},{trail:!1});return s`<div id=${W?void 0:`t-${e.id}`} role="option" onClick=${_}
    class=${`row r-${i}${h?" here":""}${w?" marked":""}`}
    aria-selected=${h||w?"true":"false"} aria-posinset=${o+1} aria-setsize=${a}>
    <span class="grip" aria-hidden="true"></span>
    <span class="id">#${e.id}</span>
    <${Xe} state=${i} />
    <b aria-hidden="true" class=${`sign p-${e.priority}`}>${r}</b>
    <span class="what" style=${t?{paddingLeft:`${Math.min(t,8)*1.4}em`}:void 0}>
      <${Xt} of=${e} /><${k} class="t" of=${e.title} /><${Ue} of=${e} /><${Wt} of=${e} />
      ${c&&s`<span class="reason waits narrow" aria-hidden="true">waits for ${c}</span>`}</span>
    <span class="facts">
      ${!j(e)&&e.labels?.length>0&&s`<${Gt} of=${e.labels} />`}
      ${p>0&&s`<span class="hush">frees ${p}${p===be&&"+"}</span>`}
      ${c&&s`<span class="waits"><span aria-hidden="true">${we.arrow} </span>
        <span class="sr">waits for </span>${c}</span>`}
      <${Ye} of=${e} /></span>
    <span class=${`held-by${$?" gone":""}`} title=${$||void 0}>${e.owner&&s`
      <${te} of=${e.owner} size="small" /><${k} class="owner" of=${ge(e).slice(1)} />`}</span>
    <span class="age"><${ze} at=${e.status_changed_at} /></span>
  </div>`}Be("list/list",{left:{run:Ne},right:{run:Ge}});export{Rt as a,Gt as b,Wt as c,Bt as d};
