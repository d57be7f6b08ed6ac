// Two versions of a list compared: what differs, in groups, as the time machine shows it.

import { computed, html, signal, useLayoutEffect } from "./vendor.js";
import { Member, Words } from "./changes.js";
import { addCommands } from "./commands.js";
import { GROUPS, compareRows, format, listDifferences } from "./differences.js";
import { cursor, go, list, past, place, versions } from "./model.js";
import { base } from "./past.js";
import { Badge, Mark, Text, WORDS, Windowed } from "./parts.js";
import { stateOf } from "./rows.js";
import { calls } from "./story.js";
import { clock } from "./text.js";

const ROW_HEIGHT = matchMedia("(pointer: coarse)").matches ? 48 : 34;
const chosenGroup = signal(null); // number of the one group that is shown

const differences = computed(() => {
  list.value; // rows change in place
  const rows = versions.value.to === null ? list.value?.rows : past.value?.rows;
  return base.value && rows ? compareRows(base.value.rows, rows) : null;
});

/** The number of the one group that is shown; null for all, as when nothing differs in that way any more. */
const only = computed(() => (differences.value?.some(({ group }) => group === chosenGroup.value) ? chosenGroup.value : null));

/** The lines of the view: groups, and their tasks. */
const items = computed(() => {
  const items = [];
  let group = null;
  for (const one of differences.value ?? []) {
    if (only.value !== null && one.group !== only.value) continue;
    if (one.group !== group?.head) items.push((group = { head: one.group, count: 0, key: `g${one.group}` }));
    group.count++;
    items.push({ ...one, key: `${one.group} ${one.task.id}` });
  }
  return items;
});

/** The last call between the two versions that changed each task. */
const makers = computed(() => {
  const { from, to } = versions.value;
  const makers = new Map();
  for (const call of calls.value) {
    if (call.version <= from || (to !== null && call.version > to)) continue;
    for (const { id } of call.lines) makers.set(id, call);
  }
  return makers;
});

const open = (id) => go({ ...place.value, task: id }, { trail: false });
const step = (by) => () => {
  const tasks = items.value.filter((item) => item.task);
  const at = tasks.findIndex((item) => item.key === chosen.value);
  const next = tasks[at < 0 ? 0 : Math.min(tasks.length - 1, Math.max(0, at + by))];
  if (next) chosen.value = next.key;
};
const chosen = signal(null); // key of the row with the focus
const openChosen = () => {
  const item = items.value.find(({ key }) => key === chosen.value);
  if (item) open(item.task.id);
};
addCommands("list/compare", {
  down: { run: step(1), list: true },
  up: { run: step(-1), list: true },
  first: { run: step(-Infinity), list: true },
  last: { run: step(Infinity), list: true },
  page_down: { run: step(12), list: true },
  page_up: { run: step(-12), list: true },
  open: { run: openChosen, list: true },
});

function Chips() {
  const counts = GROUPS.map((_, at) => differences.value.filter(({ group }) => group === at).length);
  const Chip = ({ value, count, children }) => html`<button class="chip-button"
    aria-pressed=${only.value === value ? "true" : "false"} onClick=${() => (chosenGroup.value = value)}>
    ${children} <b>${count.toLocaleString()}</b></button>`;
  return html`<div class="tools chips" role="group" aria-label="Differences">
    <b>version ${versions.value.from} → ${versions.value.to ?? "now"}</b>
    <${Chip} value=${null} count=${differences.value.length}>all<//>
    ${GROUPS.map(([title], at) => counts[at] > 0 && html`<${Chip} key=${title} value=${at} count=${counts[at]}>${title}<//>`)}
  </div>`;
}

export default function Compare() {
  const active = items.value.findIndex((item) => item.key === chosen.value);
  useLayoutEffect(() => {
    if (active >= 0 && !document.activeElement.closest("dialog, input, .time-machine"))
      document.querySelector(".change.here")?.focus({ preventScroll: true });
  }, [chosen.value, active]);
  if (!differences.value) return html`<p class="hush" role="status">Reading both versions…</p>`;
  return html`<${Chips} />
    ${items.value.length
      ? html`<${Windowed} items=${items.value} size=${ROW_HEIGHT} active=${active} class="rows" role="list" aria-label="Differences">
          ${(item) => html`<${Item} key=${item.key} item=${item} />`}<//>`
      : html`<p class="hush">No task differs between these two versions.</p>`}`;
}

const style = { height: `${ROW_HEIGHT}px` };

function Item({ item: { head, count, key, group, task, before } }) {
  if (!task) {
    const [title, , tone] = GROUPS[head];
    return html`<div role="listitem" class=${`change-head g-${tone}`} style=${style}>
      ${title} <span class="count">${count.toLocaleString()}</span></div>`;
  }
  const [, sign, tone] = GROUPS[group];
  const maker = makers.value.get(task.id);
  const here = chosen.value === key || cursor.value === task.id;
  return html`<div role="listitem" style=${style}><button class=${`change g-${tone}${here ? " here" : ""}`}
    onClick=${() => open(task.id)} onFocus=${() => (chosen.value = key)}>
    <span class="sign" aria-hidden="true">${sign}</span><span class="id">#${task.id}</span>
    <${Mark} state=${stateOf(task)} /><span class="cut"><${What} group=${tone || GROUPS[group][0]} task=${task} before=${before} /></span>
    <span class="actor">${maker && html`<${Badge} of=${maker.actor} size="small" /><${Text} class="cut" of=${maker.actor} />`}</span>
    <time>${clock(maker?.at ?? task.updated_at)}</time></button></div>`;
}

/** The title of a task, and what differs. */
function What({ group, task, before }) {
  const names = before ? listDifferences(before, task).filter((name) => name !== "title") : [];
  const reason = { failed: task.fail_reason, completed: task.result_summary, asks: task.result_summary }[group];
  const isReworded = group === "Reworded" && before.title !== task.title;
  return html`${isReworded ? html`<${Words} before=${before.title} after=${task.title} />` : html`<${Text} of=${task.title} />`}
    ${reason && html` <${Text} class=${group === "failed" ? "bad" : "hush"} of=${reason} />`}
    ${group === "Other states" && html` <span class="hush">${WORDS[stateOf(before)]} → ${WORDS[stateOf(task)]}</span>`}
    ${["Reworded", "Moved", "Waits changed"].includes(group) && names.map((name) => html` <${Member} key=${name} name=${name}
      before=${format(name, before)} after=${format(name, task)} />`)}`;
}
