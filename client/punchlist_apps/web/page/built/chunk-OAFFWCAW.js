/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as E}from"./chunk-SJS2GX5C.js";import{c as Ke,d as Ye}from"./chunk-Q4XRVBBM.js";import{C as Pe,D as Y,F as Ie,G as ze,H as Be,I as De,J as Xe,K as qe,L as Z,O as Ue,P as je,a as Oe,b as Ce,c as S,d as Me,e as Ee,f as Ve,g as Fe,h as _e,i as Le,j as Re}from"./chunk-YOQKELSR.js";import{$ as M,B as he,C as me,Ca as He,D as q,Da as Ne,E as ve,Ea as T,F as we,Fa as J,Ga as Q,Ia as We,Ja as Ae,Ka as Ge,M as be,O as ge,Q as H,R as N,S as ye,U,V as j,W as f,Y as w,Z as Te,_ as y,a as I,aa as ke,b as ie,c as g,d as z,da as K,g as k,ga as xe,j as re,l as ce,m as $e,o as pe,q as ue,r as B,s as D,ta as Se,u as X,x as de,y as fe}from"./chunk-EH56Q26U.js";import{b as P,c as oe,d as A,e as G,f as ne,i as le,l as t}from"./chunk-LCO4CKYC.js";var ls=6e4,is=ke(e=>ve(w.value,e),()=>[Math.floor(xe.value/ls)]);function Qe({children:e}){return t`<div class="tools">
    <div class="chips" role="group" aria-label="Filters">
      ${f.value&&he.map(([s,o])=>t`<${rs} key=${s} name=${s} title=${o} />`)}
      <${$s} />
      ${ze.value.map(s=>t`<${Z} key=${`all ${s.name}`} class="chip" view=${s} />`)}
      ${Ie.value.map(s=>t`<${Z} key=${s.name} class="chip" view=${s} />`)}
    </div>
    <${je} of=${w} label="Filter tasks" />
    <span class="room"></span>
    <${Je} title="Group" names=${Oe} value=${S.value} onPick=${Ee} />
    <${Je} title="Sort" names=${Ce} value=${Me.value} onPick=${Ve} />
    ${De.value&&t`<button class="quiet" onClick=${Xe}>Save view</button>`}
    ${Be.value&&t`<button class="quiet" onClick=${qe}>Delete view</button>`}
    ${e}
  </div>`}function rs({name:e,title:s}){let o=q(w.value.toLowerCase()).includes(`is:${e}`);return t`<button class=${`chip c-${e}`} aria-pressed=${o?"true":"false"}
    onClick=${()=>M(`is:${e}`)}>${s} <b>${is.value[e].toLocaleString()}</b></button>`}var Je=({title:e,names:s,value:o,onPick:n})=>t`<select class="pick" aria-label=${e}
  onChange=${l=>n(l.currentTarget.value)}>
  ${s.map(l=>t`<option key=${l} value=${l} selected=${l===o}>
    ${e}: ${l}</option>`)}</select>`,cs=40;function $s(){let[e,s]=P(!1),o=q(w.value),n=e&&f.value?we(w.value,f.value):[],l=()=>s(!0);return t`<select class="chip offers" aria-label="Add a filter" onPointerEnter=${l} onPointerDown=${l}
    onFocus=${l} onBlur=${()=>s(!1)} onChange=${i=>{M(i.currentTarget.value),i.currentTarget.value=""}}>
    <option value="">+ Filter</option>
    ${n.map(([i,r])=>t`<optgroup key=${i} label=${i}>
      ${r.slice(0,cs).map(([c,$,h])=>t`<option key=${c} value=${c}>
        ${o.includes(c)?"\u2713 ":""}${k($)} (${h})</option>`)}</optgroup>`)}
  </select>`}var ps=E(()=>import("./detail-CLPEMWOK.js")),us={list:gs,flow:E(()=>import("./flow-7VM2Q4SR.js")),graph:E(()=>import("./graph-SSZE662A.js")),timeline:E(()=>import("./timeline-FIONLUYT.js")),history:Ke};function ds(){let{name:e,view:s}=g.value,o=us[s];N.value;let n=f.value,l=ye.value||n?.version===0;return t`<div class=${`list-page v-${s}${U.value?" past":""}${K.value?" has-task":""}`}>
    <${hs} name=${e} />
    <main id="main" class="panes">
      <div class="face" role="region" aria-label=${fs[s]}>
        ${l?t`<${vs} name=${e} />`:n?t`<${o} />`:t`<p class="hush" role="status">Opening…</p>`}</div>
      ${K.value&&t`<${ps} />`}
    </main>
  </div>`}var fs={list:"Tasks",flow:"Tasks by state",graph:"Dependencies",timeline:"Timeline",history:"What happened"},Ze={list:"List",flow:"Columns",graph:"Graph",timeline:"Timeline",history:"History"};function hs({name:e}){N.value;let{counts:s,damaged:o,shared:n}=f.value??{},{settings:l}=H.value??{},p=s?.failed>0&&l?.on_failure==="stop";return t`<div class="head" role="region" aria-label="The list">
    <${Ue} title=${H.value?ge(H.value):e}>
      ${s&&t`<span class="done">${s.completed} of ${be(s)}</span>`}
      ${o&&t`<span class="pill bad" title=${k(o.reason)}>incomplete: its log is damaged</span>`}
      ${n&&t`<span class="pill warn" role="status">${$e(n)}</span>`}
      ${p&&t`<span class="pill bad">stopped by a failure</span>`}
      ${l?.execution==="serial"&&t`<span class="pill">one at a time</span>`}
      ${s&&t`<${Ge} counts=${s} />`}
      <${ms} />
    <//>
    <${Qe}><${Ye} /><//>
  </div>`}var es=e=>z({...g.value,view:e}),ms=()=>t`<nav class="segments" aria-label="Views">
    ${I.map(e=>t`<a key=${e} href=${ie({...g.value,view:e})}
      aria-current=${g.value.view===e?"page":void 0}
      onClick=${s=>(s.preventDefault(),es(e))}>${Ze[e]}</a>`)}
  </nav>
  <select class="pick views" aria-label="View" onChange=${e=>es(e.currentTarget.value)}>
    ${I.map(e=>t`<option key=${e} value=${e} selected=${g.value.view===e}>
      ${Ze[e]}</option>`)}</select>`,vs=({name:e})=>t`<div class="teach">
  <h2>The list <${T} of=${e} /> does not exist</h2>
  <p>It appears here as soon as someone uses it.</p>
  ${j.value&&t`<p><button class="primary" onClick=${()=>Y("add")}>Add the first task</button></p>`}
</div>`;function ws(){let e=f.value.tasks.size;return e?t`<div class="teach"><h2>No task fits</h2>
    <p>${ce(e,"task is","tasks are")} hidden by <code>${k(w.value)}</code>.</p>
    <p><button onClick=${()=>w.value=""}>Clear <${Q} of="escape" /></button></p>
    <p class="hush">Combine words to narrow it: <code>is:blocked</code> <code>@ann</code> <code>p:high</code>
      ${" "}<code>+label</code> <code>#4</code> or any text.</p></div>`:t`<div class="teach"><h2>Nothing to do here${U.value?" at that time":""}</h2>
    ${j.value&&t`
      <p>Press <${Q} of="a" /> to add a task, or let an agent plan: its tasks appear here automatically.</p>
      <p class="hush">From a terminal: <code>punch -c ${k(g.value.name)} add "Write the parser"</code></p>`}
  </div>`}var ee=matchMedia("(pointer: coarse), (max-width: 700px)"),ts=le(ee.matches);ee.addEventListener("change",()=>ts.value=ee.matches);var ss=6;function bs(e,s,o){let[n,l]=[0,0];return e.map(p=>{let i={...p,top:n,rowsTop:n+(p.title?s:0),index:l};return n=i.bottom=i.rowsTop+p.shown.length*o,l+=p.shown.length,i})}function gs(){let e=_e.value;N.value;let s=G(null),o=G(null),[[n,l],p]=P([0,800]),[i,r]=ts.value?[44,56]:[32,34],c=ne(()=>bs(e,i,r),[e,i]),$=!c.length,h=a=>c.flatMap(({shown:u,rowsTop:m})=>{let d=u.indexOf(a);return d<0?[]:[m+d*r]}),b=a=>h(a)[0]??null,W=a=>a!==null&&a>s.current.scrollTop-r&&a<s.current.scrollTop+s.current.clientHeight,V=()=>{let{scrollTop:a}=s.current,u=c.find(({bottom:_,shown:L})=>L.length&&_>a),m=u&&Math.max(0,Math.floor((a-u.rowsTop)/r)),d=W(b(y.value))?y.value:a>0?u?.shown[m]:null;o.current=d?{id:d,offset:b(d)-a}:null},C=()=>{let{scrollTop:a,clientHeight:u}=s.current;V(),(Math.abs(a-n)>=r||u!==l)&&p([a,u])},F=a=>{s.current.scrollTop=a,C()};if(A(()=>{if($)return;let a=new ResizeObserver(C);return a.observe(s.current),()=>a.disconnect()},[$]),A(()=>{if($)return;let{id:a,offset:u}=o.current??{},m=c.find(({shown:d})=>d.includes(a));m&&!m.isFolded&&b(a)-u!==s.current.scrollTop&&F(b(a)-u),V()},[c]),oe(()=>{let a=$?[]:h(y.value);if(!a.length)return;let{scrollTop:u,clientHeight:m}=s.current,d=c.at(-1),_=d.title?i:0,L=v=>d.isLast&&v<d.top?i:0,ae=v=>v<u+_,ns=v=>v+r>u+m-L(v);if(a.some(v=>!ae(v)&&!ns(v)))return;let[R]=a;F(ae(R)?R-_:R+r+L(R)-m)},[y.value,$]),$)return t`<${ws} />`;let[se,te]=[n-ss*r,n+l+ss*r],x=c.at(-1),os=x.index+x.shown.length;return t`<div ref=${s} class=${`rows by-${S.value}`} role="listbox" aria-label="Tasks" tabindex="0"
    aria-multiselectable="true" aria-activedescendant=${b(y.value)===null?void 0:`t-${y.value}`}
    onScroll=${C}>
    <div class="all" role="presentation" style=${{height:`${x.bottom}px`}}>
      ${c.filter(a=>a.bottom>se&&a.top<te).map(a=>t`<${ys} key=${a.key} group=${a} from=${se} to=${te} rowHeight=${r} count=${os} />`)}
      ${x.isLast&&t`<div role="presentation" style=${{height:`${x.top}px`}}></div>
        <${as} group=${x} />`}
    </div>
  </div>`}function ys({group:e,from:s,to:o,rowHeight:n,count:l}){let p=f.value,i=Math.max(0,Math.floor((s-e.rowsTop)/n)),r=e.shown.slice(i,Math.max(0,Math.ceil((o-e.rowsTop)/n))),c=e.title&&`${k(e.title)}, ${e.ids.length}${e.isFolded?", folded":""}`;return t`<div class="group" role=${c?"group":"presentation"} aria-label=${c||void 0}
    style=${{top:`${e.top}px`,height:`${e.bottom-e.top}px`}}>
    ${e.title&&!e.isLast&&t`<${as} group=${e} />`}
    <div class="some" role="presentation" style=${{top:`${e.rowsTop-e.top+i*n}px`}}>
      ${r.map(($,h)=>p.tasks.has($)&&t`<${Cs} key=${$} task=${p.tasks.get($)}
        depth=${e.depth?.get($)??0} index=${e.index+i+h} count=${l} group=${e} />`)}</div>
  </div>`}var as=({group:e})=>t`<div
  class=${`group-head${e.state?` g-${e.state}`:""}${e.isLast?" last":""}`}
  onClick=${()=>Fe(e,!e.isFolded)}>
  <span class="fold" aria-hidden="true">${e.isFolded?"\u25B8":"\u25BE"}</span>
  ${e.owner&&t`<${J} of=${e.owner} size="small" />`}
  <${T} class="cut" of=${e.title} />
  <span class="count">${e.ids.length.toLocaleString()}
    ${e.newest&&`, the newest ${re(e.newest)}`}</span></div>`,O=3,Ts=({of:e})=>t`<span class="labels" aria-hidden="true">
  ${e.slice(0,O).map(s=>t`<span key=${s} class="label"
    onClick=${o=>(o.stopPropagation(),M(me(s)))}><${T} of=${s} /></span>`)}
  ${e.length>O&&t`<span class="hush">+${e.length-O}</span>`}</span>`,ks={in_progress:e=>["doing",e.active_form],failed:e=>["why",e.fail_reason],asks:e=>["asks",`waits for ${D(e)}`],paused:e=>e.waits_for&&["waits",`waits for ${D(e)}`],pending:e=>f.value.hasOpenParts(e)&&["waits","holds open tasks"]};function xs({of:e}){let[s,o]=ks[B(e)]?.(e)||[];return o&&t`<${T} class=${`reason ${s}`} of=${o} />`}function Ss(e){let s=X(e)?[]:e.open_blockers??[],o=s.length>O?` +${s.length-O}`:"";return s.slice(0,O).map(n=>`#${n}`).join(" ")+o}function Os({of:e}){let s=S.value!=="parent"&&f.value.tasks.get(e.parent);return s&&t`<span class="parent"><${T} of=${s.title} /> › </span>`}function Cs({task:e,depth:s,index:o,count:n,group:l}){let p=B(e),i=Se(e),r=Ss(e),c=e.status!=="completed"&&f.value.freesOf(e.id),$=pe(e),[h,b]=[y.value===e.id,Te.value.has(e.id)],W=S.value==="label"&&e.labels?.[0]!==l.key&&e.labels?.length>1,V=({ctrlKey:C,metaKey:F})=>C||F?Y("mark",e.id):z({...g.value,task:h?null:e.id},{trail:!1});return t`<div id=${W?void 0:`t-${e.id}`} role="option" onClick=${V}
    class=${`row r-${p}${h?" here":""}${b?" marked":""}`}
    aria-selected=${h||b?"true":"false"} aria-posinset=${o+1} aria-setsize=${n}>
    <span class="grip" aria-hidden="true"></span>
    <span class="id">#${e.id}</span>
    <${He} state=${p} />
    <b aria-hidden="true" class=${`sign p-${e.priority}`}>${i}</b>
    <span class="what" style=${s?{paddingLeft:`${Math.min(s,8)*1.4}em`}:void 0}>
      <${Os} of=${e} /><${T} class="t" of=${e.title} /><${Ae} of=${e} /><${xs} of=${e} />
      ${r&&t`<span class="reason waits narrow" aria-hidden="true">waits for ${r}</span>`}</span>
    <span class="facts">
      ${!X(e)&&e.labels?.length>0&&t`<${Ts} of=${e.labels} />`}
      ${c>0&&t`<span class="hush">frees ${c}${c===de&&"+"}</span>`}
      ${r&&t`<span class="waits"><span aria-hidden="true">${fe.arrow} </span>
        <span class="sr">waits for </span>${r}</span>`}
      <${We} of=${e} /></span>
    <span class=${`held-by${$?" gone":""}`} title=${$||void 0}>${e.owner&&t`
      <${J} of=${e.owner} size="small" /><${T} class="owner" of=${ue(e).slice(1)} />`}</span>
    <span class="age"><${Ne} at=${e.status_changed_at} /></span>
  </div>`}Pe("list/list",{left:{run:Le},right:{run:Re}});export{ds as a,Ts as b,xs as c,Ss as d};
