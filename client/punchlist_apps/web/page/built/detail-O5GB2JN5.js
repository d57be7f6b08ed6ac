/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b}from"./chunk-3OWVG3CR.js";import"./chunk-FILNCON5.js";import"./chunk-ZGYNRVFS.js";import"./chunk-T4PI47YH.js";import"./chunk-EDIWW2I7.js";import"./chunk-EBNRF53I.js";import"./chunk-COBCRPKV.js";import"./chunk-IKIOKO4K.js";import"./chunk-OD44XGYS.js";export{b as Link,a as default};
