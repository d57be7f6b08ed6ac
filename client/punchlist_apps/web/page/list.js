// One list: its head, its rows, and around them detail, flow, graph and history.

import { html } from "./vendor.js";
import { Detail } from "./detail.js";
import { Flow } from "./flow.js";
import { Graph } from "./graph.js";
import { History, TimeBar } from "./history.js";
import { run } from "./commands.js";
import { session } from "./link.js";
import {
  FILTERS, VIEWS, absent, card, cursor, cursorAt, filter, go, hashOf, isPast, labelWord, list, marks, mayChange, nameOf,
  place, priorityMark, shownIds, shownRows, task, toggleWord, total,
} from "./model.js";
import { gateOf, isFinished, ownerOf, stateOf } from "./rows.js";
import { Bar, Key, Mark, Since, Spoken, Text, Times, Windowed } from "./parts.js";
import { plural, safe, sharedNote } from "./text.js";
import { GLYPHS } from "./words.js";

const ROW = matchMedia("(pointer: coarse)").matches ? 48 : 40;
const FACES = { list: Rows, flow: Flow, graph: Graph, history: History };

export function List() {
  const { name, view } = place.value;
  const Face = FACES[view];
  list.value; // rows change in place
  const found = shownRows.value;
  const isAbsent = absent.value || found?.version === 0;
  return html`<div class=${`list-page v-${view}${isPast.value ? " past" : ""}${task.value ? " has-task" : ""}`}>
    <${Head} name=${name} />
    <main id="main" class="panes">
      <div class="face" role="region" aria-label=${VIEW_NAMES[view]}>
        ${isAbsent
          ? html`<${Absent} name=${name} />`
          : found
            ? html`<${Face} />`
            : html`<p class="hush" role="status">Opening…</p>`}</div>
      ${task.value && html`<${Detail} />`}
    </main>
  </div>`;
}

const VIEW_NAMES = { list: "Tasks", flow: "Tasks by state", graph: "What waits for what", history: "What happened" };

function Head({ name }) {
  list.value;
  const { counts, damaged, shared } = shownRows.value ?? {};
  const { settings } = card.value ?? {};
  const isStopped = counts?.failed > 0 && settings?.on_failure === "stop";
  const goHome = (event) => (event.preventDefault(), run("home"));
  return html`<div class="head" role="region" aria-label="The list">
    <div class="title">
      ${!session.value.scope.list && html`<a class="back" href="#/" aria-label="Back to the board"
        onClick=${goHome}>←</a>`}
      <h1><${Text} of=${card.value ? nameOf(card.value) : name} /></h1>
      ${counts && html`<span class="done">${counts.completed} of ${total(counts)}</span>`}
      ${damaged && html`<span class="pill bad" title=${safe(damaged.reason)}>not whole: its log is damaged</span>`}
      ${shared && html`<span class="pill warn" role="status">${sharedNote(shared)}</span>`}
      ${isStopped && html`<span class="pill bad">stopped by a failure</span>`}
      ${settings?.execution === "serial" && html`<span class="pill">one at a time</span>`}
    </div>
    ${counts && html`<${Bar} counts=${counts} />`}
    <div class="tools">
      <${Views} /><${Filters} />
      <span class="room"></span>
      <${TimeBar} />
      ${mayChange.value && html`<button class="primary" onClick=${() => run("add")}>Add</button>`}
    </div>
  </div>`;
}

const Views = () => html`<nav class="segments" aria-label="Views">
  ${VIEWS.map((view) => html`<a key=${view} href=${hashOf({ ...place.value, view })}
    aria-current=${place.value.view === view ? "page" : undefined}
    onClick=${(event) => (event.preventDefault(), go({ ...place.value, view }))}>${view}</a>`)}
</nav>`;

const Filters = () => html`<div class="filters" role="group" aria-label="Filters">
  ${FILTERS.map((one) => {
    const word = one === "all" ? "" : `is:${one}`;
    return html`<button key=${one} aria-pressed=${filter.value.trim() === word ? "true" : "false"}
      onClick=${() => (filter.value = word)}>${one}</button>`;
  })}
</div>`;

const Absent = ({ name }) => html`<div class="teach">
  <h2>There is no list <${Text} of=${name} /></h2>
  <p>It appears here as soon as somebody uses it.</p>
  ${mayChange.value && html`<p><button class="primary" onClick=${() => run("add")}>Begin it with a task</button></p>`}
</div>`;

function Empty() {
  const all = shownRows.value.tasks.size;
  if (all) return html`<div class="teach"><h2>No task fits</h2>
    <p>${plural(all, "task is", "tasks are")} hidden by <code>${safe(filter.value)}</code>.
      ${" "}<${Key} of="escape" /> clears it.</p>
    <p class="hush">Words narrow it together: <code>is:blocked</code> <code>@ann</code> <code>p:high</code>
      ${" "}<code>+label</code> <code>#4</code> or any text.</p></div>`;
  return html`<div class="teach"><h2>Nothing to do here${isPast.value ? " at that time" : ""}</h2>
    ${mayChange.value && html`
      <p>Press <${Key} of="a" /> to add a task, or let an agent plan: what it does appears here by itself.</p>
      <p class="hush">From a terminal: <code>punch -c ${safe(place.value.name)} add "Write the parser"</code></p>`}
  </div>`;
}

function Rows() {
  const ids = shownIds.value;
  list.value; // rows change in place
  if (!shownRows.value) return null; // the list is being left
  if (!ids.length) return html`<${Empty} />`;
  const at = cursorAt.value;
  const found = shownRows.value;
  const depth = found.tree();
  return html`<${Windowed} items=${ids} size=${ROW} active=${at} class="rows" role="listbox" aria-label="Tasks"
    aria-multiselectable="true" aria-activedescendant=${at < 0 ? undefined : `t-${cursor.value}`}>
    ${(id, index) => found.tasks.has(id) && html`<${Row} key=${id} one=${found.tasks.get(id)} depth=${depth.get(id)}
      index=${index} count=${ids.length} />`}
  <//>`;
}

const FEW = 3;

/** The first labels of a row; the row is an option of a list box, which holds no buttons. */
const Labels = ({ of }) => html`<span class="labels" aria-hidden="true">
  ${of.slice(0, FEW).map((label) => html`<span key=${label} class="label"
    onClick=${(event) => (event.stopPropagation(), toggleWord(labelWord(label)))}><${Text} of=${label} /></span>`)}
  ${of.length > FEW && html`<span class="hush">+${of.length - FEW}</span>`}</span>`;

function Row({ one, depth, index, count }) {
  const state = stateOf(one);
  const waits = !isFinished(one) && one.open_blockers?.length ? one.open_blockers : null;
  const sign = priorityMark(one);
  const [here, marked] = [cursor.value === one.id, marks.value.has(one.id)];
  const open = ({ ctrlKey, metaKey }) =>
    ctrlKey || metaKey ? run("mark", one.id) : go({ ...place.value, task: one.id }, { trail: false });
  return html`<div id=${`t-${one.id}`} class=${`row r-${state}${here ? " here" : ""}${marked ? " marked" : ""}`}
    role="option" style=${{ height: `${ROW}px` }} aria-selected=${here || marked ? "true" : "false"}
    aria-posinset=${index + 1} aria-setsize=${count} onClick=${open}>
    <span class="id">#${one.id}</span>
    <span class="stem" style=${{ width: `${Math.min(depth, 8) * 1.4}em` }}></span>
    <${Mark} state=${state} />
    <span class="what">
      ${sign && html`<b aria-hidden="true" class=${`p-${one.priority}`}>${sign}</b>`}
      <${Text} class="t" of=${one.title} /><${Spoken} of=${one} />
      ${state === "in_progress" && html`<span class="doing">
        ${one.active_form && html`<${Text} of=${one.active_form} /> ${GLYPHS.dot} `}
        <${Since} at=${one.status_changed_at} /></span>`}
      ${state === "failed" && one.fail_reason && html`<${Text} class="why" of=${one.fail_reason} />`}</span>
    ${!isFinished(one) && one.labels?.length > 0 && html`<${Labels} of=${one.labels} />`}
    <${Times} of=${one} />
    ${waits && html`<span class="waits">
      <span aria-hidden="true">${GLYPHS.arrow} </span><span class="sr">waits for </span>
      ${waits.slice(0, FEW).map((id) => `#${id}`).join(" ")}
      ${waits.length > FEW && ` +${waits.length - FEW}`}</span>`}
    ${one.waits_for && html`<span class="waits" aria-hidden="true">waits for ${safe(gateOf(one))}</span>`}
    ${one.owner && state !== "completed" && html`<${Text} class="owner" of=${ownerOf(one)} />`}
  </div>`;
}
