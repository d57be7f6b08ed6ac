// The libraries of the page, by the exact versions of requirements/vendor/package-lock.json; `make page` bundles them.

import htm from "htm";
import { h } from "preact";

export { render } from "preact";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, untracked } from "@preact/signals";
export const html = htm.bind(h);
