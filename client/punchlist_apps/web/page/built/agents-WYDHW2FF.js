/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{c as a,d as b,e as c,f as d,g as e,h as f,i as g,j as h,k as i}from"./chunk-C3WZHTOE.js";import"./chunk-L4KXB44Y.js";import"./chunk-4GEH7PW4.js";import"./chunk-R6VQCR7I.js";import"./chunk-IALAHY4L.js";import"./chunk-OD44XGYS.js";export{e as Doing,h as Happened,f as Result,i as default,g as groupCalls,c as isResult,d as listAgents,a as span,b as spans};
