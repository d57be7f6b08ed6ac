/*! preact 11.2.0, (c) Jason Miller, @preact/signals 2.11.4, (c) Preact Team: MIT License. htm 3.1.1, (c) Google Inc.: Apache License 2.0.
 * Made by `make page`. */
import{a,b,c,d}from"./chunk-JLJ4HU2R.js";import"./chunk-BILQ7APC.js";import"./chunk-JTC77UJH.js";import"./chunk-OUQ3P2J5.js";import"./chunk-4GEH7PW4.js";import"./chunk-R6VQCR7I.js";import"./chunk-4PHI2A4W.js";import"./chunk-D6VCSTRL.js";import"./chunk-EOHURGU6.js";import"./chunk-3OLJYULV.js";import"./chunk-IALAHY4L.js";import"./chunk-OD44XGYS.js";export{b as Labels,c as Reason,a as default,d as formatBlockers};
