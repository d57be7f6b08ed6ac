// Components that several screens share.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { session } from "./link.js";
import { labelWord, marks, now, visibleRows, toggleWord } from "./model.js";
import { gateOf, isDeferred, isFinished, isLate, stateOf } from "./rows.js";
import { dayText, safe, since } from "./text.js";

export const WORDS = {
  pending: "ready", blocked: "blocked", in_progress: "in progress", paused: "paused", completed: "done",
  failed: "failed",
};

/** Return the state of a task in words. A pending task without blockers may still be deferred or have open parts. */
export function wordsOf(task) {
  const state = stateOf(task);
  if (state !== "pending") return WORDS[state];
  return isDeferred(task) ? "put off" : visibleRows.value?.hasOpenParts(task) ? "holds tasks" : WORDS.pending;
}

export const Mark = ({ state }) => html`<svg class=${`mark s-${state}`} aria-hidden="true">
  <use href=${`#s-${state}`} /></svg>`;

export const Since = ({ at }) => html`<time>${since(now.value - at)}</time>`;

/** Untrusted text, escaped and with its text direction isolated. */
export const Text = ({ of, class: name }) => html`<bdi class=${name}>${safe(of)}</bdi>`;

/** The square of an agent, or the disc of a person, with two letters of the name. The name itself stands beside it. */
export const Badge = ({ of: name, size = "" }) => html`<i class=${`badge h${hueOf(name)} ${size}`}
  aria-hidden="true">${lettersOf(name)}</i>`;

/** Return the number of an agent's hue, 1 to 6, from its host, which is the name before `/`; 0 for you. */
export function hueOf(name) {
  if (name === session.value?.person) return 0;
  let hash = 0;
  for (const char of name.split("/")[0]) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return 1 + (hash % 6);
}

/** Return two letters of a name: the initials of its first two words, or its first two letters. */
export function lettersOf(name) {
  const [first = "", second] = name.split("/")[0].split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const letters = second ? [[...first][0], [...second][0]] : [...first].slice(0, 2);
  return safe(letters.join("")).toUpperCase();
}

export const Key = ({ of }) => html`<kbd>${KEY_NAMES[of] ?? of}</kbd>`;
const KEY_NAMES = {
  down: "↓", up: "↑", left: "←", right: "→", enter: "Enter", escape: "Esc", backspace: "⌫", space: "Space", tab: "Tab", home: "Home",
  end: "End", pageup: "PgUp", pagedown: "PgDn", "ctrl+k": "Ctrl K",
};

/** A label. A click filters by it. */
export const Label = ({ of }) => html`<button class="label" aria-label=${`Filter by label ${safe(of)}`}
  onClick=${(event) => (event.stopPropagation(), toggleWord(labelWord(of)))}><${Text} of=${of} /></button>`;

/** The due time of a task, or the time that it is deferred until. */
export function Times({ of: task }) {
  if (isFinished(task)) return null;
  if (isDeferred(task, now.value)) return html`<span class="day">from ${dayText(task, "not_before")}</span>`;
  const late = isLate(task, now.value) ? " bad" : "";
  return task.due && html`<span class=${`day${late}`}>due ${dayText(task, "due")}</span>`;
}

/** The meaning of a task's icons and colors in words, for screen readers. */
export const Spoken = ({ of: task, waits }) => {
  const parts = [wordsOf(task)];
  if (task.priority !== "normal") parts.push(`${task.priority} priority`);
  if (waits && task.open_blockers?.length && !isFinished(task)) {
    parts.push(`waits for ${task.open_blockers.map((id) => `#${id}`).join(", ")}`);
  }
  if (task.waits_for) parts.push(`waits for ${gateOf(task)}`);
  if (task.labels?.length) parts.push(`labels ${task.labels.join(", ")}`);
  if (marks.value.has(task.id)) parts.push("marked");
  return html`<span class="sr">, ${safe(parts.join(", "))} </span>`;
};

/** The statuses of a list's tasks as one bar. */
export function Bar({ counts }) {
  const parts = ["completed", "failed", "in_progress", "paused", "pending"].filter((name) => counts[name]);
  return html`<div class="bar" aria-hidden="true">${parts.map((name) =>
    html`<i key=${name} class=${`b-${name}`} style=${{ flexGrow: counts[name] }}></i>`)}</div>`;
}

/** A virtual list of items of equal size. It renders only the visible ones. `active` is the index to keep in view. */
export function Windowed({ items, size, active, children, ...props }) {
  const box = useRef(null);
  const [[top, height], setView] = useState([0, 800]);
  useLayoutEffect(() => {
    const measure = () => setView(([top]) => [top, box.current.clientHeight]);
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
    if (Math.abs(next - top) >= size) setView([next, box.current.clientHeight]);
  };
  return html`<div ...${props} ref=${box} onScroll=${scroll} tabindex="0">
    <div class="all" role="presentation" style=${{ height: `${items.length * size}px` }}>
      <div class="some" role="presentation" style=${{ transform: `translateY(${first * size}px)` }}>
        ${items.slice(first, last).map((item, at) => children(item, first + at))}
      </div>
    </div>
  </div>`;
}

/** A task on one line, as a link to its details. */
export const TaskLink = ({ task, onOpen }) =>
  html`<button class="task-link" onClick=${() => onOpen(task.id)}>
    <${Mark} state=${stateOf(task)} /><span class="id">#${task.id}</span> <${Text} of=${task.title} />
    <span class="sr">, ${WORDS[stateOf(task)]}</span>
  </button>`;
