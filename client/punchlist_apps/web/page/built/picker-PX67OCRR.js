/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b}from"./chunk-5T3LDDHB.js";import"./chunk-2XXCPBQF.js";import"./chunk-P2VPF2XT.js";import"./chunk-WFWCPALT.js";import"./chunk-VTPJTOYB.js";import"./chunk-SO7JIV7K.js";import"./chunk-MKJRN2L2.js";import"./chunk-LCO4CKYC.js";export{b as default,a as describeCircle};
