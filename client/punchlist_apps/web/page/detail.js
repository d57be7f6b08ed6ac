// One task: what it is, what it waits for, what it frees, and what may be done with it.

import { html, signal } from "./vendor.js";
import { run } from "./commands.js";
import { Story, storyOf } from "./history.js";
import { go, list, mayChange, place, shownRows, task, why } from "./model.js";
import { durationText, isWeb } from "./members.js";
import { gateOf, isDeferred, isFinished, ownerOf, stateOf } from "./rows.js";
import { Key, Label, Mark, Since, TaskLink, Text, Times, WORDS, wordsOf } from "./parts.js";
import { clock, dayText, safe, safeBlock } from "./text.js";

/** Whether a task can be started by hand: nothing else has to happen before. */
const mayStart = (one) =>
  ["pending", "paused"].includes(one.status) && one.waits_for !== "yes" && !one.open_blockers?.length &&
  !isDeferred(one) && (one.status === "paused" || !shownRows.value.holds(one));

const ACTIONS = [
  ["approve", "Approve", "Y", (one) => one.waits_for === "yes"],
  ["reject", "Reject", "N", (one) => one.waits_for === "yes"],
  ["start", "Start", "s", mayStart],
  ["done", "Done", "d", (one) => one.status === "in_progress"],
  ["fail", "Failed", "f", (one) => one.status === "in_progress"],
  ["pause", "Pause", "p", (one) => ["pending", "in_progress"].includes(one.status)],
  ["reopen", "Reopen", "r", (one) => isFinished(one)],
  ["note", "Note", "m", () => true],
  ["edit", "Edit", "e", () => true],
  ["delete", "Delete", "x", () => true],
];
const open = signal(false);
const openTask = (id) => go({ ...place.value, task: id }, { trail: false });

export function Detail() {
  list.value; // rows change in place
  const one = task.value;
  if (!one) return null; // the list is being left
  const state = stateOf(one);
  const found = shownRows.value.tasks;
  const near = (ids) => (ids ?? []).map((id) => found.get(id)).filter(Boolean);
  const waits = near(one.blocked_by);
  const frees = near(one.blocks);
  const children = shownRows.value.childrenOf(one.id);
  const freed = frees.filter((other) => other.open_blockers?.length === 1 && !isFinished(other)).length;
  const freesNote = freed && !isFinished(one) ? `done frees ${freed} of ${frees.length}` : "";
  const meta = shownMeta(one);
  return html`<aside class="detail" aria-label=${`Task ${one.id}`} tabindex="0">
    <div class="top">
      <button class="close" aria-label="Back to the list" onClick=${() => run("back")}>←</button>
      <span class=${`pill s-${state}`}><${Mark} state=${state} />${wordsOf(one)}</span>
      <span class="id">#${one.id}</span>
      ${one.priority !== "normal" && html`<span class=${`p-${one.priority}`}>${one.priority}</span>`}
      ${one.owner && html`<${Text} class="owner" of=${ownerOf(one)} />`}
      <${Times} of=${one} />
      ${one.attempts > 1 && html`<span class="hush">attempt ${one.attempts}</span>`}
    </div>
    <h2><${Text} of=${one.title} /></h2>
    ${state === "in_progress" && html`<p class="doing">
      ${one.active_form && html`<${Text} of=${one.active_form} /> · `}for <${Since} at=${one.status_changed_at} /></p>`}
    ${one.labels?.length > 0 && html`<p class="labels">
      ${one.labels.map((label) => html`<${Label} key=${label} of=${label} />`)}</p>`}
    ${one.description && html`<p class="prose">${safeBlock(one.description)}</p>`}
    ${one.waits_for && html`<p class="doing">Done, and waits for ${safe(gateOf(one))}</p>`}
    ${one.fail_reason && html`<${Note} title="Reason" class="bad" text=${one.fail_reason} />`}
    ${one.result_summary && html`<${Note} title="Result" text=${one.result_summary} />`}
    ${mayChange.value && html`<${Actions} of=${one} />`}
    ${why.value?.task === one.id && html`<${Why} told=${why.value} />`}
    ${one.parent && found.get(one.parent) && html`<${Links} title="Part of" tasks=${[found.get(one.parent)]} />`}
    ${children.length > 0 && html`<${Links} title="Parts" tasks=${children} />`}
    ${waits.length > 0 && html`<${Links} title="Waits for" tasks=${waits} />`}
    ${frees.length > 0 && html`<${Links} title="Blocks" note=${freesNote} tasks=${frees} />`}
    ${one.links?.length > 0 && html`<div class="links"><h3>Leads to</h3>
      ${one.links.map((link) => html`<${Lead} key=${link.kind + link.to} link=${link} />`)}</div>`}
    ${one.notes?.length > 0 && html`<div class="links"><h3>Notes</h3>
      ${one.notes.map((note) => html`<${Noted} key=${note.version} note=${note} />`)}</div>`}
    ${meta.length > 0 && html`<dl class="meta">${meta.map(([key, value]) => html`<div key=${key}>
      <dt>${safe(key)}</dt><dd>${safe(typeof value === "string" ? value : JSON.stringify(value))}</dd></div>`)}</dl>`}
    <details class="activity" open=${open.value} onToggle=${(event) => (open.value = event.currentTarget.open)}>
      <summary>Activity</summary>
      ${open.value && html`<${Story} entries=${storyOf(one.id)} />`}
    </details>
    ${one.estimate_ms > 0 && html`<p class="hush">estimated at ${durationText(one.estimate_ms)}</p>`}
    <p class="hush">added ${clock(one.created_at)} · changed ${clock(one.updated_at)} · version ${one.version}</p>
  </aside>`;
}

/** The metadata but for the marks that imports keep. */
const shownMeta = (one) => Object.entries(one.metadata ?? {}).filter(([key]) => key !== "imported");

const Actions = ({ of: one }) => html`<div class="actions">
  ${ACTIONS.filter(([, , , may]) => may(one)).map(([name, label, key]) => html`<button key=${name}
    class=${{ approve: "primary", delete: "quiet" }[name] ?? ""} onClick=${() => run(name)}>
    ${label} <${Key} of=${key} /></button>`)}
</div>`;

const Note = ({ title, text, class: name = "" }) => html`<div class=${`note ${name}`}>
  <h3>${title}</h3><p class="prose">${safeBlock(text)}</p></div>`;

/** A note that somebody wrote on a task. */
const Noted = ({ note }) => html`<div class="note">
  <p class="hush"><${Text} of=${note.actor} />
    ${note.imported_by && ` (imported by ${safe(note.imported_by)})`} · ${clock(note.at)}</p>
  <p class="prose">${safeBlock(note.text)}</p></div>`;

/** Where a task leads: another task of this list, a page of the web, or a text to be copied. */
function Lead({ link: { kind, to } }) {
  const other = ["discovered-from", "relates-to"].includes(kind) && shownRows.value.tasks.get(to);
  const shown = html`<${Text} of=${to} />`;
  return html`<div class="lead"><span class="hush">${safe(kind)}</span>
    ${other
      ? html`<${TaskLink} task=${other} onOpen=${openTask} />`
      : isWeb(to)
        ? html`<a href=${to} target="_blank" rel="noopener noreferrer">${shown}</a>`
        : html`<code>${shown}</code>`}</div>`;
}

const MOST = 60;

const Links = ({ title, note, tasks }) => html`<div class="links">
  <h3>${title}${note && html` <span class="hush">${note}</span>`}</h3>
  ${tasks.slice(0, MOST).map((one) => html`<${TaskLink} key=${one.id} task=${one} onOpen=${openTask} />`)}
  ${tasks.length > MOST && html`<p class="hush">and ${tasks.length - MOST} more</p>`}
</div>`;

const REASONS = {
  stopped: () => "the list stops at failures, and it failed:",
  serial: () => "the list runs one task at a time, and this is in progress:",
  blocker: () => "waits for",
  parent: () => "its parent does not go on:",
  reserved: (reason) => `it is reserved for @${safe(reason.owner)}:`,
  child: () => "has an open task:",
  heading: () => "it only holds the tasks below it:",
  deferred: (reason) => `not before ${dayText(reason, "not_before")}:`,
};

const Why = ({ told }) => html`<div class="note" role="status">
  <h3>${told.startable && !told.reasons.length ? "It can be started" : "What keeps it"}</h3>
  <ul class="reasons">${told.reasons.map((reason, at) => html`<${Reason} key=${at} reason=${reason} />`)}</ul>
</div>`;

function Reason({ reason }) {
  const { kind, status, by, title, owner, depth = 0 } = reason;
  const says = REASONS[kind] ?? (() => `it is ${WORDS[status]}:`);
  return html`<li style=${{ marginLeft: `${depth * 1.1}em` }}>
    ${says(reason)} <button class="text" onClick=${() => openTask(by)}>#${by}</button> <${Text} of=${title} />
    <span class="hush"> ${WORDS[status]}${owner ? ` · @${safe(owner)}` : ""}</span></li>`;
}
