/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{d as V}from"./chunk-SCC3MLTB.js";import{e as v,f as A,h as y}from"./chunk-KQ67PHBF.js";import{J as g,K as l,x as X}from"./chunk-LEMMXRVP.js";import{O as f,Q as C,S as R,T as D,U as N,Z as w,_ as P,b as $,ba as F,c as i,f as u,g as m,ra as K,xa as E}from"./chunk-DB5ATF4C.js";import{i as _,j as b,l as t,m as k,n as c,o as I,y as x}from"./chunk-OD44XGYS.js";var B="punchlist.views",T=20,M=80,S=["q","group","sort"],Z=e=>typeof e?.name=="string"&&e.name.length<=M&&e.name&&S.every(a=>["undefined","string"].includes(typeof e[a])),O=e=>Array.isArray(e)?e.filter(Z).slice(0,T):[];function ee(){try{return O(JSON.parse(localStorage.getItem(B)))}catch{return[]}}var h=_(ee()),j=b(()=>O(N.value?.metadata?.views)),q=e=>({name:i.value.name,view:i.value.view,query:Object.fromEntries(S.map(a=>[a,e[a]]))}),L=e=>S.every(a=>(e[a]??"")===(i.value.query[a]??"")),W=b(()=>[...j.value,...h.value].find(L)),ve=b(()=>!W.value&&!L({}));function ae(e,a){let s=e.filter(({name:n})=>n!==a.name);if(s.length>=T)throw new k("invalid_params",`There are already ${T} views. Delete one of them first.`);return[...s,a]}function G(e){h.value=e(h.value),localStorage.setItem(B,JSON.stringify(h.value))}var te=5;async function H(e){let a=K();for(let s=1;;s++){let{conversation:n}=await x("GET",a),p=e(O(n.metadata?.views)),o={metadata:{views:p.length?p:null}};try{let r=(await x("PATCH",a,o,{match:n.version})).conversation;f.value=new Map(f.value).set(r.conversation,r);return}catch(r){if(r.kind!=="version_conflict"||s===te)throw r}}}var z=["me, in all lists","everyone, in this list"];function be(){let{query:e}=i.value,a={name:"scope",label:"For",kind:"choice",options:z};return E({title:"Save this view",fields:[{name:"name",label:"Name",required:!0},...P.value?[a]:[]],confirm:"Save",send:async({name:s,scope:n})=>{if(s.length>M)throw new k("invalid_params",`A view's name has at most ${M} characters.`);let p={name:s,...Object.fromEntries(S.filter(o=>e[o]).map(o=>[o,e[o]]))};return await(n===z[1]?H:G)(o=>ae(o,p)),p}})}function we(){let e=W.value,a=j.value.includes(e);return E({title:`Delete the view \u201C${m(e.name)}\u201D?`,text:a?["Everyone who uses this list loses it."]:[],confirm:"Delete",danger:!0,send:()=>(a?H:G)(s=>s.filter(({name:n})=>n!==e.name))})}var se=({view:e,class:a})=>t`<a class=${a} href=${$(q(e))}
  aria-current=${L(e)?"true":void 0} onClick=${u(q(e))}><${v} of=${e.name} /></a>`,J=()=>i.value.name&&h.value.length>0&&t`
  <section aria-labelledby="rail-views"><h2 id="rail-views">Views</h2>
    <ul>${h.value.map(e=>t`<li key=${e.name}><${se} view=${e} /></li>`)}</ul></section>`;var ne=12,oe=2,U=[["now","Now",!0],["inbox","Inbox",!0],["lists","Lists",!0],["timeline","Timeline",!1],["chat","Chat",!1]],re={opening:"opening",live:"live",silent:"not answering",away:"away",asleep:"paused"},d=({of:e})=>t`<svg class="icon" aria-hidden="true"><use href=${`#i-${e}`} /></svg>`,Y=e=>i.value.screen===e;function Oe(){let e=c.value.scope.list;return t`<nav class="rail" aria-label="Screens">
    <a class="brand" href="#/" aria-label="punchlist, now" onClick=${u({name:e})}>
      <img src="/icon.svg" alt="" width="24" height="24" /><span>punchlist</span></a>
    <button class="find" onClick=${()=>l("search")}>
      <${d} of="search" /><span>Search ${e?"this list":"all lists"}</span><${y} of="/" /></button>
    ${!e&&t`<ul>${U.map(([a,s])=>t`<li key=${a}>
      <a href=${$({screen:a})} aria-current=${Y(a)?"page":void 0}
        onClick=${u({screen:a})}><${d} of=${a} />${s}<${Q} of=${a} /></a></li>`)}</ul>
    <${ie} /><${J} />`}
    <div class="foot"><${ce} /><span class="room"></span>
      ${c.value.person&&t`<${A} of=${c.value.person} /><bdi>${m(c.value.person)}</bdi>`}
      <button class="round" aria-label="Keys" onClick=${()=>l("help")}>?</button></div>
  </nav>`}function Q({of:e}){return e==="inbox"&&V.value?t`<b class="count-badge">${V.value}<span class="sr"> need you</span></b>`:e==="lists"&&t`<span class="count">${f.value.size.toLocaleString()}</span>`}function ie(){let e=D.value.flatMap(a=>a.cards).slice(0,ne);return t`<section aria-labelledby="rail-lists"><h2 id="rail-lists">Lists</h2>
    <ul>${e.map(a=>t`<${le} key=${a.conversation} card=${a} />`)}</ul>
    ${f.value.size>e.length&&t`<a class="all" href=${$({screen:"lists"})}
      onClick=${u({screen:"lists"})}>all ${f.value.size.toLocaleString()}</a>`}
  </section>`}function le({card:e}){let{counts:a,conversation:s}=e,n=a.pending+a.in_progress+a.paused,p=[...new Set((e.running??[]).map(r=>r.owner).filter(Boolean))],o=C(a)?Math.round(100*a.completed/C(a)):0;return t`<li><a href=${$({name:s})} onClick=${u({name:s})}
    aria-current=${i.value.name===s?"page":void 0}>
    <i class="ring" style=${{"--share":`${o}%`}} aria-hidden="true"></i>
    <${v} class="cut" of=${R(e)} />
    ${p.slice(0,oe).map(r=>t`<${A} key=${r} of=${r} size="small" />`)}
    <span class="count">${n.toLocaleString()}<span class="sr"> open</span></span></a></li>`}function ce(){let e=I.value;return t`<span class=${`status is-${e}`} role="status">
    <i aria-hidden="true"></i>${re[e]}</span>
    ${c.value.scope.mode==="ro"&&t`<span class="pill">read only</span>`}`}function Le(){if(c.value.scope.list)return null;let e=i.value.screen==="list";return t`<nav class="tabs" aria-label="Screens of a phone">
    ${U.filter(([,,a])=>a).map(([a,s])=>t`<a key=${a} href=${$({screen:a})}
      aria-current=${Y(a)||a==="lists"&&e?"page":void 0}
      onClick=${u({screen:a})}>
      <${d} of=${a} />${s}${a==="inbox"&&t`<${Q} of=${a} />`}</a>`)}
    <button onClick=${()=>l("search")}><${d} of="search" />Search</button>
    <button onClick=${()=>l("palette")}><${d} of="more" />More</button>
  </nav>`}function ue(){let a=F.value.map(({actor:s,connections:n})=>m(s)+(n>1?` \xD7${n}`:"")).join(", ");return a&&t`<span class="present" title=${`Also at this list: ${a}`}>with <bdi>${a}</bdi></span>`}var _e=({title:e,children:a})=>t`<header class="top-bar">
  <h1><${v} of=${e} /></h1>
  ${a}
  <span class="room"></span>
  <${ue} />
  ${g("time")&&t`<button class="round" aria-label="Time machine" aria-pressed=${X.value?"true":"false"}
    title="Earlier versions ([)" onClick=${()=>l("time")}><${d} of="clock" /></button>`}
  ${c.value.scope.mode!=="ro"&&t`<span class=${`changes${w.value?" held":""}`}>
    ${(w.value||g("undo"))&&t`<button class="round" aria-label="Undo your last change" title="Undo (u)"
      onClick=${()=>l("undo")}><${d} of="undo" /></button>`}
    ${(w.value||g("add"))&&t`<button class="primary" onClick=${()=>l("add")}>
      <span aria-hidden="true">+</span> Add <${y} of="a" /></button>`}</span>`}
</header>`;function Ie({of:e,label:a}){let s=n=>n.key==="Enter"&&(n.currentTarget.blur(),l("first"));return t`<label class="search"><span class="sr">${a}</span>
    <input id="filter" type="text" placeholder=${a} autocomplete="off" spellcheck="false" value=${e.value}
      onInput=${n=>e.value=n.currentTarget.value} onKeyDown=${s} /><${y} of="F" /></label>`}export{h as a,j as b,W as c,ve as d,be as e,we as f,se as g,d as h,Oe as i,Le as j,_e as k,Ie as l};
