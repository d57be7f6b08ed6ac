/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{d as T}from"./chunk-OUQ3P2J5.js";import{e as b,f as M,h as y}from"./chunk-R6VQCR7I.js";import{J as g,K as l,x as q}from"./chunk-EOHURGU6.js";import{O as f,Q as E,S as N,T as P,U as F,Z as w,_ as V,b as $,ba as K,c as i,f as u,g as m,ra as X,xa as A}from"./chunk-IALAHY4L.js";import{i as R,j as v,l as t,m as x,n as c,o as D,y as C}from"./chunk-OD44XGYS.js";var j="punchlist.views",O=20,L=80,k=["q","group","sort"],Z=e=>typeof e?.name=="string"&&e.name.length<=L&&e.name&&k.every(a=>["undefined","string"].includes(typeof e[a])),_=e=>Array.isArray(e)?e.filter(Z).slice(0,O):[];function ee(){try{return _(JSON.parse(localStorage.getItem(j)))}catch{return[]}}var d=R(ee()),W=v(()=>_(F.value?.metadata?.views)),z=e=>({name:i.value.name,view:i.value.view,query:Object.fromEntries(k.map(a=>[a,e[a]]))}),I=e=>k.every(a=>(e[a]??"")===(i.value.query[a]??"")),S=v(()=>[...W.value,...d.value].find(I)),me=v(()=>S.value&&(V.value||d.value.includes(S.value))),be=v(()=>!S.value&&!I({}));function ae(e,a){let s=e.filter(({name:n})=>n!==a.name);if(s.length>=O)throw new x("invalid_params",`There are already ${O} views. Delete one of them first.`);return[...s,a]}function G(e){d.value=e(d.value),localStorage.setItem(j,JSON.stringify(d.value))}var te=5;async function H(e){let a=X();for(let s=1;;s++){let{conversation:n}=await C("GET",a),p=e(_(n.metadata?.views)),o={metadata:{views:p.length?p:null}};try{let r=(await C("PATCH",a,o,{match:n.version})).conversation;f.value=new Map(f.value).set(r.conversation,r);return}catch(r){if(r.kind!=="version_conflict"||s===te)throw r}}}var B=["me, in all lists","everyone, in this list"];function we(){let{query:e}=i.value,a={name:"scope",label:"For",kind:"choice",options:B};return A({title:"Save this view",fields:[{name:"name",label:"Name",required:!0},...V.value?[a]:[]],confirm:"Save",send:async({name:s,scope:n})=>{if(s.length>L)throw new x("invalid_params",`A view's name has at most ${L} characters.`);let p={name:s,...Object.fromEntries(k.filter(o=>e[o]).map(o=>[o,e[o]]))};return await(n===B[1]?H:G)(o=>ae(o,p)),p}})}function ge(){let e=S.value,a=W.value.includes(e);return A({title:`Delete the view \u201C${m(e.name)}\u201D?`,text:a?["Everyone who uses this list loses it."]:[],confirm:"Delete",danger:!0,send:()=>(a?H:G)(s=>s.filter(({name:n})=>n!==e.name))})}var se=({view:e,class:a})=>t`<a class=${a} href=${$(z(e))}
  aria-current=${I(e)?"true":void 0} onClick=${u(z(e))}><${b} of=${e.name} /></a>`,J=()=>i.value.name&&d.value.length>0&&t`
  <section aria-labelledby="rail-views"><h2 id="rail-views">Views</h2>
    <ul>${d.value.map(e=>t`<li key=${e.name}><${se} view=${e} /></li>`)}</ul></section>`;var ne=12,oe=2,U=[["now","Now",!0],["inbox","Inbox",!0],["lists","Lists",!0],["timeline","Timeline",!1],["chat","Chat",!1]],re={opening:"opening",live:"live",silent:"not answering",away:"away",asleep:"paused"},h=({of:e})=>t`<svg class="icon" aria-hidden="true"><use href=${`#i-${e}`} /></svg>`,Y=e=>i.value.screen===e;function Le(){let e=c.value.scope.list;return t`<nav class="rail" aria-label="Screens">
    <a class="brand" href="#/" aria-label="punchlist, now" onClick=${u({name:e})}>
      <img src="/icon.svg" alt="" width="24" height="24" /><span>punchlist</span></a>
    <button class="find" onClick=${()=>l("search")}>
      <${h} of="search" /><span>Search ${e?"this list":"all lists"}</span><${y} of="/" /></button>
    ${!e&&t`<ul>${U.map(([a,s])=>t`<li key=${a}>
      <a href=${$({screen:a})} aria-current=${Y(a)?"page":void 0}
        onClick=${u({screen:a})}><${h} of=${a} />${s}<${Q} of=${a} /></a></li>`)}</ul>
    <${ie} /><${J} />`}
    <div class="foot"><${ce} /><span class="room"></span>
      ${c.value.person&&t`<${M} of=${c.value.person} /><bdi>${m(c.value.person)}</bdi>`}
      <button class="round" aria-label="Keys" onClick=${()=>l("help")}>?</button></div>
  </nav>`}function Q({of:e}){return e==="inbox"&&T.value?t`<b class="count-badge">${T.value}<span class="sr"> need you</span></b>`:e==="lists"&&t`<span class="count">${f.value.size.toLocaleString()}</span>`}function ie(){let e=P.value.flatMap(a=>a.cards).slice(0,ne);return t`<section aria-labelledby="rail-lists"><h2 id="rail-lists">Lists</h2>
    <ul>${e.map(a=>t`<${le} key=${a.conversation} card=${a} />`)}</ul>
    ${f.value.size>e.length&&t`<a class="all" href=${$({screen:"lists"})}
      onClick=${u({screen:"lists"})}>all ${f.value.size.toLocaleString()}</a>`}
  </section>`}function le({card:e}){let{counts:a,conversation:s}=e,n=a.pending+a.in_progress+a.paused,p=[...new Set((e.running??[]).map(r=>r.owner).filter(Boolean))],o=E(a)?Math.round(100*a.completed/E(a)):0;return t`<li><a href=${$({name:s})} onClick=${u({name:s})}
    aria-current=${i.value.name===s?"page":void 0}>
    <i class="ring" style=${{"--share":`${o}%`}} aria-hidden="true"></i>
    <${b} class="cut" of=${N(e)} />
    ${p.slice(0,oe).map(r=>t`<${M} key=${r} of=${r} size="small" />`)}
    <span class="count">${n.toLocaleString()}<span class="sr"> open</span></span></a></li>`}function ce(){let e=D.value;return t`<span class=${`status is-${e}`} role="status">
    <i aria-hidden="true"></i>${re[e]}</span>
    ${c.value.scope.mode==="ro"&&t`<span class="pill">read only</span>`}`}function _e(){if(c.value.scope.list)return null;let e=i.value.screen==="list";return t`<nav class="tabs" aria-label="Screens of a phone">
    ${U.filter(([,,a])=>a).map(([a,s])=>t`<a key=${a} href=${$({screen:a})}
      aria-current=${Y(a)||a==="lists"&&e?"page":void 0}
      onClick=${u({screen:a})}>
      <${h} of=${a} />${s}${a==="inbox"&&t`<${Q} of=${a} />`}</a>`)}
    <button onClick=${()=>l("search")}><${h} of="search" />Search</button>
    <button onClick=${()=>l("palette")}><${h} of="more" />More</button>
  </nav>`}function ue(){let a=K.value.map(({actor:s,connections:n})=>m(s)+(n>1?` \xD7${n}`:"")).join(", ");return a&&t`<span class="present" title=${`Also at this list: ${a}`}>with <bdi>${a}</bdi></span>`}var Ie=({title:e,children:a})=>t`<header class="top-bar">
  <h1><${b} of=${e} /></h1>
  ${a}
  <span class="room"></span>
  <${ue} />
  ${g("time")&&t`<button class="round" aria-label="Time machine" aria-pressed=${q.value?"true":"false"}
    title="Earlier versions ([)" onClick=${()=>l("time")}><${h} of="clock" /></button>`}
  ${c.value.scope.mode!=="ro"&&t`<span class=${`changes${w.value?" held":""}`}>
    ${(w.value||g("undo"))&&t`<button class="round" aria-label="Undo your last change" title="Undo (u)"
      onClick=${()=>l("undo")}><${h} of="undo" /></button>`}
    ${(w.value||g("add"))&&t`<button class="primary" onClick=${()=>l("add")}>
      <span aria-hidden="true">+</span> Add <${y} of="a" /></button>`}</span>`}
</header>`;function Re({of:e,label:a}){let s=n=>n.key==="Enter"&&(n.currentTarget.blur(),l("first"));return t`<label class="search"><span class="sr">${a}</span>
    <input id="filter" type="text" placeholder=${a} autocomplete="off" spellcheck=${!1} value=${e.value}
      onInput=${n=>e.value=n.currentTarget.value} onKeyDown=${s} /><${y} of="F" /></label>`}export{d as a,W as b,me as c,be as d,we as e,ge as f,se as g,h,Le as i,_e as j,Ie as k,Re as l};
