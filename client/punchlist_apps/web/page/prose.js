// Text of tasks, shown as Markdown.

import { html, useMemo, useState } from "./vendor.js";
import { readMarkdown } from "./markdown.js";
import { attempt, go, place, showToast, visibleRows } from "./model.js";
import { WORDS } from "./parts.js";
import { stateOf } from "./rows.js";
import { safe, safeBlock } from "./text.js";

const MAX_READ = 20_000; // characters that are shown as Markdown without being asked for

async function copy(text) {
  await attempt(() => navigator.clipboard.writeText(text));
  showToast("Copied");
}

/** A piece that is copied by a click: a place in a file, or a commit. */
const Copied = ({ text }) => html`<button class="text" title="Copy" onClick=${() => copy(text)}>${text}</button>`;

function TaskNumber({ text }) {
  const task = visibleRows.value?.tasks.get(text.slice(1));
  if (!task) return text;
  const open = () => go({ ...place.value, task: task.id }, { trail: false });
  return html`<button class="text" title=${safe(`${task.title}, ${WORDS[stateOf(task)]}`)} onClick=${open}>${text}</button>`;
}

const PIECES = { path: Copied, commit: Copied, task: TaskNumber };

function draw(node) {
  if (typeof node === "string") return node;
  const { tag, attributes, children } = node;
  const Piece = PIECES[tag];
  if (Piece) return html`<${Piece} text=${children[0]} />`;
  return html`<${tag} ...${attributes}>${children.map(draw)}<//>`;
}

/** A text as Markdown, or as it was written. */
export function Prose({ of: text }) {
  const [isChosen, choose] = useState(null);
  const isSource = isChosen ?? text.length > MAX_READ;
  const nodes = useMemo(() => (isSource ? [] : readMarkdown(text)), [text, isSource]);
  const isPlain = nodes.length < 2 && nodes.every(({ tag, children }) =>
    tag === "p" && children.every((child) => typeof child === "string"));
  return html`<div class="prose">
    ${isSource ? html`<p class="source">${safeBlock(text)}</p>` : nodes.map(draw)}
    ${(isSource || !isPlain) && html`<button class="text source-toggle" aria-pressed=${isSource ? "true" : "false"}
      onClick=${() => choose(!isSource)}>${isSource ? "Show as Markdown" : "Source"}</button>`}
  </div>`;
}
