// The screen Timeline.

import { html } from "./vendor.js";
import { Head } from "./frame.js";

export default function Timeline() {
  return html`<${Head} title="Timeline" /><main class="board" id="main"></main>`;
}
