/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as h}from"./chunk-JTC77UJH.js";import"./chunk-OUQ3P2J5.js";import{a as p}from"./chunk-4GEH7PW4.js";import{c as m,e as r}from"./chunk-R6VQCR7I.js";import"./chunk-EOHURGU6.js";import"./chunk-3OLJYULV.js";import{D as $,b as i,f as n,g as a,s as l}from"./chunk-IALAHY4L.js";import{l as s,n as t}from"./chunk-OD44XGYS.js";var f="No agent or person has been here since the daemon started.",u="No agent or person works in this list.";function d(){let e=p.value;return s`<${h} title="Who is there" /><main class="board who" id="main"><section>
    ${e?s`<ul>${e.agents.map(o=>s`<${_} key=${o.name} agent=${o} />`)}</ul>`:s`<p class="hush" role="status">Opening…</p>`}
    ${e&&(e.others||!e.agents.length)&&s`<p class="hush">
      ${e.others||(t.value?.scope?.list?u:f)}</p>`}
  </section></main>`}var _=({agent:e})=>s`<li>
  <${m} state=${e.is_here?"in_progress":"pending"} />
  <div><b><${r} of=${e.name} /></b><span class="sr">${e.is_here?", here":", not here"}</span>
    ${" "}<span class="hush">${a(e.facts.join(` ${$.dot} `))}</span>
    ${e.tasks.length>0&&s`<ul>${e.tasks.map(o=>s`<${g} key=${`${o.conversation} ${o.id}`} task=${o} />`)}</ul>`}
  </div>
</li>`;function g({task:e}){let o={name:e.conversation,task:e.id},c=e.lease_expires_at&&s` <span class="hush">${l(e.lease_expires_at)}</span>`;return s`<li>
    <a href=${i(o)} onClick=${n(o)}>
      <${r} of=${`${e.list} #${e.id} ${e.title}`} /></a>${c}</li>`}export{d as default};
