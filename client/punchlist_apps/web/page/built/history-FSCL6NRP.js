/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{b as j}from"./chunk-DSALFZTW.js";import{f as R,g as W,j as S,k as d,l as C,m as Y}from"./chunk-DOUKHA6Y.js";import{d as B}from"./chunk-L4KXB44Y.js";import{e as $,f as w,h as q,n as H}from"./chunk-R6VQCR7I.js";import{I as N}from"./chunk-EOHURGU6.js";import{d as b}from"./chunk-3OLJYULV.js";import{V as E,X as F,_ as I,c as m,d as z,g as A,o as c,ua as K}from"./chunk-IALAHY4L.js";import{d as O,i as r,j as h,k as _,l}from"./chunk-OD44XGYS.js";var J=matchMedia("(max-width: 760px)").matches?58:34,G=4,p=r(null),k=r(null),i=r(new Set),f=r(new Set),u=r(null),le=h(()=>m.value.name);_(()=>{le.value,[p.value,k.value,u.value,i.value,f.value]=[null,null,null,new Set,new Set]});var P=e=>!p.value||e.actor===p.value,Q=e=>!k.value||e.kinds.has(k.value),M=h(()=>d.value.filter(e=>P(e)&&Q(e)).toReversed()),oe={hour:"2-digit",minute:"2-digit"},ue=e=>new Date(e).toLocaleTimeString(void 0,oe),ie=e=>new Date(e).toLocaleString(void 0,{dateStyle:"full",timeStyle:"medium"});function re(e){let t=new Date(e),n=new Date;if(t.toDateString()===n.toDateString())return"Today";let a=t.getFullYear()!==n.getFullYear()&&{year:"numeric"};return t.toLocaleDateString(void 0,{weekday:"long",day:"numeric",month:"long",...a})}var T=h(()=>{let e=[],t=null;for(let n of M.value){let a=re(n.at);if(a!==t?.day&&e.push(t={day:a,count:0,key:a}),t.count++,!f.value.has(a)&&(e.push({call:n,key:n.version}),i.value.has(n.version)))for(let s of n.lines)e.push({line:s,key:`${n.version}.${s.entry.version}`})}return R.value?.from>0&&e.push({key:"older"}),e});function U(e,t){let n=new Set(e);return n.delete(t)||n.add(t),n}function V({version:e,lines:t}){let a=new Set(t.map(o=>o.id)).size===1?t[0].id:null,s={...m.value.query,at:e<E.value.rows.version?`${e}`:""};z({...m.value,view:"list",task:a,query:s})}var v=()=>M.value.find(e=>e.version===u.value),D=()=>T.value.filter(e=>e.call).map(e=>e.key),L=e=>e!==void 0&&(u.value=e),y=e=>()=>{let t=D(),n=t.indexOf(u.value);L(n<0?t[0]:t[Math.min(t.length-1,Math.max(0,n+e))])},X=e=>()=>v()&&i.value.has(u.value)!==e&&Z(u.value),Z=e=>i.value=U(i.value,e);N("list/history",{down:{run:y(1),list:!0},up:{run:y(-1),list:!0},page_down:{run:y(12),list:!0},page_up:{run:y(-12),list:!0},first:{run:()=>L(D()[0]),list:!0},last:{run:()=>L(D().at(-1)),list:!0},left:{run:X(!1),list:!0},right:{run:X(!0),list:!0},open:{run:()=>v()&&V(v()),list:!0},undo:{run:()=>v()?b(v()):void 0,list:!0,change:!0}});var x=({of:e,value:t,count:n,children:a})=>l`<button class="chip-button"
  aria-pressed=${e.value===t?"true":"false"} onClick=${()=>e.value=e.value===t?null:t}>
  ${a} <b>${n.toLocaleString()}</b></button>`;function ce(){let e=new Map;for(let s of d.value.filter(Q))e.set(s.actor,(e.get(s.actor)??0)+1);let t=[...e.values()].reduce((s,o)=>s+o,0),n=d.value.filter(P),a=Object.keys(B).map(s=>[s,n.filter(o=>o.kinds.has(s)).length]);return l`<div class="tools chips" role="group" aria-label="Filters">
    <${x} of=${p} value=${null} count=${t}>Everybody<//>
    ${[...e].sort(([,s],[,o])=>o-s).map(([s,o])=>l`<${x} key=${s} of=${p}
      value=${s} count=${o}><${w} of=${s} size="small" /><${$} class="cut" of=${s} /><//>`)}
    <i class="rule"></i>
    ${a.map(([s,o])=>o>0&&l`<${x} key=${s} of=${k} value=${s} count=${o}>${s}<//>`)}
    <span class="room"></span>
    <span class="hush">${c(d.value.length,"call")}, ${c(S.value.length,"version")}</span>
  </div>`}function $e(){if(!S.value)return l`<p class="hush" role="status">Loading the history…</p>`;let e=T.value.findIndex(t=>t.key===u.value);return O(()=>{e>=0&&!document.activeElement.closest("dialog, input, .time-machine")&&document.querySelector(".call.here .main")?.focus({preventScroll:!0})},[u.value,e]),l`<${ce} />
    <${H} items=${T.value} size=${J} active=${e} class="rows calls" role="list"
      aria-label="Newest first">
      ${t=>l`<${de} key=${t.key} item=${t} />`}<//>
    ${!M.value.length&&l`<p class="hush">No call fits these filters.</p>`}`}var g={height:`${J}px`};function de({item:{day:e,count:t,call:n,line:a}}){if(n)return l`<${fe} call=${n} />`;if(a)return l`<div role="listitem" class="call part" style=${g}><${ee} line=${a} /></div>`;if(!e)return l`<div role="listitem" class="call" style=${g}>
    <button class="text" onClick=${()=>K(()=>W(1e3))}>Older</button></div>`;let s=f.value.has(e);return l`<div role="listitem" class="day-head" style=${g}>
    <button aria-expanded=${s?"false":"true"} onClick=${()=>f.value=U(f.value,e)}>
      <span aria-hidden="true">${s?"\u25B8":"\u25BE"}</span><b>${e}</b>
      <span class="count">${c(t,"call")}</span></button></div>`}var ee=({line:{entry:e,id:t,title:n,members:a}})=>l`<span class="id">${t&&`#${t}`}</span>
  <span class="told cut">${n&&l`<${$} class="hush" of=${n} /> `}<${C} of=${e.event} /></span>
  <span class="cut">${a.map(s=>l`<${j} key=${s.name} ...${s} /> `)}</span>`;function ve({lines:e}){let t=[...new Set(e.map(a=>a.id).filter(Boolean))],n=[...new Set(e.map(a=>a.entry.event.type))];return l`<span class="id"></span><span class="told cut">
    ${n.length===1?l`<${C} of=${{...e[0].entry.event,text:"",fail_reason:"",result_summary:""}} />`:"changed"}
    ${" "}<b>${c(t.length,"task")}</b> <span class="hush">${t.slice(0,G).map((a,s)=>l`${s>0&&", "}#${a}${s===0&&l` <${$} of=${e.find(o=>o.id===a).title} />`}`)}
      ${t.length>G&&", \u2026"}</span></span><span></span>`}function fe({call:e}){let{version:t,at:n,actor:a,lines:s,undoes:o}=e,te=new Set(s.map(ae=>ae.id)).size,se=s.length>1,ne=u.value===t||F.value.to===t;return l`<div role="listitem" class=${`call${ne?" here":""}`} style=${g}>
    <button class="main" onClick=${()=>V(e)} onFocus=${()=>u.value=t}
      title=${`${ie(n)}: show the list as it was`}>
      <time>${ue(n)}</time>
      <span class="actor"><${w} of=${a} size="small" /><${$} class="cut" of=${a} /></span>
      ${o?.length>0&&l`<span class="hush undoes">took back</span>`}
      ${te>1?l`<${ve} lines=${s} />`:l`<${ee} line=${s.at(0)} />`}</button>
    <span class="acts">
      ${se&&l`<button aria-expanded=${i.value.has(t)?"true":"false"}
        onClick=${()=>Z(t)} aria-label=${`The ${s.length} events of version ${t}`}>
        ${s.length} ${i.value.has(t)?"\u25BE":"\u25B8"}</button>`}
      ${I.value&&l`<button class="on-hover" aria-label=${`Take back version ${t}: ${A(Y(e))}`}
        onClick=${()=>b(e)}>Take this back… <${q} of="u" /></button>`}</span></div>`}export{$e as default};
