/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b,c,d,e}from"./chunk-MRBJGJFD.js";import"./chunk-2SUQFZMU.js";import"./chunk-LEMMXRVP.js";import"./chunk-B67QXF7G.js";import"./chunk-DB5ATF4C.js";import"./chunk-OD44XGYS.js";export{b as add,c as addList,e as addNote,a as diffBlockers,d as edit};
