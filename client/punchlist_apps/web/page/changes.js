// How a change is shown: texts with what was removed and added, and members before and after.

import { html } from "./vendor.js";
import { diffWords } from "./differences.js";
import { safe } from "./text.js";

const TAGS = { "-": "del", "+": "ins", "=": "span" };

/** Two texts as one, with what was removed and what was added. */
export const Words = ({ before, after }) =>
  html`<bdi>${diffWords(before, after).map(([sign, text], at) => html`<${TAGS[sign]} key=${at}>${safe(text.trim())}<//> `)}</bdi>`;

const NAMES = { active_form: "now", estimate_ms: "estimate", not_before: "not before", parent: "part of", blocked_by: "waits for" };

/** A member before and after a change. Without `before`, which may not have been read, only the new value is shown. */
export const Member = ({ name, before, after }) => html`<span class="member">
  ${name !== "title" && html`<span class="hush">${NAMES[name] ?? name}</span> `}
  ${before === undefined ? html`<ins>${safe(after || "none")}</ins>` : html`<${Words} before=${before} after=${after} />`}</span>`;

