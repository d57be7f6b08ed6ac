// The list as columns by state; a task is dragged to another column or moved by its keys.

import { html, signal } from "./vendor.js";
import { setStatus } from "./commands.js";
import { COLUMNS, columns, cursor, go, mayChange, place, priorityMark } from "./model.js";
import { gateOf, ownerOf, stateOf } from "./rows.js";
import { Mark, Spoken, Text, Windowed } from "./parts.js";
import { safe } from "./text.js";

const SIZE = 76;
const over = signal(null);

export function Flow() {
  return html`<div class="flow">${columns.value.map((tasks, at) =>
    html`<${Column} key=${at} column=${COLUMNS[at]} tasks=${tasks} />`)}</div>`;
}

function Column({ column, tasks }) {
  const drag = (event) => mayChange.value && (event.preventDefault(), (over.value = column.title));
  const drop = (event) => {
    event.preventDefault();
    over.value = null;
    setStatus(event.dataTransfer.getData("text/plain"), column.to);
  };
  const at = tasks.findIndex((one) => one.id === cursor.value);
  return html`<section class=${`column${over.value === column.title ? " over" : ""}`} onDragOver=${drag}
    onDragLeave=${() => (over.value = null)} onDrop=${drop}>
    <h2>${column.title} <span class="count">${tasks.length.toLocaleString()}</span></h2>
    <${Windowed} items=${tasks} size=${SIZE} active=${at} class="stack" role="listbox" aria-label=${column.title}
      aria-activedescendant=${at < 0 ? undefined : `t-${cursor.value}`}>
      ${(one, index) => html`<${Chip} key=${one.id} one=${one} index=${index} count=${tasks.length} />`}
    <//>
  </section>`;
}

function Chip({ one, index, count }) {
  const here = cursor.value === one.id;
  const sign = priorityMark(one);
  return html`<div id=${`t-${one.id}`} class=${`chip${here ? " here" : ""}`} role="option"
    aria-selected=${here ? "true" : "false"} aria-posinset=${index + 1} aria-setsize=${count}
    draggable=${mayChange.value ? "true" : "false"}
    onDragStart=${(event) => event.dataTransfer.setData("text/plain", one.id)}
    onClick=${() => go({ ...place.value, task: one.id }, { trail: false })}>
    <p class="t">${sign && html`<b aria-hidden="true" class=${`p-${one.priority}`}>${sign}</b> `}
      <${Text} of=${one.title} /><${Spoken} of=${one} waits /></p>
    <p class="facts"><${Mark} state=${stateOf(one)} /><span class="id">#${one.id}</span>
      ${one.waits_for && html`<span class="waits" aria-hidden="true">waits for ${safe(gateOf(one))}</span>`}
      ${one.owner && html`<${Text} class="owner" of=${ownerOf(one)} />`}</p>
  </div>`;
}
