// The screen of one list: its header, one of its views, and the details of a task.

import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor.js";
import { Tools } from "./chips.js";
import { DropMark, rowDragging } from "./drag.js";
import { labelWord } from "./filter.js";
import { Head } from "./frame.js";
import { findGroup, foldGroup, grouping, groups, setFold, unfoldGroup } from "./groups.js";
import { lazy } from "./lazy.js";
import { addCommands, isAdding, run } from "./commands.js";
import {
  VIEWS, absent, canChange, card, currentTask, cursor, filter, go, hashOf, isPast, list, marks, nameOf, place,
  priorityMark, shape, toggleWord, total, versions, visibleRows,
} from "./model.js";
import { isStripOpen } from "./past.js";
import { MAX_FREED, departureOf, gateOf, isFinished, ownerOf, stateOf } from "./rows.js";
import { Badge, Bar, Key, Mark, Since, Spoken, Text, Times } from "./parts.js";
import { clock, plural, safe, sharedNote } from "./text.js";
import { GLYPHS } from "./words.js";

const Detail = lazy(() => import("./detail.js"), "late");
const Inline = lazy(() => import("./inline.js"), "late");
const VIEW_COMPONENTS = {
  list: Rows,
  flow: lazy(() => import("./flow.js"), "late"),
  graph: lazy(() => import("./graph.js"), "late"),
  timeline: lazy(() => import("./timeline.js"), "timeline"),
  history: lazy(() => import("./history.js"), "past"),
};
const Strip = lazy(() => import("./strip.js"), "past");
const Compare = lazy(() => import("./compare.js"), "past");
const Ready = lazy(() => import("./ready.js"));
const OWN_TOOLS = ["timeline", "history"]; // views with other tools than the filter

export default function List() {
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
            : html`<p class="hush" role="status">Opening…</p>`}
        ${isAdding.value && canChange.value && rows && html`<${Inline} />`}</div>
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
      ${counts && html`<${Bar} counts=${counts} waiting=${card.value?.waiting} />`}
      ${counts?.in_progress > 0 && !isPast.value && html`<${Ready} name=${name} />`}
      <${Views} />
    <//>
    ${isStripOpen.value && counts && html`<${Strip} key=${name} />`}
    ${!isComparing && !OWN_TOOLS.includes(place.value.view) && html`<${Tools} />`}
  </div>`;
}

const showView = (view) => go({ ...place.value, view });

/** The views as links, and on a phone as one select. */
const Views = () => html`<nav class="segments" aria-label="Views">
    ${VIEWS.map((view) => html`<a key=${view} href=${hashOf({ ...place.value, view })}
      aria-current=${place.value.view === view ? "page" : undefined}
      onClick=${(event) => (event.preventDefault(), showView(view))}>${VIEW_TITLES[view]}</a>`)}
  </nav>
  <select class="pick views" aria-label="View" onChange=${(event) => showView(event.currentTarget.value)}>
    ${VIEWS.map((view) => html`<option key=${view} value=${view} selected=${place.value.view === view}>
      ${VIEW_TITLES[view]}</option>`)}</select>`;

const Absent = ({ name }) => html`<div class="teach">
  <h2>The list <${Text} of=${name} /> does not exist</h2>
  <p>It appears here as soon as someone uses it.</p>
  ${canChange.value && html`<p><button class="primary" onClick=${() => run("add")}>Add the first task</button></p>`}
</div>`;

function Empty() {
  const count = visibleRows.value.tasks.size;
  if (count) return html`<div class="teach"><h2>No task fits</h2>
    <p>${plural(count, "task is", "tasks are")} hidden by <code>${safe(filter.value)}</code>.</p>
    <p><button onClick=${() => (filter.value = "")}>Clear <${Key} of="escape" /></button></p>
    <p class="hush">Combine words to narrow it: <code>is:blocked</code> <code>@ann</code> <code>p:high</code>
      ${" "}<code>+label</code> <code>#4</code> or any text.</p></div>`;
  return html`<div class="teach"><h2>Nothing to do here${isPast.value ? " at that time" : ""}</h2>
    ${canChange.value && html`
      <p>Press <${Key} of="a" /> to add a task, or let an agent plan: its tasks appear here automatically.</p>
      <p class="hush">From a terminal: <code>punch -c ${safe(place.value.name)} add "Write the parser"</code></p>`}
  </div>`;
}

// Rows. Their heights are those of list.css.

const isNarrow = matchMedia("(max-width: 700px)");
const roomy = matchMedia("(pointer: coarse), (max-width: 700px)");
const isRoomy = signal(roomy.matches);
roomy.addEventListener("change", () => (isRoomy.value = roomy.matches));
const EXTRA_ROWS = 6; // rendered above and below the visible ones

/** Return the groups with the position of their top and of their rows, and the index of their first row. */
function layOutGroups(all, headHeight, rowHeight) {
  let [y, index] = [0, 0];
  return all.map((group) => {
    const placed = { ...group, top: y, rowsTop: y + (group.title ? headHeight : 0), index };
    y = placed.bottom = placed.rowsTop + group.shown.length * rowHeight;
    index += group.shown.length;
    return placed;
  });
}

/**
 * The tasks in their groups, of which only the visible ones are rendered.
 *
 * When tasks move to other groups, the list scrolls so that the task at the cursor, or else the first visible one, stays
 * at its height.
 */
function Rows() {
  const all = groups.value;
  list.value; // rows change in place
  const box = useRef(null);
  const held = useRef(null); // { id, offset } of the task that keeps its height
  const [[top, height], setView] = useState([0, 800]);
  const [headHeight, rowHeight] = isRoomy.value ? [44, 56] : [32, 34];
  const placed = useMemo(() => layOutGroups(all, headHeight, rowHeight), [all, headHeight]);
  const isEmpty = !placed.length;

  const topsOf = (id) => placed.flatMap(({ shown, rowsTop }) => {
    const at = shown.indexOf(id);
    return at < 0 ? [] : [rowsTop + at * rowHeight];
  });
  const topOf = (id) => topsOf(id)[0] ?? null;
  const isVisible = (y) => y !== null && y > box.current.scrollTop - rowHeight &&
    y < box.current.scrollTop + box.current.clientHeight;
  const hold = () => {
    const { scrollTop } = box.current;
    const first = placed.find(({ bottom, shown }) => shown.length && bottom > scrollTop);
    const at = first && Math.max(0, Math.floor((scrollTop - first.rowsTop) / rowHeight));
    const id = isVisible(topOf(cursor.value)) ? cursor.value : scrollTop > 0 ? first?.shown[at] : null;
    held.current = id ? { id, offset: topOf(id) - scrollTop } : null;
  };
  const look = () => {
    const { scrollTop, clientHeight } = box.current;
    hold();
    if (Math.abs(scrollTop - top) >= rowHeight || clientHeight !== height) setView([scrollTop, clientHeight]);
  };
  const scrollTo = (y) => {
    box.current.scrollTop = y;
    look();
  };

  useLayoutEffect(() => {
    if (isEmpty) return;
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [isEmpty]);
  useLayoutEffect(() => {
    if (isEmpty) return;
    const { id, offset } = held.current ?? {};
    const group = placed.find(({ shown }) => shown.includes(id));
    // A task that is done isn't followed to the folded group.
    if (group && !group.isFolded && topOf(id) - offset !== box.current.scrollTop) scrollTo(topOf(id) - offset);
    hold();
  }, [placed]);
  useEffect(() => {
    const tops = isEmpty ? [] : topsOf(cursor.value);
    if (!tops.length || !box.current) return;
    const { scrollTop, clientHeight } = box.current;
    const last = placed.at(-1);
    const head = last.title ? headHeight : 0;
    const pinned = (y) => (last.isLast && y < last.top ? headHeight : 0);
    const isAbove = (y) => y < scrollTop + head;
    const isBelow = (y) => y + rowHeight > scrollTop + clientHeight - pinned(y);
    if (tops.some((y) => !isAbove(y) && !isBelow(y))) return;
    const [y] = tops;
    scrollTo(isAbove(y) ? y - head : y + rowHeight + pinned(y) - clientHeight);
  }, [cursor.value, isEmpty]);

  if (isEmpty) return html`<${Empty} />`;
  const [from, to] = [top - EXTRA_ROWS * rowHeight, top + height + EXTRA_ROWS * rowHeight];
  const last = placed.at(-1);
  const count = last.index + last.shown.length;
  return html`<${DropMark} /><div ref=${box} class=${`rows by-${grouping.value}`} role="listbox" aria-label="Tasks" tabindex="0"
    aria-multiselectable="true" aria-activedescendant=${topOf(cursor.value) === null ? undefined : `t-${cursor.value}`}
    onScroll=${look} ...${rowDragging}>
    <div class="all" role="presentation" style=${{ height: `${last.bottom}px` }}>
      ${placed.filter((group) => group.bottom > from && group.top < to).map((group) =>
        html`<${Group} key=${group.key} group=${group} from=${from} to=${to} rowHeight=${rowHeight} count=${count} />`)}
      ${last.isLast && html`<div role="presentation" style=${{ height: `${last.top}px` }}></div>
        <${GroupHead} group=${last} />`}
    </div>
  </div>`;
}

/** The head of a group and those of its rows that lie between two heights. */
function Group({ group, from, to, rowHeight, count }) {
  list.value; // rows change in place
  const rows = visibleRows.value;
  const first = Math.max(0, Math.floor((from - group.rowsTop) / rowHeight));
  const shown = group.shown.slice(first, Math.max(0, Math.ceil((to - group.rowsTop) / rowHeight)));
  const label = group.title && `${safe(group.title)}, ${group.ids.length}${group.isFolded ? ", folded" : ""}`;
  return html`<div class="group" role=${label ? "group" : "presentation"} aria-label=${label || undefined}
    style=${{ top: `${group.top}px`, height: `${group.bottom - group.top}px` }}>
    ${group.title && !group.isLast && html`<${GroupHead} group=${group} />`}
    <div class="some" role="presentation" style=${{ top: `${group.rowsTop - group.top + first * rowHeight}px` }}>
      ${shown.map((id, at) => rows.tasks.has(id) && html`<${Row} key=${id} task=${rows.tasks.get(id)}
        depth=${group.depth?.get(id) ?? 0} index=${group.index + first + at} count=${count}
        isCopy=${group.label !== undefined && findGroup(id).key !== group.key} />`)}</div>
  </div>`;
}

const GroupHead = ({ group }) => html`<div
  class=${`group-head${group.state ? ` g-${group.state}` : ""}${group.isLast ? " last" : ""}`}
  onClick=${() => setFold(group, !group.isFolded)}>
  <span class="fold" aria-hidden="true">${group.isFolded ? "▸" : "▾"}</span>
  ${group.owner && html`<${Badge} of=${group.owner} size="small" />`}
  <${Text} class="cut" of=${group.title} />
  <span class="count">${group.ids.length.toLocaleString()}
    ${group.newest && `, the newest ${clock(group.newest)}`}</span></div>`;

const MAX_SHOWN = 3; // labels and blockers

/** The first labels of a row. They aren't buttons, since the options of a list box can't contain buttons. */
export const Labels = ({ of }) => html`<span class="labels" aria-hidden="true">
  ${of.slice(0, MAX_SHOWN).map((label) => html`<span key=${label} class="label"
    onClick=${(event) => (event.stopPropagation(), toggleWord(labelWord(label)))}><${Text} of=${label} /></span>`)}
  ${of.length > MAX_SHOWN && html`<span class="hush">+${of.length - MAX_SHOWN}</span>`}</span>`;

const REASONS = {
  in_progress: (task) => ["doing", task.active_form],
  failed: (task) => ["why", task.fail_reason],
  asks: (task) => ["asks", `waits for ${gateOf(task)}`],
  paused: (task) => task.waits_for && ["waits", `waits for ${gateOf(task)}`],
  pending: (task) => shape.value && visibleRows.value.hasOpenParts(task) && ["waits", "holds open tasks"],
};

/** What a task does, why it failed, or whom it waits for. */
export function Reason({ of: task }) {
  const [name, text] = REASONS[stateOf(task)]?.(task) || [];
  return text && html`<${Text} class=${`reason ${name}`} of=${text} />`;
}

/** Return the unfinished blockers of an unfinished task as text. */
export function formatBlockers(task) {
  const ids = isFinished(task) ? [] : task.open_blockers ?? [];
  const more = ids.length > MAX_SHOWN ? ` +${ids.length - MAX_SHOWN}` : "";
  return ids.slice(0, MAX_SHOWN).map((id) => `#${id}`).join(" ") + more;
}

/** The title of the task that a task is part of, as a prefix where the list isn't a tree. */
function Parent({ of: task }) {
  list.value; // its title may change
  const parent = visibleRows.value.tasks.get(task.parent);
  return parent && html`<span class="parent"><${Text} of=${parent.title} /> › </span>`;
}

function Row({ task, depth, index, count, isCopy }) {
  shape.value; // for the number of tasks that it frees
  const state = stateOf(task);
  const sign = priorityMark(task);
  const blockers = formatBlockers(task);
  const freed = task.status !== "completed" && visibleRows.value.freesOf(task.id);
  const gone = departureOf(task);
  const [here, marked] = [cursor.value === task.id, marks.value.has(task.id)];
  const isOpening = () => isNarrow.matches && !cursor.value; // The details cover the list, and going back shows it.
  const open = ({ ctrlKey, metaKey }) =>
    ctrlKey || metaKey ? run("mark", task.id) : go({ ...place.value, task: here ? null : task.id }, { trail: isOpening() });
  return html`<div id=${isCopy ? undefined : `t-${task.id}`} role="option" onClick=${open}
    class=${`row r-${state}${here ? " here" : ""}${marked ? " marked" : ""}`}
    aria-selected=${here || marked ? "true" : "false"} aria-posinset=${index + 1} aria-setsize=${count}>
    <span class="grip" aria-hidden="true"></span>
    <span class="id">#${task.id}</span>
    <${Mark} state=${state} />
    <b aria-hidden="true" class=${`sign p-${task.priority}`}>${sign}</b>
    <span class="what" style=${depth ? { paddingLeft: `${Math.min(depth, 8) * 1.4}em` } : undefined}>
      ${task.parent && grouping.value !== "parent" && html`<${Parent} of=${task} />`}<${Text} class="t" of=${task.title} /><${Spoken} of=${task} /><${Reason} of=${task} />
      ${blockers && html`<span class="reason waits narrow" aria-hidden="true">waits for ${blockers}</span>`}</span>
    <span class="facts">
      ${!isFinished(task) && task.labels?.length > 0 && html`<${Labels} of=${task.labels} />`}
      ${freed > 0 && html`<span class="hush">frees ${freed}${freed === MAX_FREED && "+"}</span>`}
      ${blockers && html`<span class="waits"><span aria-hidden="true">${GLYPHS.arrow} </span>
        <span class="sr">waits for </span>${blockers}</span>`}
      <${Times} of=${task} /></span>
    <span class=${`held-by${gone ? " gone" : ""}`} title=${gone || undefined}>${task.owner && html`
      <${Badge} of=${task.owner} size="small" /><${Text} class="owner" of=${ownerOf(task).slice(1)} />`}</span>
    <span class="age"><${Since} at=${task.status_changed_at} /></span>
  </div>`;
}

addCommands("list/list", { left: { run: foldGroup }, right: { run: unfoldGroup } });
