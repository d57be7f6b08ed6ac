// The details of one task: its members, dependencies, actions and activity.

import { html, signal } from "./vendor.js";
import { run } from "./commands.js";
import { lazy } from "./lazy.js";
import { go, list, canChange, now, place, visibleRows, currentTask, explanation } from "./model.js";
import { InPlace, editing } from "./inplace.js";
import { formatDuration } from "./members.js";
import { gateOf, isDeferred, isFinished, ownerOf, stateOf } from "./rows.js";
import { Badge, Key, Label, Mark, Since, TaskLink, Text, Times, WORDS, wordsOf } from "./parts.js";
import { Prose } from "./prose.js";
import { clock, dayText, isWebAddress, safe, since } from "./text.js";

/** Return whether a task can be started now. */
const canStart = (task) =>
  ["pending", "paused"].includes(task.status) && task.waits_for !== "yes" && !task.open_blockers?.length &&
  !isDeferred(task) && (task.status === "paused" || !visibleRows.value.hasOpenParts(task));

const ACTIONS = [
  ["approve", "Approve", "y", (task) => task.waits_for === "yes"],
  ["reject", "Reject", "n", (task) => task.waits_for === "yes"],
  ["start", "Start", "s", canStart],
  ["done", "Done", "d", (task) => task.status === "in_progress"],
  ["fail", "Failed", "f", (task) => task.status === "in_progress"],
  ["pause", "Pause", "p", (task) => ["pending", "in_progress"].includes(task.status)],
  ["reopen", "Reopen", "r", (task) => isFinished(task)],
  ["note", "Note", "m", () => true],
  ["edit_all", "Edit", "E", () => true],
  ["delete", "Delete", "x", () => true],
];
const Activity = lazy(() => import("./activity.js"), "past");
const isActivityOpen = signal(false);
const openTask = (id) => go({ ...place.value, task: id }, { trail: false });

const WIDTH_KEY = "punchlist.detail-width";
const MIN_WIDTH = 320, MAX_WIDTH = 640, STEP = 20;
const width = signal(Number(localStorage.getItem(WIDTH_KEY)) || 400);

function setWidth(pixels) {
  width.value = Math.round(Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, pixels)));
  localStorage.setItem(WIDTH_KEY, width.value);
}

/** The left edge of the details, which sets their width by a drag or by the arrow keys. */
function Handle() {
  const drag = (event) => event.buttons === 1 && setWidth(document.documentElement.clientWidth - event.clientX);
  const press = (event) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (step) event.preventDefault(), event.stopPropagation(), setWidth(width.value + step);
  };
  return html`<div class="detail-edge" role="separator" aria-orientation="vertical" aria-label="Width of the details"
    aria-valuenow=${width.value} aria-valuemin=${MIN_WIDTH} aria-valuemax=${MAX_WIDTH} tabindex="0"
    onPointerDown=${(event) => event.currentTarget.setPointerCapture(event.pointerId)} onPointerMove=${drag}
    onKeyDown=${press}></div>`;
}

const close = () => openTask(null);
const CLOSING_DISTANCE = 90; // pixels of a swipe down that closes the details on a phone
let swipeStart = 0;
const swipe = {
  onTouchStart: (event) => (swipeStart = event.touches[0].clientY),
  onTouchEnd: (event) => event.changedTouches[0].clientY - swipeStart > CLOSING_DISTANCE && close(),
};

export default function Detail() {
  list.value; // rows change in place
  const task = currentTask.value;
  if (!task) return null; // while the list is being left
  const state = stateOf(task);
  const { tasks } = visibleRows.value;
  const getTasks = (ids) => (ids ?? []).map((id) => tasks.get(id)).filter(Boolean);
  const blockers = getTasks(task.blocked_by);
  const blocked = getTasks(task.blocks);
  const children = visibleRows.value.childrenOf(task.id);
  const freed = blocked.filter((other) => other.open_blockers?.length === 1 && !isFinished(other));
  const freesNote = freed.length && !isFinished(task) ? `done frees ${freed.length} of ${blocked.length}` : "";
  return html`<aside class="detail" aria-label=${`Task ${task.id}`} tabindex="0"
    style=${{ "--detail-width": `${width.value}px` }}>
    <${Handle} />
    <div class="top" ...${swipe}>
      <span class=${`pill s-${task.waits_for === "yes" ? "asks" : state}`}><${Mark} state=${state} />
        ${task.waits_for ? `waits for ${safe(gateOf(task))}` : wordsOf(task)}</span>
      <span class="id">#${task.id}</span>
      ${task.priority !== "normal" && html`<span class=${`p-${task.priority}`}>${task.priority}</span>`}
      <${Times} of=${task} />
      <span class="room"></span>
      <button class="close" aria-label="Close the details" onClick=${close}>×</button>
    </div>
    <${InPlace} task=${task} member="title" label="title"><h2><${Text} of=${task.title} /></h2><//>
    ${state === "in_progress" && html`<p class="doing">
      ${task.active_form && html`<${Text} of=${task.active_form} /> · `}
      ${"for "}<${Since} at=${task.status_changed_at} /></p>`}
    ${task.waits_for && html`<${Question} of=${task} freed=${freed} />`}
    ${canChange.value && html`<${Actions} of=${task} />`}
    ${explanation.value?.task === task.id && html`<${Explanation} of=${explanation.value} />`}
    ${task.fail_reason && html`<${Note} title="Reason" class="bad" text=${task.fail_reason} />`}
    ${task.result_summary && html`<${Note} title="Result" text=${task.result_summary} />`}
    ${(task.description || editing.value === `${task.id} description`) && html`<h3>Description</h3>
      <${InPlace} task=${task} member="description" label="description" kind="long">
        <${Prose} of=${task.description ?? ""} /><//>`}
    ${task.parent && tasks.get(task.parent) && html`<${Links} title="Part of" tasks=${[tasks.get(task.parent)]} />`}
    ${children.length > 0 && html`<${Links} title="Parts" tasks=${children} />`}
    ${blockers.length > 0 && html`<${Links} title="Waits for" tasks=${blockers} />`}
    ${canChange.value && !isFinished(task) && html`<button class="text" onClick=${() => run("blockers")}>
      ${blockers.length ? "Change" : "Add"} what it waits for <${Key} of="b" /></button>`}
    ${blocked.length > 0 && html`<${Links} title="Frees" note=${freesNote} tasks=${blocked} />`}
    ${task.links?.length > 0 && html`<div class="links"><h3>Links</h3>
      ${task.links.map((link) => html`<${Link} key=${link.kind + link.to} link=${link} />`)}</div>`}
    <${Facts} of=${task} />
    ${task.notes?.length > 0 && html`<div class="links"><h3>Notes</h3>
      ${task.notes.map((note) => html`<${Comment} key=${note.version} note=${note} />`)}</div>`}
    <details class="activity" open=${isActivityOpen.value}
      onToggle=${(event) => (isActivityOpen.value = event.currentTarget.open)}>
      <summary>Activity</summary>
      ${isActivityOpen.value && html`<${Activity} task=${task.id} />`}
    </details>
    <p class="hush">added ${clock(task.created_at)} · changed ${clock(task.updated_at)} · version ${task.version}</p>
  </aside>`;
}

/** What a completed task waits for at its gate, and what the answer frees. */
function Question({ of: task, freed }) {
  const ids = freed.slice(0, 5).map(({ id }) => `#${id}`).join(", ");
  const isYours = task.waits_for === "yes";
  return html`<p class="question">
    ${task.owner && html`<${Text} of=${task.owner} /> completed it ${since(now.value - task.status_changed_at)} ago. `}
    Done, and waits for ${safe(gateOf(task))}.${ids && ` ${isYours ? "The yes" : "Passing it"} frees ${ids}.`}</p>`;
}

/** The members of a task that are neither text nor links to other tasks. */
function Facts({ of: task }) {
  const facts = [
    task.owner && ["Owner", html`<${Badge} of=${task.owner} /> <${Text} of=${ownerOf(task).slice(1)} />`],
    task.labels?.length > 0 && ["Labels", html`<span class="labels">
      ${task.labels.map((label) => html`<${Label} key=${label} of=${label} />`)}</span>`],
    task.spent_ms > 0 && ["Took", since(task.spent_ms)],
    task.estimate_ms > 0 && ["Estimate", formatDuration(task.estimate_ms)],
    task.attempts > 1 && ["Attempts", task.attempts],
    ...listMetadata(task).map(([key, value]) =>
      [safe(key), safe(typeof value === "string" ? value : JSON.stringify(value))]),
  ].filter(Boolean);
  return facts.length > 0 && html`<h3>Facts</h3><dl class="meta">${facts.map(([name, value]) =>
    html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Return the metadata without importers' hashes. */
const listMetadata = (task) => Object.entries(task.metadata ?? {}).filter(([key]) => key !== "imported");

const Actions = ({ of: task }) => html`<div class="actions">
  ${ACTIONS.filter(([, , , applies]) => applies(task)).map(([name, label, key]) => html`<button key=${name}
    class=${{ approve: "primary", delete: "quiet" }[name] ?? ""} onClick=${() => run(name)}>
    ${label} <${Key} of=${key} /></button>`)}
</div>`;

const Note = ({ title, text, class: name = "" }) => html`<div class=${`note ${name}`}>
  <h3>${title}</h3><${Prose} of=${text} /></div>`;

const Comment = ({ note }) => html`<div class="note">
  <p class="hush"><${Text} of=${note.actor} />
    ${note.imported_by && ` (imported by ${safe(note.imported_by)})`} · ${clock(note.at)}</p>
  <${Prose} of=${note.text} /></div>`;

/** A task's link, shown as a link to a task of this list or to a web page, or else as text to copy. */
export function Link({ link: { kind, to } }) {
  const other = ["discovered-from", "relates-to"].includes(kind) && visibleRows.value.tasks.get(to);
  const label = html`<${Text} of=${to} />`;
  return html`<div class="lead"><span class="hush">${safe(kind)}</span>
    ${other
      ? html`<${TaskLink} task=${other} onOpen=${openTask} />`
      : isWebAddress(to)
        ? html`<a href=${to} target="_blank" rel="noopener noreferrer">${label}</a>`
        : html`<code>${label}</code>`}</div>`;
}

const MAX_LINKS = 60;

const Links = ({ title, note, tasks }) => html`<div class="links">
  <h3>${title}${note && html` <span class="hush">${note}</span>`}</h3>
  ${tasks.slice(0, MAX_LINKS).map((task) => html`<${TaskLink} key=${task.id} task=${task} onOpen=${openTask} />`)}
  ${tasks.length > MAX_LINKS && html`<p class="hush">and ${tasks.length - MAX_LINKS} more</p>`}
</div>`;

const REASONS = {
  stopped: () => "the list stops at failures, and it failed:",
  serial: () => "the list runs one task at a time, and this is in progress:",
  blocker: () => "waits for",
  parent: () => "its parent is on hold:",
  reserved: (reason) => `it is reserved for @${safe(reason.owner)}:`,
  child: () => "has an open task:",
  heading: () => "it only holds the tasks below it:",
  deferred: (reason) => `not before ${dayText(reason, "not_before")}:`,
};

const Explanation = ({ of: { startable, reasons } }) => html`<div class="note" role="status">
  <h3>${startable && !reasons.length ? "It can be started" : "Why it can't start"}</h3>
  <ul class="reasons">${reasons.map((reason, at) => html`<${Reason} key=${at} reason=${reason} />`)}</ul>
</div>`;

function Reason({ reason }) {
  const { kind, status, by, title, owner, depth = 0 } = reason;
  const format = REASONS[kind] ?? (() => `it is ${WORDS[status]}:`);
  return html`<li style=${{ marginLeft: `${depth * 1.1}em` }}>
    ${format(reason)} <button class="text" onClick=${() => openTask(by)}>#${by}</button> <${Text} of=${title} />
    <span class="hush"> ${WORDS[status]}${owner ? ` · @${safe(owner)}` : ""}</span></li>`;
}
