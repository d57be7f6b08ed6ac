/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{k as m}from"./chunk-UK3G5L6B.js";import{k as i}from"./chunk-WMYS23UM.js";function e(){return i`<${m} title="Timeline" /><main class="board" id="main"></main>`}export{e as default};
