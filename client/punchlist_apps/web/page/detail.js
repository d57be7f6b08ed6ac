// The details of one task: its members, dependencies, actions and activity.

import { html, signal } from "./vendor.js";
import { run } from "./commands.js";
import { Story, findTaskEvents } from "./history.js";
import { go, list, canChange, place, visibleRows, currentTask, explanation } from "./model.js";
import { formatDuration, isWebAddress } from "./members.js";
import { gateOf, isDeferred, isFinished, ownerOf, stateOf } from "./rows.js";
import { Key, Label, Mark, Since, TaskLink, Text, Times, WORDS, wordsOf } from "./parts.js";
import { clock, dayText, safe, safeBlock } from "./text.js";

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
  ["edit", "Edit", "e", () => true],
  ["delete", "Delete", "x", () => true],
];
const isActivityOpen = signal(false);
const openTask = (id) => go({ ...place.value, task: id }, { trail: false });

export function Detail() {
  list.value; // rows change in place
  const task = currentTask.value;
  if (!task) return null; // while the list is being left
  const state = stateOf(task);
  const { tasks } = visibleRows.value;
  const getTasks = (ids) => (ids ?? []).map((id) => tasks.get(id)).filter(Boolean);
  const blockers = getTasks(task.blocked_by);
  const blocked = getTasks(task.blocks);
  const children = visibleRows.value.childrenOf(task.id);
  const freed = blocked.filter((other) => other.open_blockers?.length === 1 && !isFinished(other)).length;
  const freesNote = freed && !isFinished(task) ? `done frees ${freed} of ${blocked.length}` : "";
  const metadata = listMetadata(task);
  return html`<aside class="detail" aria-label=${`Task ${task.id}`} tabindex="0">
    <div class="top">
      <button class="close" aria-label="Close" onClick=${() => openTask(null)}>×</button>
      <span class=${`pill s-${state}`}><${Mark} state=${state} />${wordsOf(task)}</span>
      <span class="id">#${task.id}</span>
      ${task.priority !== "normal" && html`<span class=${`p-${task.priority}`}>${task.priority}</span>`}
      ${task.owner && html`<${Text} class="owner" of=${ownerOf(task)} />`}
      <${Times} of=${task} />
      ${task.attempts > 1 && html`<span class="hush">attempt ${task.attempts}</span>`}
    </div>
    <h2><${Text} of=${task.title} /></h2>
    ${state === "in_progress" && html`<p class="doing">
      ${task.active_form && html`<${Text} of=${task.active_form} /> · `}
      ${"for "}<${Since} at=${task.status_changed_at} /></p>`}
    ${task.labels?.length > 0 && html`<p class="labels">
      ${task.labels.map((label) => html`<${Label} key=${label} of=${label} />`)}</p>`}
    ${task.description && html`<p class="prose">${safeBlock(task.description)}</p>`}
    ${task.waits_for && html`<p class="doing">Done, and waits for ${safe(gateOf(task))}</p>`}
    ${task.fail_reason && html`<${Note} title="Reason" class="bad" text=${task.fail_reason} />`}
    ${task.result_summary && html`<${Note} title="Result" text=${task.result_summary} />`}
    ${canChange.value && html`<${Actions} of=${task} />`}
    ${explanation.value?.task === task.id && html`<${Explanation} of=${explanation.value} />`}
    ${task.parent && tasks.get(task.parent) && html`<${Links} title="Part of" tasks=${[tasks.get(task.parent)]} />`}
    ${children.length > 0 && html`<${Links} title="Parts" tasks=${children} />`}
    ${blockers.length > 0 && html`<${Links} title="Waits for" tasks=${blockers} />`}
    ${blocked.length > 0 && html`<${Links} title="Blocks" note=${freesNote} tasks=${blocked} />`}
    ${task.links?.length > 0 && html`<div class="links"><h3>Links</h3>
      ${task.links.map((link) => html`<${Link} key=${link.kind + link.to} link=${link} />`)}</div>`}
    ${task.notes?.length > 0 && html`<div class="links"><h3>Notes</h3>
      ${task.notes.map((note) => html`<${Comment} key=${note.version} note=${note} />`)}</div>`}
    ${metadata.length > 0 && html`<dl class="meta">${metadata.map(([key, value]) => html`<div key=${key}>
      <dt>${safe(key)}</dt><dd>${safe(typeof value === "string" ? value : JSON.stringify(value))}</dd></div>`)}</dl>`}
    <details class="activity" open=${isActivityOpen.value}
      onToggle=${(event) => (isActivityOpen.value = event.currentTarget.open)}>
      <summary>Activity</summary>
      ${isActivityOpen.value && html`<${Story} entries=${findTaskEvents(task.id)} />`}
    </details>
    ${task.estimate_ms > 0 && html`<p class="hush">estimated at ${formatDuration(task.estimate_ms)}</p>`}
    <p class="hush">added ${clock(task.created_at)} · changed ${clock(task.updated_at)} · version ${task.version}</p>
  </aside>`;
}

/** Return the metadata without importers' hashes. */
const listMetadata = (task) => Object.entries(task.metadata ?? {}).filter(([key]) => key !== "imported");

const Actions = ({ of: task }) => html`<div class="actions">
  ${ACTIONS.filter(([, , , applies]) => applies(task)).map(([name, label, key]) => html`<button key=${name}
    class=${{ approve: "primary", delete: "quiet" }[name] ?? ""} onClick=${() => run(name)}>
    ${label} <${Key} of=${key} /></button>`)}
</div>`;

const Note = ({ title, text, class: name = "" }) => html`<div class=${`note ${name}`}>
  <h3>${title}</h3><p class="prose">${safeBlock(text)}</p></div>`;

const Comment = ({ note }) => html`<div class="note">
  <p class="hush"><${Text} of=${note.actor} />
    ${note.imported_by && ` (imported by ${safe(note.imported_by)})`} · ${clock(note.at)}</p>
  <p class="prose">${safeBlock(note.text)}</p></div>`;

/** A task's link, shown as a link to a task of this list or to a web page, or else as text to copy. */
function Link({ link: { kind, to } }) {
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
