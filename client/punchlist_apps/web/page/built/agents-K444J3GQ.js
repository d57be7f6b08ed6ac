/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{c as a,d as b,e as c,f as d,g as e,h as f,i as g,j as h,k as i}from"./chunk-V5HSOYUW.js";import"./chunk-PF7GWB5L.js";import"./chunk-NUIDIV6Q.js";import"./chunk-KQ67PHBF.js";import"./chunk-DB5ATF4C.js";import"./chunk-OD44XGYS.js";export{e as Doing,h as Happened,f as Result,i as default,g as groupCalls,c as isResult,d as listAgents,a as span,b as spans};
