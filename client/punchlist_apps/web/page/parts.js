// Small pieces that several screens are made of.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { labelWord, marks, now, shownRows, toggleWord } from "./model.js";
import { gateOf, isDeferred, isFinished, isLate, stateOf } from "./rows.js";
import { dayText, safe, since } from "./text.js";

export const WORDS = {
  pending: "ready", blocked: "blocked", in_progress: "in progress", paused: "paused", completed: "done",
  failed: "failed",
};

/** The state of a task in words; one that waits for nothing may still have to wait for its time, or hold others. */
export function wordsOf(one) {
  const state = stateOf(one);
  if (state !== "pending") return WORDS[state];
  return isDeferred(one) ? "put off" : shownRows.value?.holds(one) ? "holds tasks" : WORDS.pending;
}

export const Mark = ({ state }) => html`<svg class=${`mark s-${state}`} aria-hidden="true">
  <use href=${`#s-${state}`} /></svg>`;

export const Since = ({ at }) => html`<time>${since(now.value - at)}</time>`;

/** Text of others: escaped, and its direction kept to itself. */
export const Text = ({ of, class: name }) => html`<bdi class=${name}>${safe(of)}</bdi>`;

export const Key = ({ of }) => html`<kbd>${KEY_NAMES[of] ?? of}</kbd>`;
const KEY_NAMES = {
  down: "↓", up: "↑", left: "←", right: "→", enter: "Enter", escape: "Esc", space: "Space", tab: "Tab", home: "Home",
  end: "End", pageup: "PgUp", pagedown: "PgDn", "ctrl+k": "Ctrl K",
};

/** A label: a click filters by it. */
export const Label = ({ of }) => html`<button class="label" aria-label=${`Filter by label ${safe(of)}`}
  onClick=${(event) => (event.stopPropagation(), toggleWord(labelWord(of)))}><${Text} of=${of} /></button>`;

/** When a task is due, or until when it is put off. */
export function Times({ of: one }) {
  if (isFinished(one)) return null;
  if (isDeferred(one, now.value)) return html`<span class="day">from ${dayText(one, "not_before")}</span>`;
  return one.due && html`<span class=${`day${isLate(one, now.value) ? " bad" : ""}`}>due ${dayText(one, "due")}</span>`;
}

/** What is seen of a task beside its text, for those who hear it. */
export const Spoken = ({ of: one, waits }) => {
  const parts = [wordsOf(one)];
  if (one.priority !== "normal") parts.push(`${one.priority} priority`);
  if (waits && one.open_blockers?.length && !isFinished(one)) {
    parts.push(`waits for ${one.open_blockers.map((id) => `#${id}`).join(", ")}`);
  }
  if (one.waits_for) parts.push(`waits for ${gateOf(one)}`);
  if (one.labels?.length) parts.push(`labels ${one.labels.join(", ")}`);
  if (marks.value.has(one.id)) parts.push("marked");
  return html`<span class="sr">, ${safe(parts.join(", "))} </span>`;
};

/** How a list stands, as one bar. */
export function Bar({ counts }) {
  const parts = ["completed", "failed", "in_progress", "paused", "pending"].filter((name) => counts[name]);
  return html`<div class="bar" aria-hidden="true">${parts.map((name) =>
    html`<i key=${name} class=${`b-${name}`} style=${{ flexGrow: counts[name] }}></i>`)}</div>`;
}

/** Only those of many equal-sized items that can be seen. `active` is the index to keep in view. */
export function Windowed({ items, size, active, children, ...props }) {
  const box = useRef(null);
  const [[top, height], place] = useState([0, 800]);
  useLayoutEffect(() => {
    const measure = () => place(([top]) => [top, box.current.clientHeight]);
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (active < 0 || !box.current) return;
    const at = active * size;
    const { scrollTop, clientHeight } = box.current;
    if (at < scrollTop) box.current.scrollTop = at;
    else if (at + size > scrollTop + clientHeight) box.current.scrollTop = at + size - clientHeight;
  }, [active, size]);
  const first = Math.max(0, Math.floor(top / size) - 6);
  const last = Math.min(items.length, Math.ceil((top + height) / size) + 6);
  const scroll = () => {
    const next = box.current.scrollTop;
    if (Math.abs(next - top) >= size) place([next, box.current.clientHeight]);
  };
  return html`<div ...${props} ref=${box} onScroll=${scroll} tabindex="0">
    <div class="all" role="presentation" style=${{ height: `${items.length * size}px` }}>
      <div class="some" role="presentation" style=${{ transform: `translateY(${first * size}px)` }}>
        ${items.slice(first, last).map((item, at) => children(item, first + at))}
      </div>
    </div>
  </div>`;
}

/** A task in a line, as a link among tasks. */
export const TaskLink = ({ task, onOpen }) =>
  html`<button class="task-link" onClick=${() => onOpen(task.id)}>
    <${Mark} state=${stateOf(task)} /><span class="id">#${task.id}</span> <${Text} of=${task.title} />
    <span class="sr">, ${WORDS[stateOf(task)]}</span>
  </button>`;
