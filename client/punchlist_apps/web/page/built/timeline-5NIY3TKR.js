/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{R as m}from"./chunk-WFWCPALT.js";import"./chunk-VTPJTOYB.js";import"./chunk-SO7JIV7K.js";import"./chunk-MKJRN2L2.js";import{l as i}from"./chunk-LCO4CKYC.js";function e(){return i`<${m} title="Timeline" /><main class="board" id="main"></main>`}export{e as default};
