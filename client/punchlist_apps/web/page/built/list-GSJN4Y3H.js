/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b,c,d}from"./chunk-OAFFWCAW.js";import"./chunk-SJS2GX5C.js";import"./chunk-Q4XRVBBM.js";import"./chunk-YOQKELSR.js";import"./chunk-EH56Q26U.js";import"./chunk-LCO4CKYC.js";export{b as Labels,c as Reason,a as default,d as formatBlockers};
