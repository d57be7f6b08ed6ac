/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b}from"./chunk-5GRTDECU.js";import"./chunk-KQ67PHBF.js";import"./chunk-2SUQFZMU.js";import"./chunk-LEMMXRVP.js";import"./chunk-LWYC3LQ3.js";import"./chunk-B67QXF7G.js";import"./chunk-DB5ATF4C.js";import"./chunk-OD44XGYS.js";export{b as Link,a as default};
