/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as y,b as dt,c as pt,d as ft,e as m,f as $t,h as K,j as ht,k as mt,o as U}from"./chunk-R6VQCR7I.js";import{K as H,t as lt}from"./chunk-EOHURGU6.js";import{a as ut,b as F}from"./chunk-KAFZXHOK.js";import{$ as b,L as ot,V as rt,_ as X,c as A,d as T,g as p,h as V,i as x,ja as it,k as tt,ka as j,l as E,m as et,ma as at,q as S,t as nt,u as C,ua as ct,v as B,w as st,y as v}from"./chunk-IALAHY4L.js";import{b as J,f as Z,i as N,l as a}from"./chunk-OD44XGYS.js";var gt=6,Wt=20,R=1e3,Nt=200,vt=/^ {0,3}(`{3,20}(?![^`]{0,200}`)|~{3,20}) {0,9}([\w+#.-]{0,30})/,yt=/^ {0,3}(#{1,6})(?:[ \t]+|$)/,q=/^ {0,3}([-*_])(?:[ \t]{0,9}\1){2,99}[ \t]*$/,M=/^ {0,3}> ?/,k=/^( {0,12})([-*+]|\d{1,9}[.)])( {1,4}|\t|$)/,xt=/^\[([ xX])\] /,Bt=/^ {0,3}\|? {0,99}:?-{1,99}:? {0,99}(?:\| {0,99}:?-{1,99}:? {0,99}){0,99}\|? *$/,Xt=[[/(?:https?:\/\/|mailto:)[^\s<>"`|]{1,2000}/y,null],[/[\w.@-]{1,100}(?:\/[\w.@-]{1,100}){0,20}\.[A-Za-z]\w{0,9}:\d{1,7}/y,"path"],[/#\d{1,9}(?!\w)/y,"task"],[/(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40}(?!\w)/y,"commit"]],bt=/[\w#]/,jt=/[!-/:-@[-`{-~]/,w=/[\p{P}\p{S}]/u,_t={"*":["em","strong"],_:["em","strong"],"~":["","del"]},f=(t,e=null,n=[])=>({tag:t,attributes:e,children:[n].flat(2).filter(s=>s)}),Ot=t=>z(t.replaceAll("	","    ").split(`
`),0);function z(t,e){let n=[];for(let s=0;s<t.length;){let[r,o]=Ft(t,s,e);o&&n.push(o),s=r}return n}function Ft(t,e,n){let s=t[e];if(!s.trim())return[e+1,null];let r=vt.exec(s);if(r)return Ht(t,e,r);let o=yt.exec(s);if(o){let l=s.slice(o[0].length).trim().replace(/(?:^|[ \t])#{1,99}$/,"").trim();return[e+1,f(`h${Math.min(6,o[1].length+3)}`,null,_(l))]}if(q.test(s))return[e+1,f("hr")];if(n<gt&&M.test(s)){let l=e;for(;l<t.length&&(M.test(t[l])||Y(t,l));)l++;let u=t.slice(e,l).map(d=>d.replace(M,""));return[l,f("blockquote",null,z(u,n+1))]}if(n<gt&&k.test(s))return Kt(t,e,n);if(s.includes("|")&&Bt.test(t[e+1]??""))return qt(t,e);let i=e+1;for(;i<t.length&&Y(t,i);)i++;let c=t.slice(e,i).map(l=>l.trim()).join(`
`);return[i,f("p",null,_(c))]}var Y=(t,e)=>t[e].trim()!==""&&![vt,yt,q,M,k].some(n=>n.test(t[e]));function Ht(t,e,[,n,s]){let r=e+1;for(;r<t.length&&!(t[r].trim().startsWith(n)&&/^(`+|~+)$/.test(t[r].trim()));)r++;let o=t.slice(e+1,r).map(p).join(`
`);return[r+1,f("pre",null,f("code",s?{"data-lang":s}:null,o))]}function Kt(t,e,n){let[,{length:s},r]=k.exec(t[e]),o=/\d/.test(r),i=$=>{let h=k.exec($);return h&&h[1].length<=s+1&&/\d/.test(h[2])===o&&!q.test($)},c=$=>/^ */.exec($)[0].length>=s+2,l=[],u=0,d=e;for(;d<t.length;d++){let $=t[d];if(i($))u=k.exec($)[0].length,l.push([$.slice(u)]);else if($.trim())if(c($))l.at(-1).push($.slice(Math.min(u,/^ */.exec($)[0].length)));else if(t[d-1].trim()&&Y(t,d))l.at(-1).push($);else break;else{let h=t.slice(d,d+5).find(W=>W.trim())??"";if(!i(h)&&!c(h))break;l.at(-1).push("")}}let g=o&&parseInt(r,10);return[d,f(o?"ol":"ul",o&&g!==1?{start:g}:null,l.map($=>Ut($,n)))]}function Ut(t,e){let n=xt.exec(t[0]);n&&(t[0]=t[0].slice(n[0].length));let s=t.length>1||k.test(t[0])?Yt(z(t,e+1)):_(t[0]),r=n&&f("input",{type:"checkbox",disabled:!0,checked:n[1]!==" "});return f("li",null,[r,s])}var Yt=([t,...e])=>[...t?.tag==="p"?t.children:[t],...e];function qt(t,e){let n=i=>i.trim().replace(/^\||\|$/g,"").split("|").slice(0,100),s=(i,c)=>f("tr",null,n(c).map(l=>f(i,null,_(l.trim())))),r=e+2;for(;r<t.length&&t[r].includes("|");)r++;let o=t.slice(e+2,Math.min(r,e+2+Nt));return[r,f("table",null,[s("th",t[e]),...o.map(i=>s("td",i))])]}function _(t,e=!0){let n=[],s=new Set,r=0,o=0,i=(c,l)=>{n.push(wt(t.slice(r,o)),c),r=o=l};for(;o<t.length;){let c=t[o],u=c==="\\"&&jt.test(t[o+1]??"")?[t[o+1],o+2]:c==="`"?Zt(t,o,s):c==="["&&e?te(t,o,s):_t[c]?zt(t,o):bt.test(c)&&e?ne(t,o):null;u?i(...u):o=bt.test(c)?Jt(t,o):o+1}return n.push(wt(t.slice(r))),Gt(n).filter(c=>c!=="")}function zt(t,e){let n=t[e],s=e;for(;t[s]===n;)s++;let r=t[e-1]??" ",o=t[s]??" ",i=!/\s/.test(o)&&(!w.test(o)||/\s/.test(r)||w.test(r)),c=!/\s/.test(r)&&(!w.test(r)||/\s/.test(o)||w.test(o)),l=i&&(n!=="_"||!c||w.test(r)),u=c&&(n!=="_"||!i||w.test(o));return[{char:n,count:s-e,canOpen:l,canClose:u},s]}function Gt(t){let e=[{content:[]}],n={},s=()=>e.at(-1).content,r=o=>{let{content:i}=e[o-1];for(let{char:c,count:l,content:u}of e.splice(o)){i.push(c.repeat(l));for(let d of u)i.push(d)}};for(let o of t){let i=o?.char?o:null;if(!i){s().push(o);continue}for(;i.canClose&&i.count;){let c=`${i.char}${i.canOpen}${i.count%3}`,l=e.findLastIndex((h,W)=>W>=(n[c]??1)&&Qt(h,i));if(l<0){n[c]=e.length;break}r(l+1);let{count:u,content:d}=e[l],g=i.char==="~"?2:Math.min(2,u,i.count),$=f(_t[i.char][g-1],null,d);u===g?e.pop():Object.assign(e[l],{count:u-g,content:[]}),s().push($),i.count-=g;for(let h of Object.keys(n))n[h]=Math.min(n[h],e.length)}i.count&&i.canOpen&&e.length<=Wt?e.push({...i,content:[]}):s().push(i.char.repeat(i.count))}return r(1),e[0].content}function Qt(t,e){return t.char!==e.char?!1:t.char==="~"?t.count>=2&&e.count>=2:!(t.canClose||e.canOpen)||(t.count+e.count)%3!==0||t.count%3===0&&e.count%3===0}var wt=t=>t.split(`
`).map(p).join(`
`);function Jt(t,e){let n=e+1;for(;n<t.length&&/[\w/.@:-]/.test(t[n])&&t[n]!=="_";)n++;return n}function P(t,e,n,s){if(s.has(e))return-1;let r=t.indexOf(e,n);return r<0&&s.add(e),r-n<=R?r:-1}function Zt(t,e,n){let s=/^`{1,20}/.exec(t.slice(e,e+20))[0],r=e+s.length,o=P(t,s,r,n);for(;o>=0&&(t[o+s.length]==="`"||t[o-1]==="`");)o=P(t,s,Vt(t,o),n);if(o<0||o-r>R)return[s,r];let i=t.slice(r,o).replaceAll(`
`," "),c=i[0]===" "&&i.at(-1)===" "&&i.trim();return[f("code",null,p(c?i.slice(1,-1):i)),o+s.length]}function Vt(t,e){for(;t[e]==="`";)e++;return e}function te(t,e,n){let s=P(t,"](",e+1,n);for(let d=0;s>=0&&d<5&&!kt(t.slice(e+1,s));d++)s=P(t,"](",s+2,n);if(s<0||s-e>R)return null;let r=t.slice(s+2,s+2+R),[o,i]=/^\s{0,9}<?([^\s<>()]{1,900})>?(?:\s{1,9}"[^"]{0,300}")?\s{0,9}\)/.exec(r)??[],c=t.slice(e+1,s);if(!o||!(S(i)||/^mailto:/i.test(i))||!kt(c))return null;let l=At(i,_(c,!1)),u=c===i?"":f("small",null,` (${p(ee(i))})`);return[f("span",null,[l,u]),s+2+o.length]}function kt(t){let e=0;for(let n of t)if(e+=n==="["?1:n==="]"?-1:0,e<0)return!1;return e===0}var At=(t,e)=>f("a",{href:t,rel:"noreferrer noopener",target:"_blank"},e);function ee(t){try{return new URL(t).host||t.slice(7)}catch{return t}}function ne(t,e){if(e>0&&/[\w/.@&-]/.test(t[e-1]))return null;for(let[n,s]of Xt){n.lastIndex=e;let[r]=n.exec(t)??[];if(!r)continue;let o=s?r:r.replace(/[.,;:!?'*_~)\]]{1,20}$/,"");return[s?f(s,null,p(o)):At(o,p(o)),e+o.length]}return null}var se=2e4;async function oe(t){await ct(()=>navigator.clipboard.writeText(t)),ot("Copied")}var Tt=({text:t})=>a`<button class="text" title="Copy" onClick=${()=>oe(t)}>${t}</button>`;function re({text:t}){let e=b.value?.tasks.get(t.slice(1));if(!e)return t;let n=()=>T({...A.value,task:e.id},{trail:!1});return a`<button class="text" title=${p(`${e.title}, ${y[C(e)]}`)} onClick=${n}>${t}</button>`}var ie={path:Tt,commit:Tt,task:re};function Et(t){if(typeof t=="string")return t;let{tag:e,attributes:n,children:s}=t,r=ie[e];return r?a`<${r} text=${s[0]} />`:a`<${e} ...${n}>${s.map(Et)}<//>`}function I({of:t}){let[e,n]=J(null),s=e??t.length>se,r=Z(()=>s?[]:Ot(t),[t,s]),o=r.length<2&&r.every(({tag:i,children:c})=>i==="p"&&c.every(l=>typeof l=="string"));return a`<div class="prose">
    ${s?a`<p class="source">${V(t)}</p>`:r.map(Et)}
    ${(s||!o)&&a`<button class="text source-toggle" aria-pressed=${s?"true":"false"}
      onClick=${()=>n(!s)}>${s?"Show as Markdown":"Source"}</button>`}
  </div>`}var ae=t=>["pending","paused"].includes(t.status)&&t.waits_for!=="yes"&&!t.open_blockers?.length&&!st(t)&&(t.status==="paused"||!b.value.hasOpenParts(t)),ce=[["approve","Approve","y",t=>t.waits_for==="yes"],["reject","Reject","n",t=>t.waits_for==="yes"],["start","Start","s",ae],["done","Done","d",t=>t.status==="in_progress"],["fail","Failed","f",t=>t.status==="in_progress"],["pause","Pause","p",t=>["pending","in_progress"].includes(t.status)],["reopen","Reopen","r",t=>v(t)],["note","Note","m",()=>!0],["edit_all","Edit","E",()=>!0],["delete","Delete","x",()=>!0]],le=lt(()=>import("./activity-4E4OZMPP.js"),"past"),G=N(!1),L=t=>T({...A.value,task:t},{trail:!1}),Pt="punchlist.detail-width",It=320,Dt=640,St=20,O=N(Number(localStorage.getItem(Pt))||400);function Ct(t){O.value=Math.round(Math.min(Dt,Math.max(It,t))),localStorage.setItem(Pt,O.value)}function ue(){let t=n=>n.buttons===1&&Ct(document.documentElement.clientWidth-n.clientX),e=n=>{let s={ArrowLeft:St,ArrowRight:-St}[n.key];s&&(n.preventDefault(),n.stopPropagation(),Ct(O.value+s))};return a`<div class="detail-edge" role="separator" aria-orientation="vertical" aria-label="Width of the details"
    aria-valuenow=${O.value} aria-valuemin=${It} aria-valuemax=${Dt} tabindex="0"
    onPointerDown=${n=>n.currentTarget.setPointerCapture(n.pointerId)} onPointerMove=${t}
    onKeyDown=${e}></div>`}var Lt=()=>L(null),de=90,Mt=0,pe={onTouchStart:t=>Mt=t.touches[0].clientY,onTouchEnd:t=>t.changedTouches[0].clientY-Mt>de&&Lt()};function fe(){rt.value;let t=it.value;if(!t)return null;let e=C(t),{tasks:n}=b.value,s=u=>(u??[]).map(d=>n.get(d)).filter(Boolean),r=s(t.blocked_by),o=s(t.blocks),i=b.value.childrenOf(t.id),c=o.filter(u=>u.open_blockers?.length===1&&!v(u)),l=c.length&&!v(t)?`done frees ${c.length} of ${o.length}`:"";return a`<aside class="detail" aria-label=${`Task ${t.id}`} tabindex="0"
    style=${{"--detail-width":`${O.value}px`}}>
    <${ue} />
    <div class="top" ...${pe}>
      <span class=${`pill s-${t.waits_for==="yes"?"asks":e}`}><${pt} state=${e} />
        ${t.waits_for?`waits for ${p(B(t))}`:dt(t)}</span>
      <span class="id">#${t.id}</span>
      ${t.priority!=="normal"&&a`<span class=${`p-${t.priority}`}>${t.priority}</span>`}
      <${mt} of=${t} />
      <span class="room"></span>
      <button class="close" aria-label="Close the details" onClick=${Lt}>×</button>
    </div>
    <${F} task=${t} member="title" label="title"><h2><${m} of=${t.title} /></h2><//>
    ${e==="in_progress"&&a`<p class="doing">
      ${t.active_form&&a`<${m} of=${t.active_form} /> · `}
      ${"for "}<${ft} at=${t.status_changed_at} /></p>`}
    ${t.waits_for&&a`<${$e} of=${t} freed=${c} />`}
    ${X.value&&a`<${ge} of=${t} />`}
    ${j.value?.task===t.id&&a`<${ve} of=${j.value} />`}
    ${t.fail_reason&&a`<${Rt} title="Reason" class="bad" text=${t.fail_reason} />`}
    ${t.result_summary&&a`<${Rt} title="Result" text=${t.result_summary} />`}
    ${(t.description||ut.value===`${t.id} description`)&&a`<h3>Description</h3>
      <${F} task=${t} member="description" label="description" kind="long">
        <${I} of=${t.description??""} /><//>`}
    ${t.parent&&n.get(t.parent)&&a`<${D} title="Part of" tasks=${[n.get(t.parent)]} />`}
    ${i.length>0&&a`<${D} title="Parts" tasks=${i} />`}
    ${r.length>0&&a`<${D} title="Waits for" tasks=${r} />`}
    ${X.value&&!v(t)&&a`<button class="text" onClick=${()=>H("blockers")}>
      ${r.length?"Change":"Add"} what it waits for <${K} of="b" /></button>`}
    ${o.length>0&&a`<${D} title="Frees" note=${l} tasks=${o} />`}
    ${t.links?.length>0&&a`<div class="links"><h3>Links</h3>
      ${t.links.map(u=>a`<${we} key=${u.kind+u.to} link=${u} />`)}</div>`}
    <${he} of=${t} />
    ${t.notes?.length>0&&a`<div class="links"><h3>Notes</h3>
      ${t.notes.map(u=>a`<${be} key=${u.version} note=${u} />`)}</div>`}
    <details class="activity" open=${G.value}
      onToggle=${u=>G.value=u.currentTarget.open}>
      <summary>Activity</summary>
      ${G.value&&a`<${le} task=${t.id} />`}
    </details>
    <p class="hush">added ${E(t.created_at)} · changed ${E(t.updated_at)} · version ${t.version}</p>
  </aside>`}function $e({of:t,freed:e}){let n=e.slice(0,5).map(({id:r})=>`#${r}`).join(", "),s=t.waits_for==="yes";return a`<p class="question">
    ${t.owner&&a`<${m} of=${t.owner} /> completed it ${x(at.value-t.status_changed_at)} ago. `}
    Done, and waits for ${p(B(t))}.${n&&` ${s?"The yes":"Passing it"} frees ${n}.`}</p>`}function he({of:t}){let e=[t.owner&&["Owner",a`<${$t} of=${t.owner} /> <${m} of=${nt(t).slice(1)} />`],t.labels?.length>0&&["Labels",a`<span class="labels">
      ${t.labels.map(n=>a`<${ht} key=${n} of=${n} />`)}</span>`],t.spent_ms>0&&["Took",x(t.spent_ms)],t.estimate_ms>0&&["Estimate",tt(t.estimate_ms)],t.attempts>1&&["Attempts",t.attempts],...me(t).map(([n,s])=>[p(n),p(typeof s=="string"?s:JSON.stringify(s))])].filter(Boolean);return e.length>0&&a`<h3>Facts</h3><dl class="meta">${e.map(([n,s])=>a`<div key=${n}><dt>${n}</dt><dd>${s}</dd></div>`)}</dl>`}var me=t=>Object.entries(t.metadata??{}).filter(([e])=>e!=="imported"),ge=({of:t})=>a`<div class="actions">
  ${ce.filter(([,,,e])=>e(t)).map(([e,n,s])=>a`<button key=${e}
    class=${{approve:"primary",delete:"quiet"}[e]??""} onClick=${()=>H(e)}>
    ${n} <${K} of=${s} /></button>`)}
</div>`,Rt=({title:t,text:e,class:n=""})=>a`<div class=${`note ${n}`}>
  <h3>${t}</h3><${I} of=${e} /></div>`,be=({note:t})=>a`<div class="note">
  <p class="hush"><${m} of=${t.actor} />
    ${t.imported_by&&` (imported by ${p(t.imported_by)})`} · ${E(t.at)}</p>
  <${I} of=${t.text} /></div>`;function we({link:{kind:t,to:e}}){let n=["discovered-from","relates-to"].includes(t)&&b.value.tasks.get(e),s=a`<${m} of=${e} />`;return a`<div class="lead"><span class="hush">${p(t)}</span>
    ${n?a`<${U} task=${n} onOpen=${L} />`:S(e)?a`<a href=${e} target="_blank" rel="noopener noreferrer">${s}</a>`:a`<code>${s}</code>`}</div>`}var Q=60,D=({title:t,note:e,tasks:n})=>a`<div class="links">
  <h3>${t}${e&&a` <span class="hush">${e}</span>`}</h3>
  ${n.slice(0,Q).map(s=>a`<${U} key=${s.id} task=${s} onOpen=${L} />`)}
  ${n.length>Q&&a`<p class="hush">and ${n.length-Q} more</p>`}
</div>`,ke={stopped:()=>"the list stops at failures, and it failed:",serial:()=>"the list runs one task at a time, and this is in progress:",blocker:()=>"waits for",parent:()=>"its parent is on hold:",reserved:t=>`it is reserved for @${p(t.owner)}:`,child:()=>"has an open task:",heading:()=>"it only holds the tasks below it:",deferred:t=>`not before ${et(t,"not_before")}:`},ve=({of:{startable:t,reasons:e}})=>a`<div class="note" role="status">
  <h3>${t&&!e.length?"It can be started":"Why it can't start"}</h3>
  <ul class="reasons">${e.map((n,s)=>a`<${ye} key=${s} reason=${n} />`)}</ul>
</div>`;function ye({reason:t}){let{kind:e,status:n,by:s,title:r,owner:o,depth:i=0}=t,c=ke[e]??(()=>`it is ${y[n]}:`);return a`<li style=${{marginLeft:`${i*1.1}em`}}>
    ${c(t)} <button class="text" onClick=${()=>L(s)}>#${s}</button> <${m} of=${r} />
    <span class="hush"> ${y[n]}${o?` \xB7 @${p(o)}`:""}</span></li>`}export{fe as a,we as b};
