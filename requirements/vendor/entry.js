import { h } from "preact";
import htm from "htm";
export { h, render, Fragment } from "preact";
export { useEffect, useLayoutEffect, useRef, useState, useMemo } from "preact/hooks";
export { signal, computed, effect, batch, untracked } from "@preact/signals";
export const html = htm.bind(h);
