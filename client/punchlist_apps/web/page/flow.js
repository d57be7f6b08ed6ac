// The list as columns by state. Dragging a task to a column sets its status.

import { html, signal } from "./vendor.js";
import { setStatus } from "./commands.js";
import { COLUMNS, columns, cursor, go, canChange, place, priorityMark } from "./model.js";
import { gateOf, ownerOf, stateOf } from "./rows.js";
import { Mark, Spoken, Text, Windowed } from "./parts.js";
import { safe } from "./text.js";

const CHIP_HEIGHT = 76;
const dropColumn = signal(null); // title of the column under a dragged task

export default function Flow() {
  return html`<div class="flow">${columns.value.map((tasks, at) =>
    html`<${Column} key=${at} column=${COLUMNS[at]} tasks=${tasks} />`)}</div>`;
}

function Column({ column, tasks }) {
  const drag = (event) => canChange.value && (event.preventDefault(), (dropColumn.value = column.title));
  const drop = (event) => {
    event.preventDefault();
    dropColumn.value = null;
    setStatus(event.dataTransfer.getData("text/plain"), column.to);
  };
  const at = tasks.findIndex((task) => task.id === cursor.value);
  return html`<section class=${`column${dropColumn.value === column.title ? " over" : ""}`} onDragOver=${drag}
    onDragLeave=${() => (dropColumn.value = null)} onDrop=${drop}>
    <h2>${column.title} <span class="count">${tasks.length.toLocaleString()}</span></h2>
    <${Windowed} items=${tasks} size=${CHIP_HEIGHT} active=${at} class="stack" role="listbox" aria-label=${column.title}
      aria-activedescendant=${at < 0 ? undefined : `t-${cursor.value}`}>
      ${(task, index) => html`<${Chip} key=${task.id} task=${task} index=${index} count=${tasks.length} />`}
    <//>
  </section>`;
}

function Chip({ task, index, count }) {
  const here = cursor.value === task.id;
  const sign = priorityMark(task);
  return html`<div id=${`t-${task.id}`} class=${`chip${here ? " here" : ""}`} role="option"
    aria-selected=${here ? "true" : "false"} aria-posinset=${index + 1} aria-setsize=${count}
    draggable=${canChange.value ? "true" : "false"}
    onDragStart=${(event) => event.dataTransfer.setData("text/plain", task.id)}
    onClick=${() => go({ ...place.value, task: task.id }, { trail: false })}>
    <p class="t">${sign && html`<b aria-hidden="true" class=${`p-${task.priority}`}>${sign}</b> `}
      <${Text} of=${task.title} /><${Spoken} of=${task} waits /></p>
    <p class="facts"><${Mark} state=${stateOf(task)} /><span class="id">#${task.id}</span>
      ${task.waits_for && html`<span class="waits" aria-hidden="true">waits for ${safe(gateOf(task))}</span>`}
      ${task.owner && html`<${Text} class="owner" of=${ownerOf(task)} />`}</p>
  </div>`;
}
