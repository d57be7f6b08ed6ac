/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as g}from"./chunk-E2QJGZ27.js";import{G as _,b as p,c as n,e as m,f as u,m as $,oa as w,qa as r,t as d,x as v}from"./chunk-LZR44I4I.js";import{i as l,k as c,l as t,m as h,n as o,u as f}from"./chunk-IAONOKGE.js";var M=500,O=2e3,P="No agent or person has been here since the daemon started.",S="No agent or person works in this list.",a=l(null),T=0,i=1/0;function y(e){Date.now()+e>=i||(clearTimeout(T),i=Date.now()+e,T=setTimeout(x,e))}async function x(){try{o.value&&!document.hidden&&(a.value=await f("GET","/api/v1/agents"))}catch(e){if(!(e instanceof h))throw e}i=1/0,n.value.screen==="who"&&y(O)}c(()=>{v.value,_.value,n.value.screen==="who"&&y(a.peek()?M:0)});function L(){let e=a.value;return t`<${g} title="Who is there" /><main class="board who" id="main"><section>
    ${e?t`<ul>${e.agents.map(s=>t`<${k} key=${s.name} agent=${s} />`)}</ul>`:t`<p class="hush" role="status">Opening…</p>`}
    ${e&&(e.others||!e.agents.length)&&t`<p class="hush">
      ${e.others||(o.value?.scope?.list?S:P)}</p>`}
  </section></main>`}var k=({agent:e})=>t`<li>
  <${w} state=${e.is_here?"in_progress":"pending"} />
  <div><b><${r} of=${e.name} /></b><span class="sr">${e.is_here?", here":", not here"}</span>
    ${" "}<span class="hush">${u(e.facts.join(` ${d.dot} `))}</span>
    ${e.tasks.length>0&&t`<ul>${e.tasks.map(s=>t`<${A} key=${`${s.conversation} ${s.id}`} task=${s} />`)}</ul>`}
  </div>
</li>`;function A({task:e}){let s={name:e.conversation,task:e.id},b=e.lease_expires_at&&t` <span class="hush">${$(e.lease_expires_at)}</span>`;return t`<li>
    <a href=${p(s)} onClick=${m(s)}>
      <${r} of=${`${e.list} #${e.id} ${e.title}`} /></a>${b}</li>`}export{L as default};
