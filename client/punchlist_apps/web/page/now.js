// The screen Now: what needs you, who works, and what happens.

import { html } from "./vendor.js";
import { NoLists } from "./board.js";
import { Head } from "./frame.js";
import { cards, isBoardLoaded, needsCount } from "./model.js";

export default function Now() {
  return html`<${Head} title="Now" /><main class="board" id="main">
    ${isBoardLoaded.value && !cards.value.size ? html`<${NoLists} />` : html`<p class="hush">${needsCount.value} need you</p>`}
  </main>`;
}
