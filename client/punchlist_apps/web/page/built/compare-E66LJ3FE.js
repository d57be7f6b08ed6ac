/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as q,b as B}from"./chunk-DSALFZTW.js";import{b as k,c as i,d as z,e as H,k as T}from"./chunk-DOUKHA6Y.js";import"./chunk-L4KXB44Y.js";import{a as b,c as E,e as v,f as G,n as L}from"./chunk-R6VQCR7I.js";import{I as D,w}from"./chunk-EOHURGU6.js";import"./chunk-3OLJYULV.js";import{V as y,X as $,Y as W,c as M,d as I,ea as O,l as S,u as d}from"./chunk-IALAHY4L.js";import{d as C,i as g,j as c,l}from"./chunk-OD44XGYS.js";var N=matchMedia("(pointer: coarse)").matches?48:34,R=g(null),m=c(()=>{y.value;let e=$.value.to===null?y.value?.rows:W.value?.rows;return w.value&&e?z(w.value.rows,e):null}),_=c(()=>m.value?.some(({group:e})=>e===R.value)?R.value:null),f=c(()=>{let e=[],t=null;for(let s of m.value??[])_.value!==null&&s.group!==_.value||(s.group!==t?.head&&e.push(t={head:s.group,count:0,key:`g${s.group}`}),t.count++,e.push({...s,key:`${s.group} ${s.task.id}`}));return e}),J=c(()=>{let{from:e,to:t}=$.value,s=new Map;for(let n of T.value)if(!(n.version<=e||t!==null&&n.version>t))for(let{id:o}of n.lines)s.set(o,n);return s}),P=e=>I({...M.value,task:e},{trail:!1}),u=e=>()=>{let t=f.value.filter(o=>o.task),s=t.findIndex(o=>o.key===r.value),n=t[s<0?0:Math.min(t.length-1,Math.max(0,s+e))];n&&(r.value=n.key)},r=g(null),K=()=>{let e=f.value.find(({key:t})=>t===r.value);e&&P(e.task.id)};D("list/compare",{down:{run:u(1),list:!0},up:{run:u(-1),list:!0},first:{run:u(-1/0),list:!0},last:{run:u(1/0),list:!0},page_down:{run:u(12),list:!0},page_up:{run:u(-12),list:!0},open:{run:K,list:!0}});function Q(){let e=i.map((s,n)=>m.value.filter(({group:o})=>o===n).length),t=({value:s,count:n,children:o})=>l`<button class="chip-button"
    aria-pressed=${_.value===s?"true":"false"} onClick=${()=>R.value=s}>
    ${o} <b>${n.toLocaleString()}</b></button>`;return l`<div class="tools chips" role="group" aria-label="Differences">
    <b>version ${$.value.from} → ${$.value.to??"now"}</b>
    <${t} value=${null} count=${m.value.length}>all<//>
    ${i.map(([s],n)=>e[n]>0&&l`<${t} key=${s} value=${n} count=${e[n]}>${s}<//>`)}
  </div>`}function V(){let e=f.value.findIndex(t=>t.key===r.value);return C(()=>{e>=0&&!document.activeElement.closest("dialog, input, .time-machine")&&document.querySelector(".change.here")?.focus({preventScroll:!0})},[r.value,e]),m.value?l`<${Q} />
    ${f.value.length?l`<${L} items=${f.value} size=${N} active=${e} class="rows" role="list" aria-label="Differences">
          ${t=>l`<${X} key=${t.key} item=${t} />`}<//>`:l`<p class="hush">No task differs between these two versions.</p>`}`:l`<p class="hush" role="status">Reading both versions…</p>`}var F={height:`${N}px`};function X({item:{head:e,count:t,key:s,group:n,task:o,before:h}}){if(!o){let[j,,A]=i[e];return l`<div role="listitem" class=${`change-head g-${A}`} style=${F}>
      ${j} <span class="count">${t.toLocaleString()}</span></div>`}let[,a,x]=i[n],p=J.value.get(o.id),U=r.value===s||O.value===o.id;return l`<div role="listitem" style=${F}><button class=${`change g-${x}${U?" here":""}`}
    onClick=${()=>P(o.id)} onFocus=${()=>r.value=s}>
    <span class="sign" aria-hidden="true">${a}</span><span class="id">#${o.id}</span>
    <${E} state=${d(o)} /><span class="cut"><${Y} group=${x||i[n][0]} task=${o} before=${h} /></span>
    <span class="actor">${p&&l`<${G} of=${p.actor} size="small" /><${v} class="cut" of=${p.actor} />`}</span>
    <time>${S(p?.at??o.updated_at)}</time></button></div>`}function Y({group:e,task:t,before:s}){let n=s?H(s,t).filter(a=>a!=="title"):[],o={failed:t.fail_reason,completed:t.result_summary,asks:t.result_summary}[e],h=e==="Reworded"&&s.title!==t.title;return l`${h?l`<${q} before=${s.title} after=${t.title} />`:l`<${v} of=${t.title} />`}
    ${o&&l` <${v} class=${e==="failed"?"bad":"hush"} of=${o} />`}
    ${e==="Other states"&&l` <span class="hush">${b[d(s)]} → ${b[d(t)]}</span>`}
    ${["Reworded","Moved","Waits changed"].includes(e)&&n.map(a=>l` <${B} key=${a} name=${a}
      before=${k(a,s)} after=${k(a,t)} />`)}`}export{V as default};
