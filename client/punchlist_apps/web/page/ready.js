// When the open list will be ready, in its head.

import { html, signal, useEffect } from "./vendor.js";
import { LOOKBACK_MS, forecast, formatAhead, formatRange } from "./forecast.js";
import { Problem, call } from "./link.js";

const PAUSE_MS = 60_000;
/** Read what was worked on in a time: in one list, or if `name` is empty in all. */
export function readSpans(name, from, to, limit) {
  const range = { from_at: Math.round(from), to_at: Math.round(to), limit, ...(name && { conversation: name }) };
  return call("GET", `/api/v1/spans?${new URLSearchParams(range)}`);
}

const current = signal(null); // { name, forecast }

async function read(name) {
  if (document.hidden) return;
  const now = Date.now();
  try {
    const { totals } = await readSpans(name, now - LOOKBACK_MS, now, 1);
    current.value = { name, forecast: forecast(totals, now) };
  } catch (error) {
    // Without an answer there is no forecast; the other parts of the page say what is wrong.
    if (!(error instanceof Problem)) throw error;
  }
}

export default function Ready({ name }) {
  useEffect(() => {
    read(name);
    const timer = setInterval(() => read(name), PAUSE_MS);
    return () => clearInterval(timer);
  }, [name]);
  const { forecast: ready } = current.value?.name === name ? current.value : {};
  return ready && html`<span class="ready" title=${`At the speed of the last two hours: ${formatRange(ready)}`}>
    ready about <b>${formatAhead(ready.at)}</b></span>`;
}
