// The screen Inbox.

import { html } from "./vendor.js";
import { Head } from "./frame.js";

export default function Inbox() {
  return html`<${Head} title="Inbox" /><main class="board" id="main"></main>`;
}
