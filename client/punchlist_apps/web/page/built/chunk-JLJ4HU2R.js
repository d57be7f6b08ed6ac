/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as it}from"./chunk-BILQ7APC.js";import{a as Ze,b as et,c as tt,d as st,e as ot,f as at,g as ne,k as nt,l as lt}from"./chunk-JTC77UJH.js";import{c as qe,d as je,e as x,f as oe,h as ae,k as Ke,l as Je,m as Qe}from"./chunk-R6VQCR7I.js";import{D as ze,F as Ye,I as Ue,K as se,i as Ve,j as De,k as F,l as I,m as Ne,n as Ae,o as Ge,p as He,q as We,r as Ie,s as Be,t as h,x as Xe}from"./chunk-EOHURGU6.js";import{$ as d,B as ye,D as ke,G as Te,H as xe,I as J,J as Ce,K as Oe,L as Q,Q as Se,S as Ee,U as R,V as S,W as Pe,X as Z,Z as W,_ as E,a as Y,aa as ee,b as me,c as w,ca as b,d as U,da as Me,ea as y,fa as _,g as C,ga as Re,ja as te,l as he,ma as _e,o as ve,p as ge,r as we,sa as Fe,t as be,u as q,v as j,y as K,za as Le}from"./chunk-IALAHY4L.js";import{b as G,c as ue,d as X,e as z,f as de,i as H,l as s,y as fe}from"./chunk-OD44XGYS.js";var yt=6e4,kt=Re(e=>Ce(b.value,e),()=>[Math.floor(_e.value/yt)]);function ct({children:e}){return s`<div class="tools" role="region" aria-label="Filter, group and sort">
    <div class="chips" role="group" aria-label="Filters">
      ${d.value&&Te.map(([t,o])=>s`<${Tt} key=${t} name=${t} title=${o} />`)}
      <${Ct} />
      ${et.value.map(t=>s`<${ne} key=${`all ${t.name}`} class="chip" view=${t} />`)}
      ${Ze.value.map(t=>s`<${ne} key=${t.name} class="chip" view=${t} />`)}
    </div>
    <${lt} of=${b} label="Filter tasks" />
    <span class="room"></span>
    <${rt} title="Group" names=${Ve} value=${F.value} onPick=${Ne} />
    <${rt} title="Sort" names=${De} value=${I.value} onPick=${Ae} />
    ${st.value&&s`<button class="quiet" onClick=${ot}>Save view</button>`}
    ${tt.value&&s`<button class="quiet" onClick=${at}>Delete view</button>`}
    ${e}
  </div>`}function Tt({name:e,title:t}){let o=J(b.value.toLowerCase()).includes(`is:${e}`);return s`<button class=${`chip c-${e}`} aria-pressed=${o?"true":"false"}
    onClick=${()=>_(`is:${e}`)}>${t} <b class="n">${kt.value[e].toLocaleString()}</b></button>`}var rt=({title:e,names:t,value:o,onPick:n})=>s`<select class="pick" aria-label=${e}
  onChange=${a=>n(a.currentTarget.value)}>
  ${t.map(a=>s`<option key=${a} value=${a} selected=${a===o}>
    ${e}: ${a}</option>`)}</select>`,xt=40;function Ct(){let[e,t]=G(!1),o=J(b.value),n=e&&d.value?Oe(b.value,d.value):[],a=()=>t(!0);return s`<select class="chip offers" aria-label="Add a filter" onPointerEnter=${a} onPointerDown=${a}
    onFocus=${a} onBlur=${()=>t(!1)} onChange=${r=>{_(r.currentTarget.value),r.currentTarget.value=""}}>
    <option value="">+ Filter</option>
    ${n.map(([r,c])=>s`<optgroup key=${r} label=${r}>
      ${c.slice(0,xt).map(([p,$,m])=>s`<option key=${p} value=${p}>
        ${o.includes(p)?"\u2713 ":""}${C($)} (${m})</option>`)}</optgroup>`)}
  </select>`}var Ot=24,pt=44,k=H(null),le={before:{say:(e,t)=>`#${e} before #${t}`,post:e=>["POST","/move",{before:e}]},after:{say:(e,t)=>`#${e} after #${t}`,post:e=>["POST","/move",{after:e}]},onto:{say:(e,t)=>`#${e} waits for #${t}`,post:e=>["PATCH","",{add_blocked_by:[e]}]},into:{say:(e,t)=>`#${e} is part of #${t}`,post:e=>["PATCH","",{parent:e}]}};function St(e,{id:t,startX:o}){let n=document.elementFromPoint(e.clientX,e.clientY)?.closest(".row"),a=n?.id.slice(2);if(!a||a===t)return{over:null,where:null,box:null};let i=n.getBoundingClientRect(),r=(e.clientY-i.top)/i.height,c=e.clientX-o>Ot?"into":r<1/3?"before":r>2/3?"after":"onto";return{over:a,where:c,box:i}}function Et(e,t){let{top:o,bottom:n}=e.getBoundingClientRect();t<o+pt?e.scrollBy(0,-12):t>n-pt&&e.scrollBy(0,12)}function Pt({id:e,over:t,where:o}){if(!t)return;if(["before","after"].includes(o)&&I.value!=="order")return Q("Sort by order to move tasks by hand.","bad");let{tasks:n}=d.value,a=o==="onto"&&it(n,e,t);if(a)return Q(`#${e} can't wait for #${t}: ${a} would be a circle.`,"bad");let[i,r,c]=le[o].post(t);return ze(le[o].say(e,t),[n.get(e)],()=>fe(i,Fe(e,r),c))}var ie=()=>k.value=null,$t=e=>{e.key!=="Escape"||!k.value||(e.preventDefault(),e.stopPropagation(),ie())},ut={onPointerDown:e=>{let t=e.target.closest(".grip")?.closest(".row")?.id.slice(2);!t||!E.value||e.button||(e.preventDefault(),e.currentTarget.setPointerCapture(e.pointerId),k.value={id:t,startX:e.clientX,x:e.clientX,y:e.clientY,over:null},addEventListener("keydown",$t,{capture:!0}))},onPointerMove:e=>{k.value&&(Et(e.currentTarget,e.clientY),k.value={...k.value,x:e.clientX,y:e.clientY,...St(e,k.value)})},onPointerUp:()=>{removeEventListener("keydown",$t,{capture:!0});let e=k.value;ie(),e&&Pt(e)},onPointerCancel:ie};function dt(){let{id:e,x:t,y:o,over:n,where:a,box:i}=k.value??{};if(!n)return null;let r=a==="after"?i.bottom:i.top,c=["before","after"].includes(a),p={left:`${i.left}px`,width:`${i.width}px`,top:`${c?r-1:i.top}px`};return s`<div class=${`drop-mark ${c?"between":a}`} style=${{...p,height:`${c?2:i.height}px`}}></div>
    <div class="drop-words" style=${{left:`${t+14}px`,top:`${o+12}px`}}>${le[a].say(e,n)}</div>`}var Mt=h(()=>import("./detail-ZIRIYRUN.js"),"late"),Rt=h(()=>import("./inline-WTDLTBDL.js"),"late"),_t={list:zt,flow:h(()=>import("./flow-NK4N3RQ6.js"),"late"),graph:h(()=>import("./graph-TW4DRK4T.js"),"late"),timeline:h(()=>import("./timeline-TSPQL3DK.js"),"timeline"),history:h(()=>import("./history-FSCL6NRP.js"),"past")},Ft=h(()=>import("./strip-4TJZM6RB.js"),"past"),Lt=h(()=>import("./compare-E66LJ3FE.js"),"past"),Vt=h(()=>import("./ready-DR24FNWT.js")),Dt=["timeline","history"];function Nt(){let{name:e,view:t}=w.value,o=Z.value.from!==null,n=o?Lt:_t[t];S.value;let a=d.value,i=Pe.value||a?.version===0;return s`<div class=${`list-page v-${t}${W.value?" past":""}${te.value?" has-task":""}`}>
    <${Gt} name=${e} />
    <main id="main" class="panes">
      <div class="face" role="region" aria-label=${o?"Two versions":At[t]}>
        ${i?s`<${Wt} name=${e} />`:a?s`<${n} />`:s`<p class="hush" role="status">Opening…</p>`}
        ${Ye.value&&E.value&&a&&s`<${Rt} />`}</div>
      ${te.value&&s`<${Mt} />`}
    </main>
  </div>`}var At={list:"Tasks",flow:"Tasks by state",graph:"Dependencies",timeline:"Timeline",history:"What happened"},ft={list:"List",flow:"Columns",graph:"Graph",timeline:"Timeline",history:"History"};function Gt({name:e}){S.value;let{counts:t,damaged:o,shared:n}=d.value??{},{settings:a}=R.value??{},i=Z.value.from!==null,r=t?.failed>0&&a?.on_failure==="stop";return s`<div class="head">
    <${nt} title=${R.value?Ee(R.value):e}>
      ${t&&s`<span class="done">${t.completed} of ${Se(t)}</span>`}
      ${o&&s`<span class="pill bad" title=${C(o.reason)}>incomplete: its log is damaged</span>`}
      ${n&&s`<span class="pill warn" role="status">${ge(n)}</span>`}
      ${r&&s`<span class="pill bad">stopped by a failure</span>`}
      ${a?.execution==="serial"&&s`<span class="pill">one at a time</span>`}
      ${t&&s`<${Qe} counts=${t} waiting=${R.value?.waiting} />`}
      ${t?.in_progress>0&&!W.value&&s`<${Vt} name=${e} />`}
      <${Ht} />
    <//>
    ${Xe.value&&t&&s`<${Ft} key=${e} />`}
    ${!i&&!Dt.includes(w.value.view)&&s`<${ct} />`}
  </div>`}var mt=e=>U({...w.value,view:e}),Ht=()=>s`<nav class="segments" aria-label="Views">
    ${Y.map(e=>s`<a key=${e} href=${me({...w.value,view:e})}
      aria-current=${w.value.view===e?"page":void 0}
      onClick=${t=>(t.preventDefault(),mt(e))}>${ft[e]}</a>`)}
  </nav>
  <select class="pick views" aria-label="View" onChange=${e=>mt(e.currentTarget.value)}>
    ${Y.map(e=>s`<option key=${e} value=${e} selected=${w.value.view===e}>
      ${ft[e]}</option>`)}</select>`,Wt=({name:e})=>s`<div class="teach">
  <h2>The list <${x} of=${e} /> does not exist</h2>
  <p>It appears here as soon as someone uses it.</p>
  ${E.value&&s`<p><button class="primary" onClick=${()=>se("add")}>Add the first task</button></p>`}
</div>`;function It(){let e=d.value.tasks.size;return e?s`<div class="teach"><h2>No task fits</h2>
    <p>${ve(e,"task is","tasks are")} hidden by <code>${C(b.value)}</code>.</p>
    <p><button onClick=${()=>b.value=""}>Clear <${ae} of="escape" /></button></p>
    <p class="hush">Combine words to narrow it: <code>is:blocked</code> <code>@ann</code> <code>p:high</code>
      ${" "}<code>+label</code> <code>#4</code> or any text.</p></div>`:s`<div class="teach"><h2>Nothing to do here${W.value?" at that time":""}</h2>
    ${E.value&&s`
      <p>Press <${ae} of="a" /> to add a task, or let an agent plan: its tasks appear here automatically.</p>
      <p class="hush">From a terminal: <code>punch -c ${C(w.value.name)} add "Write the parser"</code></p>`}
  </div>`}var Bt=matchMedia("(max-width: 700px)"),re=matchMedia("(pointer: coarse), (max-width: 700px)"),vt=H(re.matches);re.addEventListener("change",()=>vt.value=re.matches);var ht=6;function Xt(e,t,o){let[n,a]=[0,0];return e.map(i=>{let r={...i,top:n,rowsTop:n+(i.title?t:0),index:a};return n=r.bottom=r.rowsTop+i.shown.length*o,a+=i.shown.length,r})}function zt(){let e=He.value;S.value;let t=z(null),o=z(null),[[n,a],i]=G([0,800]),[r,c]=vt.value?[44,56]:[32,34],p=de(()=>Xt(e,r,c),[e,r]),$=!p.length,m=l=>p.flatMap(({shown:u,rowsTop:v})=>{let f=u.indexOf(l);return f<0?[]:[v+f*c]}),T=l=>m(l)[0]??null,B=l=>l!==null&&l>t.current.scrollTop-c&&l<t.current.scrollTop+t.current.clientHeight,L=()=>{let{scrollTop:l}=t.current,u=p.find(({bottom:D,shown:N})=>N.length&&D>l),v=u&&Math.max(0,Math.floor((l-u.rowsTop)/c)),f=B(T(y.value))?y.value:l>0?u?.shown[v]:null;o.current=f?{id:f,offset:T(f)-l}:null},M=()=>{let{scrollTop:l,clientHeight:u}=t.current;L(),(Math.abs(l-n)>=c||u!==a)&&i([l,u])},V=l=>{t.current.scrollTop=l,M()};if(X(()=>{if($)return;let l=new ResizeObserver(M);return l.observe(t.current),()=>l.disconnect()},[$]),X(()=>{if($)return;let{id:l,offset:u}=o.current??{},v=p.find(({shown:f})=>f.includes(l));v&&!v.isFolded&&T(l)-u!==t.current.scrollTop&&V(T(l)-u),L()},[p]),ue(()=>{let l=$?[]:m(y.value);if(!l.length||!t.current)return;let{scrollTop:u,clientHeight:v}=t.current,f=p.at(-1),D=f.title?r:0,N=g=>f.isLast&&g<f.top?r:0,$e=g=>g<u+D,bt=g=>g+c>u+v-N(g);if(l.some(g=>!$e(g)&&!bt(g)))return;let[A]=l;V($e(A)?A-D:A+c+N(A)-v)},[y.value,$]),$)return s`<${It} />`;let[ce,pe]=[n-ht*c,n+a+ht*c],O=p.at(-1),wt=O.index+O.shown.length;return s`<${dt} /><div ref=${t} class=${`rows by-${F.value}`} role="listbox" aria-label="Tasks" tabindex="0"
    aria-multiselectable="true" aria-activedescendant=${T(y.value)===null?void 0:`t-${y.value}`}
    onScroll=${M} ...${ut}>
    <div class="all" role="presentation" style=${{height:`${O.bottom}px`}}>
      ${p.filter(l=>l.bottom>ce&&l.top<pe).map(l=>s`<${Yt} key=${l.key} group=${l} from=${ce} to=${pe} rowHeight=${c} count=${wt} />`)}
      ${O.isLast&&s`<div role="presentation" style=${{height:`${O.top}px`}}></div>
        <${gt} group=${O} />`}
    </div>
  </div>`}function Yt({group:e,from:t,to:o,rowHeight:n,count:a}){S.value;let i=d.value,r=Math.max(0,Math.floor((t-e.rowsTop)/n)),c=e.shown.slice(r,Math.max(0,Math.ceil((o-e.rowsTop)/n))),p=e.title&&`${C(e.title)}, ${e.ids.length}${e.isFolded?", folded":""}`;return s`<div class="group" role=${p?"group":"presentation"} aria-label=${p||void 0}
    style=${{top:`${e.top}px`,height:`${e.bottom-e.top}px`}}>
    ${e.title&&!e.isLast&&s`<${gt} group=${e} />`}
    <div class="some" role="presentation" style=${{top:`${e.rowsTop-e.top+r*n}px`}}>
      ${c.map(($,m)=>i.tasks.has($)&&s`<${Qt} key=${$} task=${i.tasks.get($)}
        depth=${e.depth?.get($)??0} index=${e.index+r+m} count=${a}
        isCopy=${e.label!==void 0&&We($).key!==e.key} />`)}</div>
  </div>`}var gt=({group:e})=>s`<div
  class=${`group-head${e.state?` g-${e.state}`:""}${e.isLast?" last":""}`}
  onClick=${()=>Ge(e,!e.isFolded)}>
  <span class="fold" aria-hidden="true">${e.isFolded?"\u25B8":"\u25BE"}</span>
  ${e.owner&&s`<${oe} of=${e.owner} size="small" />`}
  <${x} class="cut" of=${e.title} />
  <span class="count">${e.ids.length.toLocaleString()}
    ${e.newest&&`, the newest ${he(e.newest)}`}</span></div>`,P=3,Ut=({of:e})=>s`<span class="labels" aria-hidden="true">
  ${e.slice(0,P).map(t=>s`<span key=${t} class="label"
    onClick=${o=>(o.stopPropagation(),_(xe(t)))}><${x} of=${t} /></span>`)}
  ${e.length>P&&s`<span class="hush">+${e.length-P}</span>`}</span>`,qt={in_progress:e=>["doing",e.active_form],failed:e=>["why",e.fail_reason],asks:e=>["asks",`waits for ${j(e)}`],paused:e=>e.waits_for&&["waits",`waits for ${j(e)}`],pending:e=>ee.value&&d.value.hasOpenParts(e)&&["waits","holds open tasks"]};function jt({of:e}){let[t,o]=qt[q(e)]?.(e)||[];return o&&s`<${x} class=${`reason ${t}`} of=${o} />`}function Kt(e){let t=K(e)?[]:e.open_blockers??[],o=t.length>P?` +${t.length-P}`:"";return t.slice(0,P).map(n=>`#${n}`).join(" ")+o}function Jt({of:e}){S.value;let t=d.value.tasks.get(e.parent);return t&&s`<span class="parent"><${x} of=${t.title} /> › </span>`}function Qt({task:e,depth:t,index:o,count:n,isCopy:a}){ee.value;let i=q(e),r=Le(e),c=Kt(e),p=e.status!=="completed"&&d.value.freesOf(e.id),$=we(e),[m,T]=[y.value===e.id,Me.value.has(e.id)],B=()=>Bt.matches&&!y.value,L=({ctrlKey:M,metaKey:V})=>M||V?se("mark",e.id):U({...w.value,task:m?null:e.id},{trail:B()});return s`<div id=${a?void 0:`t-${e.id}`} role="option" onClick=${L}
    class=${`row r-${i}${m?" here":""}${T?" marked":""}`}
    aria-selected=${m||T?"true":"false"} aria-posinset=${o+1} aria-setsize=${n}>
    <span class="grip" aria-hidden="true"></span>
    <span class="id">#${e.id}</span>
    <${qe} state=${i} />
    <b aria-hidden="true" class=${`sign p-${e.priority}`}>${r}</b>
    <span class="what" style=${t?{paddingLeft:`${Math.min(t,8)*1.4}em`}:void 0}>
      ${e.parent&&F.value!=="parent"&&s`<${Jt} of=${e} />`}<${x} class="t" of=${e.title} /><${Je} of=${e} /><${jt} of=${e} />
      ${c&&s`<span class="reason waits narrow" aria-hidden="true">waits for ${c}</span>`}</span>
    <span class="facts">
      ${!K(e)&&e.labels?.length>0&&s`<${Ut} of=${e.labels} />`}
      ${p>0&&s`<span class="hush">frees ${p}${p===ye&&"+"}</span>`}
      ${c&&s`<span class="waits"><span aria-hidden="true">${ke.arrow} </span>
        <span class="sr">waits for </span>${c}</span>`}
      <${Ke} of=${e} /></span>
    <span class=${`held-by${$?" gone":""}`} title=${$||void 0}>${e.owner&&s`
      <${oe} of=${e.owner} size="small" /><${x} class="owner" of=${be(e).slice(1)} />`}</span>
    <span class="age"><${je} at=${e.status_changed_at} /></span>
  </div>`}Ue("list/list",{left:{run:Ie},right:{run:Be}});export{Nt as a,Ut as b,jt as c,Kt as d};
