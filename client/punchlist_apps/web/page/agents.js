// The agents at work, and what happens in all lists, on the screen Now.

import { html } from "./vendor.js";

export default function Agents() {
  return html`<section class="lanes" aria-labelledby="h-agents"><div class="column-head"><h2 id="h-agents">Agents</h2></div></section>
  <section class="feed" aria-labelledby="h-feed"><div class="column-head"><h2 id="h-feed">What happens</h2></div></section>`;
}
