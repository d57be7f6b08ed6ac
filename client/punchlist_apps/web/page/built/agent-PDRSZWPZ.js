/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as i}from"./chunk-UK3G5L6B.js";import{k as t}from"./chunk-WMYS23UM.js";function m(){return t`<${i} title="Agent" /><main class="board" id="main"></main>`}export{m as default};
