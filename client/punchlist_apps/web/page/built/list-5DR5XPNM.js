/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b,c,d}from"./chunk-C3IK2WHM.js";import"./chunk-D7JMDJJ5.js";import"./chunk-BILLA6QC.js";import"./chunk-SCC3MLTB.js";import"./chunk-NUIDIV6Q.js";import"./chunk-KQ67PHBF.js";import"./chunk-MRBJGJFD.js";import"./chunk-2SUQFZMU.js";import"./chunk-LEMMXRVP.js";import"./chunk-B67QXF7G.js";import"./chunk-DB5ATF4C.js";import"./chunk-OD44XGYS.js";export{b as Labels,c as Reason,a as default,d as formatBlockers};
