/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{i as p}from"./chunk-R6VQCR7I.js";import{g as o}from"./chunk-IALAHY4L.js";import{b as l,l as e,m,r as i,u as c,v as d}from"./chunk-OD44XGYS.js";function u(){return e`<main class="door" id="main">
    <img src="/icon.svg" alt="" width="56" height="56" />
    <h1>punchlist</h1>
    ${i.value&&e`<p class="bad" role="alert">${o(i.value)}</p>`}
    <p>This page shows your task lists to you alone. To sign this browser in, run</p>
    <${p} of=${d()} />
    <p>and open the link it prints. A link works once, within a minute; then this browser stays signed in.</p>
    <p class="waiting" role="status"><i aria-hidden="true"></i>Waiting…</p>
    <${h} />
  </main>`}function h(){let[n,r]=l("");return e`<form class="code-form" onSubmit=${async s=>{s.preventDefault();let a=s.currentTarget.elements.code;r("");try{await c({code:a.value.replace(/\D/g,"")})}catch(t){if(!(t instanceof m))throw t;r(t.message),a.select()}}}>
    <label for="code">Or enter the six digits that <code>punch web --code</code> prints</label>
    <span class="pair"><input id="code" name="code" required inputmode="numeric" autocomplete="one-time-code"
      maxlength="11" pattern="\\D*(\\d\\D*){6}" title="six digits" />
      <button>Sign in</button></span>
    ${n&&e`<p class="bad" role="alert">${o(n)}</p>`}
  </form>`}export{u as default};
