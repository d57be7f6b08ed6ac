// The screen of one list: its header, one of its views, and the details of a task.

import { html } from "./vendor.js";
import { Detail } from "./detail.js";
import { FilterField, Head } from "./frame.js";
import { lazy } from "./lazy.js";
import { run } from "./commands.js";
import {
  FILTERS, VIEWS, absent, canChange, card, currentTask, cursor, cursorIndex, filter, go, hashOf, isPast, labelWord,
  list, marks, nameOf, place, priorityMark, toggleWord, total, versions, visibleIds, visibleRows,
} from "./model.js";
import { isStripOpen } from "./past.js";
import { gateOf, isFinished, ownerOf, stateOf } from "./rows.js";
import { Bar, Key, Mark, Since, Spoken, Text, Times, Windowed } from "./parts.js";
import { plural, safe, sharedNote } from "./text.js";
import { GLYPHS } from "./words.js";

const ROW_HEIGHT = matchMedia("(pointer: coarse)").matches ? 48 : 40;
const VIEW_COMPONENTS = {
  list: Rows,
  flow: lazy(() => import("./flow.js")),
  graph: lazy(() => import("./graph.js")),
  timeline: lazy(() => import("./timeline.js"), "timeline"),
  history: lazy(() => import("./history.js"), "past"),
};
const Strip = lazy(() => import("./strip.js"), "past");
const Compare = lazy(() => import("./compare.js"), "past");
const Ready = lazy(() => import("./ready.js"));
const OWN_TOOLS = ["timeline", "history"]; // views with other tools than the filter

export function List() {
  const { name, view } = place.value;
  const isComparing = versions.value.from !== null;
  const View = isComparing ? Compare : VIEW_COMPONENTS[view];
  list.value; // rows change in place
  const rows = visibleRows.value;
  const isAbsent = absent.value || rows?.version === 0;
  return html`<div class=${`list-page v-${view}${isPast.value ? " past" : ""}${currentTask.value ? " has-task" : ""}`}>
    <${Header} name=${name} />
    <main id="main" class="panes">
      <div class="face" role="region" aria-label=${isComparing ? "Two versions" : VIEW_NAMES[view]}>
        ${isAbsent
          ? html`<${Absent} name=${name} />`
          : rows
            ? html`<${View} />`
            : html`<p class="hush" role="status">Opening…</p>`}</div>
      ${currentTask.value && html`<${Detail} />`}
    </main>
  </div>`;
}

const VIEW_NAMES = {
  list: "Tasks", flow: "Tasks by state", graph: "Dependencies", timeline: "Timeline", history: "What happened",
};
const VIEW_TITLES = { list: "List", flow: "Columns", graph: "Graph", timeline: "Timeline", history: "History" };

function Header({ name }) {
  list.value;
  const { counts, damaged, shared } = visibleRows.value ?? {};
  const { settings } = card.value ?? {};
  const isComparing = versions.value.from !== null;
  const isStopped = counts?.failed > 0 && settings?.on_failure === "stop";
  return html`<div class="head">
    <${Head} title=${card.value ? nameOf(card.value) : name}>
      ${counts && html`<span class="done">${counts.completed} of ${total(counts)}</span>`}
      ${damaged && html`<span class="pill bad" title=${safe(damaged.reason)}>incomplete: its log is damaged</span>`}
      ${shared && html`<span class="pill warn" role="status">${sharedNote(shared)}</span>`}
      ${isStopped && html`<span class="pill bad">stopped by a failure</span>`}
      ${settings?.execution === "serial" && html`<span class="pill">one at a time</span>`}
      ${counts && html`<${Bar} counts=${counts} />`}
      ${counts?.in_progress > 0 && !isPast.value && html`<${Ready} name=${name} />`}
      <${Views} />
    <//>
    ${isStripOpen.value && counts && html`<${Strip} key=${name} />`}
    ${!isComparing && !OWN_TOOLS.includes(place.value.view) && html`<div class="tools" role="search">
      <${Filters} /><${FilterField} of=${filter} label="Filter tasks" />
    </div>`}
  </div>`;
}

const Views = () => html`<nav class="segments" aria-label="Views">
  ${VIEWS.map((view) => html`<a key=${view} href=${hashOf({ ...place.value, view })}
    aria-current=${place.value.view === view ? "page" : undefined}
    onClick=${(event) => (event.preventDefault(), go({ ...place.value, view }))}>${VIEW_TITLES[view]}</a>`)}
</nav>`;

const Filters = () => html`<div class="filters" role="group" aria-label="Filters">
  ${FILTERS.map((name) => {
    const word = name === "all" ? "" : `is:${name}`;
    return html`<button key=${name} aria-pressed=${filter.value.trim() === word ? "true" : "false"}
      onClick=${() => (filter.value = word)}>${name}</button>`;
  })}
</div>`;

const Absent = ({ name }) => html`<div class="teach">
  <h2>The list <${Text} of=${name} /> does not exist</h2>
  <p>It appears here as soon as someone uses it.</p>
  ${canChange.value && html`<p><button class="primary" onClick=${() => run("add")}>Add the first task</button></p>`}
</div>`;

function Empty() {
  const count = visibleRows.value.tasks.size;
  if (count) return html`<div class="teach"><h2>No matching tasks</h2>
    <p>${plural(count, "task is", "tasks are")} hidden by <code>${safe(filter.value)}</code>.
      ${" "}<${Key} of="escape" /> clears it.</p>
    <p class="hush">Combine words to narrow it: <code>is:blocked</code> <code>@ann</code> <code>p:high</code>
      ${" "}<code>+label</code> <code>#4</code> or any text.</p></div>`;
  return html`<div class="teach"><h2>Nothing to do here${isPast.value ? " at that time" : ""}</h2>
    ${canChange.value && html`
      <p>Press <${Key} of="a" /> to add a task, or let an agent plan: its tasks appear here automatically.</p>
      <p class="hush">From a terminal: <code>punch -c ${safe(place.value.name)} add "Write the parser"</code></p>`}
  </div>`;
}

function Rows() {
  const ids = visibleIds.value;
  list.value; // rows change in place
  if (!visibleRows.value) return null; // while the list is being left
  if (!ids.length) return html`<${Empty} />`;
  const at = cursorIndex.value;
  const rows = visibleRows.value;
  const depth = rows.tree();
  return html`<${Windowed} items=${ids} size=${ROW_HEIGHT} active=${at} class="rows" role="listbox" aria-label="Tasks"
    aria-multiselectable="true" aria-activedescendant=${at < 0 ? undefined : `t-${cursor.value}`}>
    ${(id, index) => rows.tasks.has(id) && html`<${Row} key=${id} task=${rows.tasks.get(id)} depth=${depth.get(id)}
      index=${index} count=${ids.length} />`}
  <//>`;
}

const MAX_SHOWN = 3; // labels and blockers

/** The first labels of a row. They aren't buttons, since the options of a list box can't contain buttons. */
const Labels = ({ of }) => html`<span class="labels" aria-hidden="true">
  ${of.slice(0, MAX_SHOWN).map((label) => html`<span key=${label} class="label"
    onClick=${(event) => (event.stopPropagation(), toggleWord(labelWord(label)))}><${Text} of=${label} /></span>`)}
  ${of.length > MAX_SHOWN && html`<span class="hush">+${of.length - MAX_SHOWN}</span>`}</span>`;

function Row({ task, depth, index, count }) {
  const state = stateOf(task);
  const blockers = !isFinished(task) && task.open_blockers?.length ? task.open_blockers : null;
  const sign = priorityMark(task);
  const [here, marked] = [cursor.value === task.id, marks.value.has(task.id)];
  const open = ({ ctrlKey, metaKey }) =>
    ctrlKey || metaKey ? run("mark", task.id) : go({ ...place.value, task: task.id }, { trail: false });
  return html`<div id=${`t-${task.id}`} class=${`row r-${state}${here ? " here" : ""}${marked ? " marked" : ""}`}
    role="option" style=${{ height: `${ROW_HEIGHT}px` }} aria-selected=${here || marked ? "true" : "false"}
    aria-posinset=${index + 1} aria-setsize=${count} onClick=${open}>
    <span class="id">#${task.id}</span>
    <span class="stem" style=${{ width: `${Math.min(depth, 8) * 1.4}em` }}></span>
    <${Mark} state=${state} />
    <span class="what">
      ${sign && html`<b aria-hidden="true" class=${`p-${task.priority}`}>${sign}</b>`}
      <${Text} class="t" of=${task.title} /><${Spoken} of=${task} />
      ${state === "in_progress" && html`<span class="doing">
        ${task.active_form && html`<${Text} of=${task.active_form} /> ${GLYPHS.dot} `}
        <${Since} at=${task.status_changed_at} /></span>`}
      ${state === "failed" && task.fail_reason && html`<${Text} class="why" of=${task.fail_reason} />`}</span>
    ${!isFinished(task) && task.labels?.length > 0 && html`<${Labels} of=${task.labels} />`}
    <${Times} of=${task} />
    ${blockers && html`<span class="waits">
      <span aria-hidden="true">${GLYPHS.arrow} </span><span class="sr">waits for </span>
      ${blockers.slice(0, MAX_SHOWN).map((id) => `#${id}`).join(" ")}
      ${blockers.length > MAX_SHOWN && ` +${blockers.length - MAX_SHOWN}`}</span>`}
    ${task.waits_for && html`<span class="waits" aria-hidden="true">waits for ${safe(gateOf(task))}</span>`}
    ${task.owner && state !== "completed" && html`<${Text} class="owner" of=${ownerOf(task)} />`}
  </div>`;
}
