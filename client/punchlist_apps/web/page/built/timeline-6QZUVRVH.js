/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as m}from"./chunk-E2QJGZ27.js";import"./chunk-LZR44I4I.js";import{l as i}from"./chunk-IAONOKGE.js";function e(){return i`<${m} title="Timeline" /><main class="board" id="main"></main>`}export{e as default};
