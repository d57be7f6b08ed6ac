/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{d as a,e as b}from"./chunk-HKKSZICJ.js";import"./chunk-OD44XGYS.js";export{b as default,a as readSpans};
