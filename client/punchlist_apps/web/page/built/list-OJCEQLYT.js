/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b,c,d}from"./chunk-5DOLCODA.js";import"./chunk-TCIFXU5X.js";import"./chunk-BVF5SRNS.js";import"./chunk-FILNCON5.js";import"./chunk-BM26S4SO.js";import"./chunk-ZGYNRVFS.js";import"./chunk-T4PI47YH.js";import"./chunk-EDIWW2I7.js";import"./chunk-COBCRPKV.js";import"./chunk-IKIOKO4K.js";import"./chunk-OD44XGYS.js";export{b as Labels,c as Reason,a as default,d as formatBlockers};
