/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as tt,b as st,c as at,d as ot,f as nt,g as k,h as rt,i as $t,j as pt,k as ae,l as mt,m as ft,n as ht}from"./chunk-E2QJGZ27.js";import{A as He,B as W,C as je,D as J,F as E,G as m,H as ze,I as B,J as O,K as w,L as g,N as A,O as R,P as ue,Q as Ue,R as Ye,S as Ge,T as Xe,U as Je,W as V,X as $e,_ as Ze,a as De,b as Ie,c as d,ca as Z,d as P,ea as N,f as u,fa as Qe,g as z,ga as H,h as Ke,ha as Q,i as x,ia as S,j as F,k as Pe,l as Fe,la as et,ma as pe,n as U,na as it,o as Y,oa as ee,p as G,pa as te,q as qe,qa as f,r as C,sa as L,t as q,ta as lt,ua as se,v as X,va as ct,w as We,wa as dt,x as Be,xa as ut,y as Ve,ya as me}from"./chunk-LZR44I4I.js";import{a as Se,b as K,d as xe,e as Ce,h as Ee,i as M,k as j,l as s,m as Oe,n as Ae,o as Ne,p as Le,q as de,s as Me,u as Re}from"./chunk-IAONOKGE.js";var fe="punchlist.letters-off",It={ArrowDown:"down",ArrowUp:"up",ArrowLeft:"left",ArrowRight:"right",Home:"home",End:"end",PageUp:"pageup",PageDown:"pagedown",Enter:"enter",Escape:"escape",Backspace:"backspace"," ":"space"},Kt=new Map(X.flatMap(e=>e.keys.flatMap(t=>t.keys.map(a=>[a,t])))),he=()=>localStorage.getItem(fe)!==null,vt=e=>e?localStorage.removeItem(fe):localStorage.setItem(fe,"1");function Pt(e){let t=It[e.key]??e.key;return e.altKey?null:(e.ctrlKey||e.metaKey)&&t.toLowerCase()==="z"?e.shiftKey?"U":"u":e.ctrlKey||e.metaKey?`ctrl+${t.toLowerCase()}`:t}var Ft={now:"now",inbox:"now",list:"list"},qt="a[href], button, summary, select";function Wt(e){let t=Pt(e),a=Kt.get(t);if(!a||e.isComposing||Q.value&&t!=="ctrl+k")return;let{target:o}=e;if(o.closest?.("input:not([type=range]), textarea, select"))return t!=="escape"?void 0:(o.blur(),o.id==="filter"&&((d.value.name?A:je).value=""),e.preventDefault());(t==="enter"||t==="space")&&o.closest?.(qt)||o.type==="range"&&["up","down","home","end","pageup","pagedown"].includes(t)||t.length===1&&he()||a.in.includes(Ft[d.value.screen]??"board")&&(e.preventDefault(),k(a.name))}var bt=()=>document.addEventListener("keydown",Wt);var Bt={form:Ht,help:zt,palette:Xt};function gt(){let e=Q.value;return e&&s`<${Vt} key=${e.kind+(e.title??"")} open=${e} />`}function Vt({open:e}){let t=Ce(null);xe(()=>{let r=document.activeElement;return t.current.showModal(),t.current.querySelector("[data-first]")?.focus({preventScroll:!0}),()=>r?.isConnected&&r.focus?.({preventScroll:!0})},[]);let a=r=>r.target===t.current&&S(),o=r=>(r.preventDefault(),S()),n=Bt[e.kind];return s`<dialog ref=${t} class=${e.kind} aria-labelledby="dialog-title" onCancel=${o}
    onMouseDown=${a}><${n} ...${e} /></dialog>`}function Ht({title:e,text:t=[],lines:a=[],code:o,fields:n=[],values:r={},confirm:c,danger:p,only:v,send:l}){let[i,b]=K(null);return s`<form method="dialog" onSubmit=${async h=>{h.preventDefault();let y={};for(let[T,ce]of new FormData(h.currentTarget))y[T]=y[T]&&ce?`${y[T]}T${ce}`:y[T]||ce.trim();if(!l)return S(y);try{S(await l(y))}catch(T){if(!(T instanceof Oe))throw T;b(T.message)}}} onKeyDown=${h=>h.key==="Enter"&&(h.ctrlKey||h.metaKey)&&h.currentTarget.requestSubmit()}>
    <h2 id="dialog-title"><bdi>${e}</bdi></h2>
    ${a.length>0&&s`<ul class="lines">
      ${a.map((h,y)=>s`<li key=${y}><bdi>${h}</bdi></li>`)}</ul>`}
    ${t.map(h=>s`<p key=${h}>${h}</p>`)}
    ${o&&s`<p><code class="copy">${o}</code></p>`}
    <div class="fields">${n.map((h,y)=>s`<${jt} key=${h.name} field=${h} value=${r[h.name]??""} first=${y===0} />`)}</div>
    ${i&&s`<p class="bad" role="alert">${u(i)}</p>`}
    <div class="buttons">
      <span class="room"></span>
      ${!v&&s`<button type="button" onClick=${()=>S()}>Cancel</button>`}
      <button type="submit" class=${p?"danger":"primary"} data-first=${n.length?void 0:!0}>
        ${c}</button>
    </div>
  </form>`}function jt({field:{name:e,label:t,kind:a="line",hint:o,required:n,options:r,half:c,rows:p=4},value:v,first:l}){let i=`f-${e}`,b={id:i,name:e,"data-first":l||void 0,"aria-describedby":o?`${i}-hint`:void 0};return s`<div class=${`field${c?" half":""}`}>
    <label for=${i}>${t}${o&&s` <span class="hush" id=${`${i}-hint`}>${o}</span>`}</label>
    ${a==="long"?s`<textarea ...${b} required=${n} rows=${p} maxlength="65536"
          defaultValue=${v}></textarea>`:a==="choice"?s`<select ...${b}>${r.map(I=>s`<option key=${I} value=${I} selected=${I===v}>${I}</option>`)}</select>`:a==="time"?s`<span class="pair"><input ...${b} type="date" defaultValue=${v.slice(0,10)} />
              <input type="time" name=${e} aria-label="Time of day, optional"
                defaultValue=${v.slice(11)} /></span>`:s`<input ...${b} type="text" required=${n} maxlength=${e==="title"?500:8192}
              autocomplete="off" defaultValue=${v} />`}
  </div>`}function zt(){let[e,t]=K(he()),a=o=>(vt(!o.currentTarget.checked),t(o.currentTarget.checked));return s`<h2 id="dialog-title">Keys</h2>
    <div class="groups">${X.map(({title:o,keys:n})=>s`<section key=${o}>
      <h3>${o}</h3><dl>${n.map(r=>s`<${Ut} key=${r.name} ...${r} />`)}</dl></section>`)}</div>
    <div class="buttons">
      <label class="check">
        <input type="checkbox" checked=${e} onChange=${a} /> Turn off single-letter keys</label>
      <span class="room"></span><button class="primary" data-first onClick=${()=>S()}>Close</button></div>`}var Ut=({keys:e,does:t})=>s`<div>
  <dt>${e.map(a=>s`<${L} key=${a} of=${a} />`)}</dt><dd>${t}</dd></div>`;function Yt(e,t){let a=0,o=0;for(let n of t){let r=e.indexOf(n,a);if(r<0)return null;o+=r===a?0:/[\s·.-]/.test(e[r-1]??" ")?1:r-a+2,a=r+1}return o}var Gt=12;function Xt(){let[e,t]=K(""),[a,o]=K(0),n=e.trim().toLowerCase(),r=rt().map(l=>({...l,score:Yt(l.text.toLowerCase(),n)})).filter(l=>l.score!==null);n&&r.sort((l,i)=>l.score-i.score);let c=r.slice(0,Gt),p=l=>l&&(S(),l.run()),v=l=>{let i={ArrowDown:1,ArrowUp:-1}[l.key];i?(l.preventDefault(),o(Math.min(c.length-1,Math.max(0,a+i)))):l.key==="Enter"&&(l.preventDefault(),p(c[a]))};return s`<h2 id="dialog-title" class="sr">Find a list or a command</h2>
    <input data-first type="text" role="combobox" aria-expanded="true" aria-controls="found"
      aria-label="Find a list or a command" aria-activedescendant=${c.length?`found-${a}`:void 0}
      placeholder="A list or a command" autocomplete="off" value=${e}
      onInput=${l=>(t(l.currentTarget.value),o(0))} onKeyDown=${v} />
    <div id="found" role="listbox" aria-label="Matches">${c.map((l,i)=>s`<div key=${l.key}
      id=${`found-${i}`} role="option" aria-selected=${i===a?"true":"false"}
      onClick=${()=>p(l)}>
      <bdi>${l.text}</bdi><span class="hush">${l.kind}</span></div>`)}</div>
    ${!c.length&&s`<p class="hush" role="status">No matches.</p>`}`}var yt=1e3,$=M(null);async function kt(e,t,a){let o=[];for(;;){let n=await Re("GET",`${We}${encodeURIComponent(e)}/events?after=${t}&limit=${yt}`);if(o.push(...n.events.filter(r=>r.seq<=a)),n.events.length<yt||n.events.at(-1).seq>=a)return o;t=n.events.at(-1).seq}}var ve=null;async function _t(e=200){let t=d.value.name,{from:a,events:o}=$.value,n=0;for(let r=500;a>0&&n<e;r*=4){let c=Math.max(0,a-r),p=await kt(t,c,a);if($.value?.name!==t)return;[a,o,n]=[c,[...p,...o],n+p.length],p[0]?.version===1&&(a=0)}$.value={...$.value,from:a,events:o}}async function Jt(e,t){if($.value?.name!==e)return $.value={name:e,from:t,to:t,events:[]},_t();let a=await kt(e,$.value.to,1/0);$.value?.name!==e||!a.length||($.value={...$.value,to:a.at(-1).seq,events:[...$.value.events,...a]})}function ge(){if(ve||!m.value)return;let{name:e,rows:t}=m.value,{version:a}=t;ve=H(()=>Jt(e,t.seq)).finally(()=>{ve=null,be&&m.value&&m.value.rows.version!==a&&Zt()&&ge()})}var Zt=()=>$.value?.name!==m.value.name||Tt()<m.value.rows.version,Tt=()=>$.value.events.at(-1)?.version??0,be=!1;j(()=>{be=d.value.view==="history"||O.value,m.value&&be&&Ee(ge)});function St(e){($.value?.name!==d.value.name||Tt()<(m.value?.rows.version??0))&&queueMicrotask(ge);let a=({event:{task:o,blocker:n}})=>o===e||o?.id===e||n===e;return($.value?.events??[]).filter(a).toReversed()}var oe=e=>{let t=typeof e=="string"?e:e===null?"none":JSON.stringify(e);return t.length>60?`${t.slice(0,59)}\u2026`:t},Qt=(e,t)=>{let a=t.replace(/_day$/,"");return a===t?!e[`${t}_day`]:e[t]||!(a in e)},es=e=>e.replace(/_ms$|_day$/,"").replace("_"," "),xt=(e,t)=>Object.keys(e).filter(a=>t.includes(a)&&Qt(e,a)).map(a=>`${es(a)} ${oe(ne[a]?.(e[a])??e[a])}`).join(", "),ts=["title","description","priority","active_form","owner","parent","metadata","due","not_before","due_day","not_before_day","labels","links","estimate_ms"],ne={};for(let[e,[t]]of Object.entries(at))ne[e]=a=>t(a)||"none";for(let e of st)ne[e]=t=>t?F({due:t},"due"):"none",ne[`${e}_day`]=t=>t?F({due_day:t},"due"):"none";function ss(e){let t=Object.entries(e.settings??{}).map(([a,o])=>`${a} ${o}`);return[xt(e,["title","attached","detached"]),...t].filter(Boolean).join(", ")}function as({from:e,to:t,waits_for:a,fail_reason:o,result_summary:n}){let r=a?`, waits for a ${a}`:"",c=o||n?` (${oe(o||n)})`:"";return`${e.replace("_"," ")} ${q.to} ${t.replace("_"," ")}${r}${c}`}var os={ConversationOpened:()=>"created the list",ConversationConfigured:e=>`set ${ss(e)}`,TaskAdded:e=>`added \u201C${e.task.title}\u201D`,TaskEdited:e=>`edited ${xt(e,ts)}`,NoteAdded:e=>`noted${e.author?` for ${e.author}`:""}: ${oe(e.text)}`,NoteRemoved:()=>"removed a note",TaskWoken:()=>"is no longer deferred",TaskMoved:e=>e.before?`moved before #${e.before}`:"moved to the end",StatusChanged:as,Deleted:()=>"deleted",DependencyAdded:e=>`waits for #${e.blocker}`,DependencyRemoved:e=>`no longer waits for #${e.blocker}`,Claimed:e=>`claimed by ${e.owner}`,Released:e=>`released by ${e.owner} (${e.reason})`,ListCleared:()=>"cleared the list",MessageAppended:e=>`wrote: ${oe(e.content)}`,EventLost:()=>"lost to damage"},Ct=({event:e})=>u((os[e.type]??(()=>`${e.type} (unknown to this page)`))(e)),re=({event:e})=>e.task?.id??e.task??null,ye=({entries:e,limit:t=400})=>s`<ol class="story">
  ${e.slice(0,t).map(a=>s`<${ns} key=${a.seq} entry=${a} />`)}</ol>`,ns=({entry:e})=>s`<li class=${B.value?.version===e.version?"here":""}>
  <button title=${`Version ${e.version}: show the list as it was`}
    onClick=${()=>H(()=>Z(e.version))}>
    <span class="when">${x(e.at)}</span>
    <span class="said">${re(e)&&s`<span class="id">#${re(e)}</span> `}${Ct(e)}</span>
    <${f} class="owner" of=${e.actor} />
  </button>
  ${w.value&&s`<button class="quiet" title=${`Undo this change by ${u(e.actor)}`}
    aria-label=${`Undo version ${e.version}`} onClick=${()=>nt(e)}>↶</button>`}</li>`;function Et(){let e=$.value?.name===d.value.name?$.value:null;return e?s`<div class="scroll" tabindex="0" aria-label="Newest first" role="group">
    <${ye} entries=${e.events.toReversed()} limit=${600} />
    ${e.from>0&&s`<button class="more" onClick=${()=>H(_t)}>Older</button>`}
  </div>`:s`<p class="hush" role="status">Loading the history…</p>`}var wt=0;function rs(e){cancelAnimationFrame(wt),wt=requestAnimationFrame(()=>H(()=>Z(e)))}function Ot(){let e=m.value?.rows.version;if(!e)return null;let t=B.value?.version??e;return s`<label class="time"><span class="sr">Version of the list</span>
    <input type="range" min="1" max=${e} value=${t}
      aria-valuetext=${O.value?`version ${t} of ${e}`:"now"}
      onInput=${a=>rs(Number(a.currentTarget.value))} />
    <output>${O.value?`${t} of ${e}`:"now"}</output></label>`}function At(){if(!B.value||!d.value.name)return null;let{version:e}=B.value,a=($.value?.name===d.value.name?$.value.events:[]).find(n=>n.version===e),o=a&&`${x(a.at)}: ${re(a)?`#${re(a)} `:""}${Ct(a)}`;return s`<div class="past-banner" role="status">
    <span><b>As it was</b> at version ${e} of ${m.value?.rows.version}
      ${a&&s`<span class="made"> · <${f} of=${a.actor} />, ${o}</span>`}</span>
    <button onClick=${()=>Z(null)}>Back to now</button>
  </div>`}var we=[],is=()=>s`<div class="teach" role="alert"><h2>This part of the page could not be loaded</h2>
  <p>The server may have been updated. <button class="text" onClick=${()=>location.reload()}>Reload</button></p></div>`;function _(e){let t=M(null),a=!1,o=async()=>{if(!a){a=!0;try{t.value=(await e()).default}catch(n){console.warn(n),a=!1,t.value=is}}};return we.push(o),n=>{t.value||o();let r=t.value;return r?s`<${r} ...${n} />`:s`<p class="hush" role="status">Opening…</p>`}}function Nt(){let e=window.requestIdleCallback??(a=>setTimeout(a,1e3)),t=async()=>{await we.shift()?.(),we.length&&e(t)};e(t)}var ls=e=>["pending","paused"].includes(e.status)&&e.waits_for!=="yes"&&!e.open_blockers?.length&&!qe(e)&&(e.status==="paused"||!g.value.hasOpenParts(e)),cs=[["approve","Approve","y",e=>e.waits_for==="yes"],["reject","Reject","n",e=>e.waits_for==="yes"],["start","Start","s",ls],["done","Done","d",e=>e.status==="in_progress"],["fail","Failed","f",e=>e.status==="in_progress"],["pause","Pause","p",e=>["pending","in_progress"].includes(e.status)],["reopen","Reopen","r",e=>C(e)],["note","Note","m",()=>!0],["edit","Edit","e",()=>!0],["delete","Delete","x",()=>!0]],ke=M(!1),le=e=>P({...d.value,task:e},{trail:!1});function Mt(){m.value;let e=V.value;if(!e)return null;let t=Y(e),{tasks:a}=g.value,o=i=>(i??[]).map(b=>a.get(b)).filter(Boolean),n=o(e.blocked_by),r=o(e.blocks),c=g.value.childrenOf(e.id),p=r.filter(i=>i.open_blockers?.length===1&&!C(i)).length,v=p&&!C(e)?`done frees ${p} of ${r.length}`:"",l=ds(e);return s`<aside class="detail" aria-label=${`Task ${e.id}`} tabindex="0">
    <div class="top">
      <button class="close" aria-label="Close" onClick=${()=>le(null)}>×</button>
      <span class=${`pill s-${t}`}><${ee} state=${t} />${it(e)}</span>
      <span class="id">#${e.id}</span>
      ${e.priority!=="normal"&&s`<span class=${`p-${e.priority}`}>${e.priority}</span>`}
      ${e.owner&&s`<${f} class="owner" of=${U(e)} />`}
      <${se} of=${e} />
      ${e.attempts>1&&s`<span class="hush">attempt ${e.attempts}</span>`}
    </div>
    <h2><${f} of=${e.title} /></h2>
    ${t==="in_progress"&&s`<p class="doing">
      ${e.active_form&&s`<${f} of=${e.active_form} /> · `}
      ${"for "}<${te} at=${e.status_changed_at} /></p>`}
    ${e.labels?.length>0&&s`<p class="labels">
      ${e.labels.map(i=>s`<${lt} key=${i} of=${i} />`)}</p>`}
    ${e.description&&s`<p class="prose">${z(e.description)}</p>`}
    ${e.waits_for&&s`<p class="doing">Done, and waits for ${u(G(e))}</p>`}
    ${e.fail_reason&&s`<${Lt} title="Reason" class="bad" text=${e.fail_reason} />`}
    ${e.result_summary&&s`<${Lt} title="Result" text=${e.result_summary} />`}
    ${w.value&&s`<${us} of=${e} />`}
    ${$e.value?.task===e.id&&s`<${fs} of=${$e.value} />`}
    ${e.parent&&a.get(e.parent)&&s`<${ie} title="Part of" tasks=${[a.get(e.parent)]} />`}
    ${c.length>0&&s`<${ie} title="Parts" tasks=${c} />`}
    ${n.length>0&&s`<${ie} title="Waits for" tasks=${n} />`}
    ${r.length>0&&s`<${ie} title="Blocks" note=${v} tasks=${r} />`}
    ${e.links?.length>0&&s`<div class="links"><h3>Links</h3>
      ${e.links.map(i=>s`<${ps} key=${i.kind+i.to} link=${i} />`)}</div>`}
    ${e.notes?.length>0&&s`<div class="links"><h3>Notes</h3>
      ${e.notes.map(i=>s`<${$s} key=${i.version} note=${i} />`)}</div>`}
    ${l.length>0&&s`<dl class="meta">${l.map(([i,b])=>s`<div key=${i}>
      <dt>${u(i)}</dt><dd>${u(typeof b=="string"?b:JSON.stringify(b))}</dd></div>`)}</dl>`}
    <details class="activity" open=${ke.value}
      onToggle=${i=>ke.value=i.currentTarget.open}>
      <summary>Activity</summary>
      ${ke.value&&s`<${ye} entries=${St(e.id)} />`}
    </details>
    ${e.estimate_ms>0&&s`<p class="hush">estimated at ${tt(e.estimate_ms)}</p>`}
    <p class="hush">added ${x(e.created_at)} · changed ${x(e.updated_at)} · version ${e.version}</p>
  </aside>`}var ds=e=>Object.entries(e.metadata??{}).filter(([t])=>t!=="imported"),us=({of:e})=>s`<div class="actions">
  ${cs.filter(([,,,t])=>t(e)).map(([t,a,o])=>s`<button key=${t}
    class=${{approve:"primary",delete:"quiet"}[t]??""} onClick=${()=>k(t)}>
    ${a} <${L} of=${o} /></button>`)}
</div>`,Lt=({title:e,text:t,class:a=""})=>s`<div class=${`note ${a}`}>
  <h3>${e}</h3><p class="prose">${z(t)}</p></div>`,$s=({note:e})=>s`<div class="note">
  <p class="hush"><${f} of=${e.actor} />
    ${e.imported_by&&` (imported by ${u(e.imported_by)})`} · ${x(e.at)}</p>
  <p class="prose">${z(e.text)}</p></div>`;function ps({link:{kind:e,to:t}}){let a=["discovered-from","relates-to"].includes(e)&&g.value.tasks.get(t),o=s`<${f} of=${t} />`;return s`<div class="lead"><span class="hush">${u(e)}</span>
    ${a?s`<${me} task=${a} onOpen=${le} />`:ot(t)?s`<a href=${t} target="_blank" rel="noopener noreferrer">${o}</a>`:s`<code>${o}</code>`}</div>`}var _e=60,ie=({title:e,note:t,tasks:a})=>s`<div class="links">
  <h3>${e}${t&&s` <span class="hush">${t}</span>`}</h3>
  ${a.slice(0,_e).map(o=>s`<${me} key=${o.id} task=${o} onOpen=${le} />`)}
  ${a.length>_e&&s`<p class="hush">and ${a.length-_e} more</p>`}
</div>`,ms={stopped:()=>"the list stops at failures, and it failed:",serial:()=>"the list runs one task at a time, and this is in progress:",blocker:()=>"waits for",parent:()=>"its parent is on hold:",reserved:e=>`it is reserved for @${u(e.owner)}:`,child:()=>"has an open task:",heading:()=>"it only holds the tasks below it:",deferred:e=>`not before ${F(e,"not_before")}:`},fs=({of:{startable:e,reasons:t}})=>s`<div class="note" role="status">
  <h3>${e&&!t.length?"It can be started":"Why it can't start"}</h3>
  <ul class="reasons">${t.map((a,o)=>s`<${hs} key=${o} reason=${a} />`)}</ul>
</div>`;function hs({reason:e}){let{kind:t,status:a,by:o,title:n,owner:r,depth:c=0}=e,p=ms[t]??(()=>`it is ${pe[a]}:`);return s`<li style=${{marginLeft:`${c*1.1}em`}}>
    ${p(e)} <button class="text" onClick=${()=>le(o)}>#${o}</button> <${f} of=${n} />
    <span class="hush"> ${pe[a]}${r?` \xB7 @${u(r)}`:""}</span></li>`}var Rt=matchMedia("(pointer: coarse)").matches?48:40,vs={list:Ss,flow:_(()=>import("./flow-KHDX4GPT.js")),graph:_(()=>import("./graph-LA2S7DNU.js")),timeline:_(()=>import("./timeline-6QZUVRVH.js")),history:Et};function Dt(){let{name:e,view:t}=d.value,a=vs[t];m.value;let o=g.value,n=ze.value||o?.version===0;return s`<div class=${`list-page v-${t}${O.value?" past":""}${V.value?" has-task":""}`}>
    <${ys} name=${e} />
    <main id="main" class="panes">
      <div class="face" role="region" aria-label=${bs[t]}>
        ${n?s`<${_s} name=${e} />`:o?s`<${a} />`:s`<p class="hush" role="status">Opening…</p>`}</div>
      ${V.value&&s`<${Mt} />`}
    </main>
  </div>`}var bs={list:"Tasks",flow:"Tasks by state",graph:"Dependencies",timeline:"Timeline",history:"What happened"},gs={list:"List",flow:"Columns",graph:"Graph",timeline:"Timeline",history:"History"};function ys({name:e}){m.value;let{counts:t,damaged:a,shared:o}=g.value??{},{settings:n}=E.value??{},r=t?.failed>0&&n?.on_failure==="stop";return s`<div class="head" role="region" aria-label="The list">
    <${ae} title=${E.value?J(E.value):e}>
      ${t&&s`<span class="done">${t.completed} of ${He(t)}</span>`}
      ${a&&s`<span class="pill bad" title=${u(a.reason)}>incomplete: its log is damaged</span>`}
      ${o&&s`<span class="pill warn" role="status">${Fe(o)}</span>`}
      ${r&&s`<span class="pill bad">stopped by a failure</span>`}
      ${n?.execution==="serial"&&s`<span class="pill">one at a time</span>`}
      ${t&&s`<${dt} counts=${t} />`}
      <${ws} />
    <//>
    <div class="tools">
      <${ks} /><${mt} of=${A} label="Filter tasks" />
      <span class="room"></span>
      <${Ot} />
    </div>
  </div>`}var ws=()=>s`<nav class="segments" aria-label="Views">
  ${De.map(e=>s`<a key=${e} href=${Ie({...d.value,view:e})}
    aria-current=${d.value.view===e?"page":void 0}
    onClick=${t=>(t.preventDefault(),P({...d.value,view:e}))}>${gs[e]}</a>`)}
</nav>`,ks=()=>s`<div class="filters" role="group" aria-label="Filters">
  ${Ue.map(e=>{let t=e==="all"?"":`is:${e}`;return s`<button key=${e} aria-pressed=${A.value.trim()===t?"true":"false"}
      onClick=${()=>A.value=t}>${e}</button>`})}
</div>`,_s=({name:e})=>s`<div class="teach">
  <h2>The list <${f} of=${e} /> does not exist</h2>
  <p>It appears here as soon as someone uses it.</p>
  ${w.value&&s`<p><button class="primary" onClick=${()=>k("add")}>Add the first task</button></p>`}
</div>`;function Ts(){let e=g.value.tasks.size;return e?s`<div class="teach"><h2>No matching tasks</h2>
    <p>${Pe(e,"task is","tasks are")} hidden by <code>${u(A.value)}</code>.
      ${" "}<${L} of="escape" /> clears it.</p>
    <p class="hush">Combine words to narrow it: <code>is:blocked</code> <code>@ann</code> <code>p:high</code>
      ${" "}<code>+label</code> <code>#4</code> or any text.</p></div>`:s`<div class="teach"><h2>Nothing to do here${O.value?" at that time":""}</h2>
    ${w.value&&s`
      <p>Press <${L} of="a" /> to add a task, or let an agent plan: its tasks appear here automatically.</p>
      <p class="hush">From a terminal: <code>punch -c ${u(d.value.name)} add "Write the parser"</code></p>`}
  </div>`}function Ss(){let e=Xe.value;if(m.value,!g.value)return null;if(!e.length)return s`<${Ts} />`;let t=Je.value,a=g.value,o=a.tree();return s`<${ut} items=${e} size=${Rt} active=${t} class="rows" role="listbox" aria-label="Tasks"
    aria-multiselectable="true" aria-activedescendant=${t<0?void 0:`t-${ue.value}`}>
    ${(n,r)=>a.tasks.has(n)&&s`<${Cs} key=${n} task=${a.tasks.get(n)} depth=${o.get(n)}
      index=${r} count=${e.length} />`}
  <//>`}var D=3,xs=({of:e})=>s`<span class="labels" aria-hidden="true">
  ${e.slice(0,D).map(t=>s`<span key=${t} class="label"
    onClick=${a=>(a.stopPropagation(),Ye(Ge(t)))}><${f} of=${t} /></span>`)}
  ${e.length>D&&s`<span class="hush">+${e.length-D}</span>`}</span>`;function Cs({task:e,depth:t,index:a,count:o}){let n=Y(e),r=!C(e)&&e.open_blockers?.length?e.open_blockers:null,c=et(e),[p,v]=[ue.value===e.id,R.value.has(e.id)],l=({ctrlKey:i,metaKey:b})=>i||b?k("mark",e.id):P({...d.value,task:e.id},{trail:!1});return s`<div id=${`t-${e.id}`} class=${`row r-${n}${p?" here":""}${v?" marked":""}`}
    role="option" style=${{height:`${Rt}px`}} aria-selected=${p||v?"true":"false"}
    aria-posinset=${a+1} aria-setsize=${o} onClick=${l}>
    <span class="id">#${e.id}</span>
    <span class="stem" style=${{width:`${Math.min(t,8)*1.4}em`}}></span>
    <${ee} state=${n} />
    <span class="what">
      ${c&&s`<b aria-hidden="true" class=${`p-${e.priority}`}>${c}</b>`}
      <${f} class="t" of=${e.title} /><${ct} of=${e} />
      ${n==="in_progress"&&s`<span class="doing">
        ${e.active_form&&s`<${f} of=${e.active_form} /> ${q.dot} `}
        <${te} at=${e.status_changed_at} /></span>`}
      ${n==="failed"&&e.fail_reason&&s`<${f} class="why" of=${e.fail_reason} />`}</span>
    ${!C(e)&&e.labels?.length>0&&s`<${xs} of=${e.labels} />`}
    <${se} of=${e} />
    ${r&&s`<span class="waits">
      <span aria-hidden="true">${q.arrow} </span><span class="sr">waits for </span>
      ${r.slice(0,D).map(i=>`#${i}`).join(" ")}
      ${r.length>D&&` +${r.length-D}`}</span>`}
    ${e.waits_for&&s`<span class="waits" aria-hidden="true">waits for ${u(G(e))}</span>`}
    ${e.owner&&n!=="completed"&&s`<${f} class="owner" of=${U(e)} />`}
  </div>`}function Te(){return s`<${ae} title="Now" /><main class="board" id="main">
    ${Ve.value&&!Be.value.size?s`<${ht} />`:s`<p class="hush">${W.value} need you</p>`}
  </main>`}var Es=()=>Ne.value==="away"&&s`<div class="away-banner" role="alert">
  <b>Away.</b> The server has not responded for
  ${" "}<time>${Ke(Math.max(1e3,Ze.value-Le.value))}</time>. This is the last known state;
  it updates when the server is back.
</div>`,Os={start:"Start",done:"Done",pause:"Pause",reopen:"Reopen",delete:"Delete"},As=()=>R.value.size>0&&s`<div class="marked-bar" role="region" aria-label="Marked tasks">
  <b>${R.value.size} marked</b>
  ${w.value&&Object.entries(Os).map(([e,t])=>s`<button key=${e} onClick=${()=>k(e)}>${t}</button>`)}
  <button class="quiet" onClick=${()=>R.value=new Set}>Unmark</button>
</div>`,Ns=()=>s`<div class=${`toast ${N.value?.kind??""}`}
  role=${N.value?.kind==="bad"?"alert":"status"} hidden=${!N.value}>
  <bdi>${u(N.value?.text)}</bdi>
</div>`,Ls=()=>s`<main class="door" id="main">
  <img src="/icon.svg" alt="" width="56" height="56" />
  <h1>punchlist</h1>
  <p>This page shows your task lists to you alone. To sign this browser in, run</p>
  <p><code class="copy">punch web --link</code></p>
  <p>and open the link it prints. A link works once, within a minute; then this browser stays signed in.</p>
  ${de.value&&s`<p class="bad" role="alert">${de.value}</p>`}
  ${N.value&&s`<p class="bad" role="alert">${u(N.value.text)}</p>`}
</main>`;function Ms(e){e.preventDefault(),document.querySelector("#main [tabindex], #main a, #main button")?.focus()}var Rs={now:Te,inbox:_(()=>import("./inbox-54JJVWUA.js")),lists:ft,list:Dt,timeline:_(()=>import("./timeline-6QZUVRVH.js")),agent:_(()=>import("./agent-KJYMSM4S.js")),who:_(()=>import("./who-KHQM3ZQV.js")),chat:()=>{location.assign("/chat")}};function Ds(){return Ae.value?s`<a class="skip" href="#main" onClick=${Ms}>Skip to the screen</a>
    <div class="frame"><${$t} /><div class="page"><${Es} /><${At} />
      <${Rs[d.value.screen]} />
      <${As} /></div><${pt} /></div>
    <${Ns} /><${gt} />`:s`<${Ls} />`}var Is={now:"Now",inbox:"Inbox",lists:"Lists",timeline:"Timeline",who:"Who is there",chat:"Chat"};j(()=>{let{name:e,screen:t,rest:a}=d.value,o=e?E.value?J(E.value):e:Is[t]??a[0];document.title=`${W.value?`(${W.value}) `:""}${u(o)} \xB7 punchlist`});async function Ks(){try{await Me()}catch(e){Qe(e.message,"bad")}bt(),Se(s`<${Ds} />`,document.querySelector("#app")),Nt()}Ks();
