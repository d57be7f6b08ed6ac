// The list as columns by state; a task is dragged to another column or moved by its keys.

import { html, signal } from "./vendor.js";
import { setStatus } from "./commands.js";
import { cursor, go, mayChange, place, priorityMark, shown } from "./model.js";
import { gateOf, ownerOf, stateOf } from "./rows.js";
import { Mark, Text, Windowed } from "./parts.js";
import { Spoken } from "./list.js";
import { safe } from "./text.js";

export const COLUMNS = [
  { title: "Ready", states: ["pending"], to: "pending" },
  { title: "Blocked", states: ["blocked", "paused"], to: "paused" },
  { title: "In progress", states: ["in_progress"], to: "in_progress" },
  { title: "Done", states: ["completed"], to: "completed" },
  { title: "Failed", states: ["failed"], to: "failed" },
];
const SIZE = 76;
const over = signal(null);

export function columns() {
  const found = Map.groupBy(shown.value, stateOf);
  return COLUMNS.map(({ states }) => (states.length > 1 ? shown.value.filter((one) => states.includes(stateOf(one))) : (found.get(states[0]) ?? [])));
}

export function Flow() {
  return html`<div class="flow">${columns().map((tasks, at) => html`<${Column} key=${at} column=${COLUMNS[at]} tasks=${tasks} />`)}</div>`;
}

function Column({ column, tasks }) {
  const drop = (event) => {
    event.preventDefault();
    over.value = null;
    setStatus(event.dataTransfer.getData("text/plain"), column.to);
  };
  const at = tasks.findIndex((one) => one.id === cursor.value);
  return html`<section class=${`column${over.value === column.title ? " over" : ""}`} onDragOver=${(event) => mayChange.value && (event.preventDefault(), (over.value = column.title))}
    onDragLeave=${() => (over.value = null)} onDrop=${drop}>
    <h2>${column.title} <span class="count">${tasks.length.toLocaleString()}</span></h2>
    <${Windowed} items=${tasks} size=${SIZE} active=${at} class="stack" role="listbox" aria-label=${column.title} aria-activedescendant=${at < 0 ? undefined : `t-${cursor.value}`}>
      ${(one, index) => html`<div key=${one.id} id=${`t-${one.id}`} class=${`chip${cursor.value === one.id ? " here" : ""}`} role="option" aria-selected=${cursor.value === one.id ? "true" : "false"}
        aria-posinset=${index + 1} aria-setsize=${tasks.length} draggable=${mayChange.value ? "true" : "false"}
        onDragStart=${(event) => event.dataTransfer.setData("text/plain", one.id)} onClick=${() => go({ ...place.value, task: one.id }, { trail: false })}>
        <p class="t">${priorityMark(one) && html`<b aria-hidden="true" class=${`p-${one.priority}`}>${priorityMark(one)}</b> `}<${Text} of=${one.title} /><${Spoken} of=${one} waits /></p>
        <p class="facts"><${Mark} state=${stateOf(one)} /><span class="id">#${one.id}</span>${one.waits_for && html`<span class="waits" aria-hidden="true">waits for ${safe(gateOf(one))}</span>`}${one.owner && html`<${Text} class="owner" of=${ownerOf(one)} />`}</p>
      </div>`}
    <//>
  </section>`;
}
