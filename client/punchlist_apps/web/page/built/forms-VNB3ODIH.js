/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b,c,d,e}from"./chunk-BM26S4SO.js";import"./chunk-ZGYNRVFS.js";import"./chunk-T4PI47YH.js";import"./chunk-EDIWW2I7.js";import"./chunk-COBCRPKV.js";import"./chunk-IKIOKO4K.js";import"./chunk-OD44XGYS.js";export{b as add,c as addList,e as addNote,a as diffBlockers,d as edit};
