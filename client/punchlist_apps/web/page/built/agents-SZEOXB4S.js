/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{c as a,d as b,e as c,f as d,g as e,h as f,i as g,j as h,k as i}from"./chunk-BJQBKEB5.js";import"./chunk-MJAC5S7V.js";import"./chunk-P2VPF2XT.js";import"./chunk-VTPJTOYB.js";import"./chunk-MKJRN2L2.js";import"./chunk-LCO4CKYC.js";export{e as Doing,h as Happened,f as Result,i as default,g as groupCalls,c as isResult,d as listAgents,a as span,b as spans};
