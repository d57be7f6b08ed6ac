/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a as n}from"./chunk-DOUKHA6Y.js";import{g as r}from"./chunk-IALAHY4L.js";import{l as o}from"./chunk-OD44XGYS.js";var a={"-":"del","+":"ins","=":"span"},p=({before:s,after:t})=>o`<bdi>${n(s,t).map(([e,i],m)=>o`<${a[e]} key=${m}>${r(i.trim())}<//> `)}</bdi>`,f={active_form:"now",estimate_ms:"estimate",not_before:"not before",parent:"part of",blocked_by:"waits for"},c=({name:s,before:t,after:e})=>o`<span class="member">
  ${s!=="title"&&o`<span class="hush">${f[s]??s}</span> `}
  ${t===void 0?o`<ins>${r(e||"none")}</ins>`:o`<${p} before=${t} after=${e} />`}</span>`;export{p as a,c as b};
