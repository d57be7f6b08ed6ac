/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as t}from"./chunk-E2QJGZ27.js";import"./chunk-LZR44I4I.js";import{l as o}from"./chunk-IAONOKGE.js";function i(){return o`<${t} title="Inbox" /><main class="board" id="main"></main>`}export{i as default};
