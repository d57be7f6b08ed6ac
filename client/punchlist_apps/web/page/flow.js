// The list as columns by state. Dragging a task to a column sets its status.

import { html, signal } from "./vendor.js";
import { addCommands, setStatus } from "./commands.js";
import { canChange, columns, cursor, go, place, priorityMark } from "./model.js";
import { Labels, Reason, formatBlockers } from "./list.js";
import { isFinished, ownerOf, stateOf } from "./rows.js";
import { Badge, Mark, Since, Spoken, Text, Times, Windowed } from "./parts.js";

const CARD_HEIGHT = 100; // with its margin; see flow.css
const dropColumn = signal(null); // title of the column under a dragged task
const openTask = (id) => go({ ...place.value, task: id }, { trail: false });

export default function Flow() {
  return html`<div class="flow">${columns.value.map((column) =>
    html`<${Column} key=${column.title} column=${column} />`)}</div>`;
}

function Column({ column: { title, to, tasks } }) {
  const drag = (event) => canChange.value && to && (event.preventDefault(), (dropColumn.value = title));
  const drop = (event) => {
    event.preventDefault();
    dropColumn.value = null;
    setStatus(event.dataTransfer.getData("text/plain"), to);
  };
  const at = tasks.findIndex((task) => task.id === cursor.value);
  return html`<section class=${`column${dropColumn.value === title ? " over" : ""}`} onDragOver=${drag}
    onDragLeave=${() => (dropColumn.value = null)} onDrop=${drop}>
    <h2>${title} <span class="count">${tasks.length.toLocaleString()}</span></h2>
    <${Windowed} items=${tasks} size=${CARD_HEIGHT} active=${at} class="stack" role="listbox" aria-label=${title}
      aria-activedescendant=${at < 0 ? undefined : `t-${cursor.value}`}>
      ${(task, index) => html`<${Chip} key=${task.id} task=${task} index=${index} count=${tasks.length} />`}
    <//>
  </section>`;
}

function Chip({ task, index, count }) {
  const here = cursor.value === task.id;
  const sign = priorityMark(task);
  const blockers = formatBlockers(task);
  return html`<div id=${`t-${task.id}`} class=${`chip${here ? " here" : ""}`} role="option"
    aria-selected=${here ? "true" : "false"} aria-posinset=${index + 1} aria-setsize=${count}
    draggable=${canChange.value ? "true" : "false"}
    onDragStart=${(event) => event.dataTransfer.setData("text/plain", task.id)}
    onClick=${() => openTask(task.id)}>
    <p class="t">${sign && html`<b aria-hidden="true" class=${`p-${task.priority}`}>${sign}</b> `}
      <${Text} of=${task.title} /><${Spoken} of=${task} waits /></p>
    <p class="facts"><${Reason} of=${task} />
      ${blockers && html`<span class="waits" aria-hidden="true">waits for ${blockers}</span>`}
      ${!isFinished(task) && task.labels?.length > 0 && html`<${Labels} of=${task.labels} />`}</p>
    <p class="facts"><${Mark} state=${stateOf(task)} /><span class="id">#${task.id}</span><${Times} of=${task} />
      ${task.owner && html`<span class="held-by"><${Badge} of=${task.owner} size="small" />
        <${Text} class="owner" of=${ownerOf(task).slice(1)} /></span>`}
      <span class="age"><${Since} at=${task.status_changed_at} /></span></p>
  </div>`;
}

/** Move the cursor to the task at the same height in the next column that has tasks. */
const buildColumnStep = (step) => () => {
  const filled = columns.value.map(({ tasks }) => tasks).filter((tasks) => tasks.length);
  const at = filled.findIndex((tasks) => tasks.some((task) => task.id === cursor.value));
  const row = Math.max(0, filled[at]?.findIndex((task) => task.id === cursor.value) ?? 0);
  const next = filled[at < 0 ? 0 : at + step];
  if (next) openTask(next[Math.min(row, next.length - 1)].id);
};

addCommands("list/flow", { left: { run: buildColumnStep(-1) }, right: { run: buildColumnStep(1) } });
