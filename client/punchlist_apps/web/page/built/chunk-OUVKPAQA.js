/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as $t,b as ht}from"./chunk-Q4XRVBBM.js";import{D as it}from"./chunk-YOQKELSR.js";import{Aa as v,Ba as ct,Ca as at,Da as lt,Ea as m,Fa as ut,Ga as dt,H as V,Ha as pt,Ia as ft,Ma as j,R as tt,V as et,W as b,c as O,d as T,da as nt,ea as X,g as p,ga as st,h as Q,i as x,j as E,k as z,n as S,oa as ot,q as J,r as A,s as B,t as Z,u as C,ua as rt}from"./chunk-EH56Q26U.js";import{b as q,f as G,i as N,l as c}from"./chunk-LCO4CKYC.js";var mt=6,Lt=20,R=1e3,Wt=200,kt=/^ {0,3}(`{3,20}(?![^`]{0,200}`)|~{3,20}) {0,9}([\w+#.-]{0,30})/,vt=/^ {0,3}(#{1,6})(?:[ \t]+|$)/,H=/^ {0,3}([-*_])(?:[ \t]{0,9}\1){2,99}[ \t]*$/,M=/^ {0,3}> ?/,k=/^( {0,12})([-*+]|\d{1,9}[.)])( {1,4}|\t|$)/,Nt=/^\[([ xX])\] /,xt=/^ {0,3}\|? {0,99}:?-{1,99}:? {0,99}(?:\| {0,99}:?-{1,99}:? {0,99}){0,99}\|? *$/,Bt=[[/(?:https?:\/\/|mailto:)[^\s<>"`|]{1,2000}/y,null],[/[\w.@-]{1,100}(?:\/[\w.@-]{1,100}){0,20}\.[A-Za-z]\w{0,9}:\d{1,7}/y,"path"],[/#\d{1,9}(?!\w)/y,"task"],[/(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40}(?!\w)/y,"commit"]],gt=/[\w#]/,Xt=/[!-/:-@[-`{-~]/,w=/[\p{P}\p{S}]/u,yt={"*":["em","strong"],_:["em","strong"],"~":["","del"]},f=(t,e=null,n=[])=>({tag:t,attributes:e,children:[n].flat(2).filter(s=>s)}),_t=t=>K(t.replaceAll("	","    ").split(`
`),0);function K(t,e){let n=[];for(let s=0;s<t.length;){let[r,o]=jt(t,s,e);o&&n.push(o),s=r}return n}function jt(t,e,n){let s=t[e];if(!s.trim())return[e+1,null];let r=kt.exec(s);if(r)return Ft(t,e,r);let o=vt.exec(s);if(o){let l=s.slice(o[0].length).trim().replace(/(?:^|[ \t])#{1,99}$/,"").trim();return[e+1,f(`h${Math.min(6,o[1].length+3)}`,null,y(l))]}if(H.test(s))return[e+1,f("hr")];if(n<mt&&M.test(s)){let l=e;for(;l<t.length&&(M.test(t[l])||F(t,l));)l++;let u=t.slice(e,l).map(d=>d.replace(M,""));return[l,f("blockquote",null,K(u,n+1))]}if(n<mt&&k.test(s))return Ht(t,e,n);if(s.includes("|")&&xt.test(t[e+1]??""))return Yt(t,e);let i=e+1;for(;i<t.length&&F(t,i);)i++;let a=t.slice(e,i).map(l=>l.trim()).join(`
`);return[i,f("p",null,y(a))]}var F=(t,e)=>t[e].trim()!==""&&![kt,vt,H,M,k].some(n=>n.test(t[e]));function Ft(t,e,[,n,s]){let r=e+1;for(;r<t.length&&!(t[r].trim().startsWith(n)&&/^(`+|~+)$/.test(t[r].trim()));)r++;let o=t.slice(e+1,r).map(p).join(`
`);return[r+1,f("pre",null,f("code",s?{"data-lang":s}:null,o))]}function Ht(t,e,n){let[,{length:s},r]=k.exec(t[e]),o=/\d/.test(r),i=$=>{let h=k.exec($);return h&&h[1].length<=s+1&&/\d/.test(h[2])===o&&!H.test($)},a=$=>/^ */.exec($)[0].length>=s+2,l=[],u=0,d=e;for(;d<t.length;d++){let $=t[d];if(i($))u=k.exec($)[0].length,l.push([$.slice(u)]);else if($.trim())if(a($))l.at(-1).push($.slice(Math.min(u,/^ */.exec($)[0].length)));else if(t[d-1].trim()&&F(t,d))l.at(-1).push($);else break;else{let h=t.slice(d,d+5).find(W=>W.trim())??"";if(!i(h)&&!a(h))break;l.at(-1).push("")}}let g=o&&parseInt(r,10);return[d,f(o?"ol":"ul",o&&g!==1?{start:g}:null,l.map($=>Kt($,n)))]}function Kt(t,e){let n=Nt.exec(t[0]);n&&(t[0]=t[0].slice(n[0].length));let s=t.length>1||k.test(t[0])?Ut(K(t,e+1)):y(t[0]),r=n&&f("input",{type:"checkbox",disabled:!0,checked:n[1]!==" "});return f("li",null,[r,s])}var Ut=([t,...e])=>[...t?.tag==="p"?t.children:[t],...e];function Yt(t,e){let n=i=>i.trim().replace(/^\||\|$/g,"").split("|").slice(0,100),s=(i,a)=>f("tr",null,n(a).map(l=>f(i,null,y(l.trim())))),r=e+2;for(;r<t.length&&t[r].includes("|");)r++;let o=t.slice(e+2,Math.min(r,e+2+Wt));return[r,f("table",null,[s("th",t[e]),...o.map(i=>s("td",i))])]}function y(t,e=!0){let n=[],s=new Set,r=0,o=0,i=(a,l)=>{n.push(bt(t.slice(r,o)),a),r=o=l};for(;o<t.length;){let a=t[o],u=a==="\\"&&Xt.test(t[o+1]??"")?[t[o+1],o+2]:a==="`"?Jt(t,o,s):a==="["&&e?Vt(t,o,s):yt[a]?qt(t,o):gt.test(a)&&e?ee(t,o):null;u?i(...u):o=gt.test(a)?zt(t,o):o+1}return n.push(bt(t.slice(r))),Gt(n).filter(a=>a!=="")}function qt(t,e){let n=t[e],s=e;for(;t[s]===n;)s++;let r=t[e-1]??" ",o=t[s]??" ",i=!/\s/.test(o)&&(!w.test(o)||/\s/.test(r)||w.test(r)),a=!/\s/.test(r)&&(!w.test(r)||/\s/.test(o)||w.test(o)),l=i&&(n!=="_"||!a||w.test(r)),u=a&&(n!=="_"||!i||w.test(o));return[{char:n,count:s-e,canOpen:l,canClose:u},s]}function Gt(t){let e=[{content:[]}],n={},s=()=>e.at(-1).content,r=o=>{let{content:i}=e[o-1];for(let{char:a,count:l,content:u}of e.splice(o)){i.push(a.repeat(l));for(let d of u)i.push(d)}};for(let o of t){let i=o?.char?o:null;if(!i){s().push(o);continue}for(;i.canClose&&i.count;){let a=`${i.char}${i.canOpen}${i.count%3}`,l=e.findLastIndex((h,W)=>W>=(n[a]??1)&&Qt(h,i));if(l<0){n[a]=e.length;break}r(l+1);let{count:u,content:d}=e[l],g=i.char==="~"?2:Math.min(2,u,i.count),$=f(yt[i.char][g-1],null,d);u===g?e.pop():Object.assign(e[l],{count:u-g,content:[]}),s().push($),i.count-=g;for(let h of Object.keys(n))n[h]=Math.min(n[h],e.length)}i.count&&i.canOpen&&e.length<=Lt?e.push({...i,content:[]}):s().push(i.char.repeat(i.count))}return r(1),e[0].content}function Qt(t,e){return t.char!==e.char?!1:t.char==="~"?t.count>=2&&e.count>=2:!(t.canClose||e.canOpen)||(t.count+e.count)%3!==0||t.count%3===0&&e.count%3===0}var bt=t=>t.split(`
`).map(p).join(`
`);function zt(t,e){let n=e+1;for(;n<t.length&&/[\w/.@:-]/.test(t[n])&&t[n]!=="_";)n++;return n}function P(t,e,n,s){if(s.has(e))return-1;let r=t.indexOf(e,n);return r<0&&s.add(e),r-n<=R?r:-1}function Jt(t,e,n){let s=/^`{1,20}/.exec(t.slice(e,e+20))[0],r=e+s.length,o=P(t,s,r,n);for(;o>=0&&(t[o+s.length]==="`"||t[o-1]==="`");)o=P(t,s,Zt(t,o),n);if(o<0||o-r>R)return[s,r];let i=t.slice(r,o).replaceAll(`
`," "),a=i[0]===" "&&i.at(-1)===" "&&i.trim();return[f("code",null,p(a?i.slice(1,-1):i)),o+s.length]}function Zt(t,e){for(;t[e]==="`";)e++;return e}function Vt(t,e,n){let s=P(t,"](",e+1,n);for(let d=0;s>=0&&d<5&&!wt(t.slice(e+1,s));d++)s=P(t,"](",s+2,n);if(s<0||s-e>R)return null;let r=t.slice(s+2,s+2+R),[o,i]=/^\s{0,9}<?([^\s<>()]{1,900})>?(?:\s{1,9}"[^"]{0,300}")?\s{0,9}\)/.exec(r)??[],a=t.slice(e+1,s);if(!o||!(S(i)||/^mailto:/i.test(i))||!wt(a))return null;let l=Ot(i,y(a,!1)),u=a===i?"":f("small",null,` (${p(te(i))})`);return[f("span",null,[l,u]),s+2+o.length]}function wt(t){let e=0;for(let n of t)if(e+=n==="["?1:n==="]"?-1:0,e<0)return!1;return e===0}var Ot=(t,e)=>f("a",{href:t,rel:"noreferrer noopener",target:"_blank"},e);function te(t){try{return new URL(t).host||t.slice(7)}catch{return t}}function ee(t,e){if(e>0&&/[\w/.@&-]/.test(t[e-1]))return null;for(let[n,s]of Bt){n.lastIndex=e;let[r]=n.exec(t)??[];if(!r)continue;let o=s?r:r.replace(/[.,;:!?'*_~)\]]{1,20}$/,"");return[s?f(s,null,p(o)):Ot(o,p(o)),e+o.length]}return null}var ne=2e4;async function se(t){await ot(()=>navigator.clipboard.writeText(t)),V("Copied")}var Tt=({text:t})=>c`<button class="text" title="Copy" onClick=${()=>se(t)}>${t}</button>`;function oe({text:t}){let e=b.value?.tasks.get(t.slice(1));if(!e)return t;let n=()=>T({...O.value,task:e.id},{trail:!1});return c`<button class="text" title=${p(`${e.title}, ${v[A(e)]}`)} onClick=${n}>${t}</button>`}var re={path:Tt,commit:Tt,task:oe};function Et(t){if(typeof t=="string")return t;let{tag:e,attributes:n,children:s}=t,r=re[e];return r?c`<${r} text=${s[0]} />`:c`<${e} ...${n}>${s.map(Et)}<//>`}function D({of:t}){let[e,n]=q(null),s=e??t.length>ne,r=G(()=>s?[]:_t(t),[t,s]),o=r.length<2&&r.every(({tag:i,children:a})=>i==="p"&&a.every(l=>typeof l=="string"));return c`<div class="prose">
    ${s?c`<p class="source">${Q(t)}</p>`:r.map(Et)}
    ${(s||!o)&&c`<button class="text source-toggle" aria-pressed=${s?"true":"false"}
      onClick=${()=>n(!s)}>${s?"Show as Markdown":"Source"}</button>`}
  </div>`}var ie=t=>["pending","paused"].includes(t.status)&&t.waits_for!=="yes"&&!t.open_blockers?.length&&!Z(t)&&(t.status==="paused"||!b.value.hasOpenParts(t)),ce=[["approve","Approve","y",t=>t.waits_for==="yes"],["reject","Reject","n",t=>t.waits_for==="yes"],["start","Start","s",ie],["done","Done","d",t=>t.status==="in_progress"],["fail","Failed","f",t=>t.status==="in_progress"],["pause","Pause","p",t=>["pending","in_progress"].includes(t.status)],["reopen","Reopen","r",t=>C(t)],["note","Note","m",()=>!0],["edit","Edit","e",()=>!0],["delete","Delete","x",()=>!0]],U=N(!1),L=t=>T({...O.value,task:t},{trail:!1}),Rt="punchlist.detail-width",Pt=320,Dt=640,St=20,_=N(Number(localStorage.getItem(Rt))||400);function At(t){_.value=Math.round(Math.min(Dt,Math.max(Pt,t))),localStorage.setItem(Rt,_.value)}function ae(){let t=n=>n.buttons===1&&At(document.documentElement.clientWidth-n.clientX),e=n=>{let s={ArrowLeft:St,ArrowRight:-St}[n.key];s&&(n.preventDefault(),n.stopPropagation(),At(_.value+s))};return c`<div class="handle" role="separator" aria-orientation="vertical" aria-label="Width of the details"
    aria-valuenow=${_.value} aria-valuemin=${Pt} aria-valuemax=${Dt} tabindex="0"
    onPointerDown=${n=>n.currentTarget.setPointerCapture(n.pointerId)} onPointerMove=${t}
    onKeyDown=${e}></div>`}var It=()=>L(null),le=90,Ct=0,ue={onTouchStart:t=>Ct=t.touches[0].clientY,onTouchEnd:t=>t.changedTouches[0].clientY-Ct>le&&It()};function de(){tt.value;let t=nt.value;if(!t)return null;let e=A(t),{tasks:n}=b.value,s=u=>(u??[]).map(d=>n.get(d)).filter(Boolean),r=s(t.blocked_by),o=s(t.blocks),i=b.value.childrenOf(t.id),a=o.filter(u=>u.open_blockers?.length===1&&!C(u)),l=a.length&&!C(t)?`done frees ${a.length} of ${o.length}`:"";return c`<aside class="detail" aria-label=${`Task ${t.id}`} tabindex="0"
    style=${{"--detail-width":`${_.value}px`}}>
    <${ae} />
    <div class="top" ...${ue}>
      <span class=${`pill s-${t.waits_for==="yes"?"asks":e}`}><${at} state=${e} />
        ${t.waits_for?`waits for ${p(B(t))}`:ct(t)}</span>
      <span class="id">#${t.id}</span>
      ${t.priority!=="normal"&&c`<span class=${`p-${t.priority}`}>${t.priority}</span>`}
      <${ft} of=${t} />
      <span class="room"></span>
      <button class="close" aria-label="Close the details" onClick=${It}>×</button>
    </div>
    <h2><${m} of=${t.title} /></h2>
    ${e==="in_progress"&&c`<p class="doing">
      ${t.active_form&&c`<${m} of=${t.active_form} /> · `}
      ${"for "}<${lt} at=${t.status_changed_at} /></p>`}
    ${t.waits_for&&c`<${pe} of=${t} freed=${a} />`}
    ${et.value&&c`<${he} of=${t} />`}
    ${X.value?.task===t.id&&c`<${we} of=${X.value} />`}
    ${t.fail_reason&&c`<${Mt} title="Reason" class="bad" text=${t.fail_reason} />`}
    ${t.result_summary&&c`<${Mt} title="Result" text=${t.result_summary} />`}
    ${t.description&&c`<h3>Description</h3><${D} of=${t.description} />`}
    ${t.parent&&n.get(t.parent)&&c`<${I} title="Part of" tasks=${[n.get(t.parent)]} />`}
    ${i.length>0&&c`<${I} title="Parts" tasks=${i} />`}
    ${r.length>0&&c`<${I} title="Waits for" tasks=${r} />`}
    ${o.length>0&&c`<${I} title="Frees" note=${l} tasks=${o} />`}
    ${t.links?.length>0&&c`<div class="links"><h3>Links</h3>
      ${t.links.map(u=>c`<${ge} key=${u.kind+u.to} link=${u} />`)}</div>`}
    <${fe} of=${t} />
    ${t.notes?.length>0&&c`<div class="links"><h3>Notes</h3>
      ${t.notes.map(u=>c`<${me} key=${u.version} note=${u} />`)}</div>`}
    <details class="activity" open=${U.value}
      onToggle=${u=>U.value=u.currentTarget.open}>
      <summary>Activity</summary>
      ${U.value&&c`<${ht} entries=${$t(t.id)} />`}
    </details>
    <p class="hush">added ${E(t.created_at)} · changed ${E(t.updated_at)} · version ${t.version}</p>
  </aside>`}function pe({of:t,freed:e}){let n=e.slice(0,5).map(({id:r})=>`#${r}`).join(", "),s=t.waits_for==="yes";return c`<p class="question">
    ${t.owner&&c`<${m} of=${t.owner} /> completed it ${x(st.value-t.status_changed_at)} ago. `}
    Done, and waits for ${p(B(t))}.${n&&` ${s?"The yes":"Passing it"} frees ${n}.`}</p>`}function fe({of:t}){let e=[t.owner&&["Owner",c`<${ut} of=${t.owner} /> <${m} of=${J(t).slice(1)} />`],t.labels?.length>0&&["Labels",c`<span class="labels">
      ${t.labels.map(n=>c`<${pt} key=${n} of=${n} />`)}</span>`],t.spent_ms>0&&["Took",x(t.spent_ms)],t.estimate_ms>0&&["Estimate",rt(t.estimate_ms)],t.attempts>1&&["Attempts",t.attempts],...$e(t).map(([n,s])=>[p(n),p(typeof s=="string"?s:JSON.stringify(s))])].filter(Boolean);return e.length>0&&c`<h3>Facts</h3><dl class="meta">${e.map(([n,s])=>c`<div key=${n}><dt>${n}</dt><dd>${s}</dd></div>`)}</dl>`}var $e=t=>Object.entries(t.metadata??{}).filter(([e])=>e!=="imported"),he=({of:t})=>c`<div class="actions">
  ${ce.filter(([,,,e])=>e(t)).map(([e,n,s])=>c`<button key=${e}
    class=${{approve:"primary",delete:"quiet"}[e]??""} onClick=${()=>it(e)}>
    ${n} <${dt} of=${s} /></button>`)}
</div>`,Mt=({title:t,text:e,class:n=""})=>c`<div class=${`note ${n}`}>
  <h3>${t}</h3><${D} of=${e} /></div>`,me=({note:t})=>c`<div class="note">
  <p class="hush"><${m} of=${t.actor} />
    ${t.imported_by&&` (imported by ${p(t.imported_by)})`} · ${E(t.at)}</p>
  <${D} of=${t.text} /></div>`;function ge({link:{kind:t,to:e}}){let n=["discovered-from","relates-to"].includes(t)&&b.value.tasks.get(e),s=c`<${m} of=${e} />`;return c`<div class="lead"><span class="hush">${p(t)}</span>
    ${n?c`<${j} task=${n} onOpen=${L} />`:S(e)?c`<a href=${e} target="_blank" rel="noopener noreferrer">${s}</a>`:c`<code>${s}</code>`}</div>`}var Y=60,I=({title:t,note:e,tasks:n})=>c`<div class="links">
  <h3>${t}${e&&c` <span class="hush">${e}</span>`}</h3>
  ${n.slice(0,Y).map(s=>c`<${j} key=${s.id} task=${s} onOpen=${L} />`)}
  ${n.length>Y&&c`<p class="hush">and ${n.length-Y} more</p>`}
</div>`,be={stopped:()=>"the list stops at failures, and it failed:",serial:()=>"the list runs one task at a time, and this is in progress:",blocker:()=>"waits for",parent:()=>"its parent is on hold:",reserved:t=>`it is reserved for @${p(t.owner)}:`,child:()=>"has an open task:",heading:()=>"it only holds the tasks below it:",deferred:t=>`not before ${z(t,"not_before")}:`},we=({of:{startable:t,reasons:e}})=>c`<div class="note" role="status">
  <h3>${t&&!e.length?"It can be started":"Why it can't start"}</h3>
  <ul class="reasons">${e.map((n,s)=>c`<${ke} key=${s} reason=${n} />`)}</ul>
</div>`;function ke({reason:t}){let{kind:e,status:n,by:s,title:r,owner:o,depth:i=0}=t,a=be[e]??(()=>`it is ${v[n]}:`);return c`<li style=${{marginLeft:`${i*1.1}em`}}>
    ${a(t)} <button class="text" onClick=${()=>L(s)}>#${s}</button> <${m} of=${r} />
    <span class="hush"> ${v[n]}${o?` \xB7 @${p(o)}`:""}</span></li>`}export{de as a,ge as b};
