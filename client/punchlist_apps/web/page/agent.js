// The screen Agent.

import { html } from "./vendor.js";
import { Head } from "./frame.js";

export default function Agent() {
  return html`<${Head} title="Agent" /><main class="board" id="main"></main>`;
}
