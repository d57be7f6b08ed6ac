// The history: a list's events, and the list at any of its versions.

import { effect, html, signal, untracked } from "./vendor.js";
import { call } from "./link.js";
import { API, attempt, isPast, list, showVersion, canChange, past, place } from "./model.js";
import { undoCall } from "./commands.js";
import { CONVERTERS, TIMES } from "./members.js";
import { Text } from "./parts.js";
import { clock, dayText, safe } from "./text.js";
import { GLYPHS } from "./words.js";

const PAGE_SIZE = 1000;

/** The loaded events of the list `name`, in order, from position `from` up to `to`. */
const story = signal(null);

/** Read the list's events after one position and up to another. */
async function readEvents(name, after, upto) {
  const events = [];
  for (;;) {
    const page = await call("GET", `${API}${encodeURIComponent(name)}/events?after=${after}&limit=${PAGE_SIZE}`);
    events.push(...page.events.filter((entry) => entry.seq <= upto));
    if (page.events.length < PAGE_SIZE || page.events.at(-1).seq >= upto) return events;
    after = page.events.at(-1).seq;
  }
}

let reading = null;

/** Load about `count` older events. The range grows with each step, because positions count the events of all lists. */
async function readOlder(count = 200) {
  const name = place.value.name;
  let { from, events } = story.value;
  let loaded = 0;
  for (let step = 500; from > 0 && loaded < count; step *= 4) {
    const after = Math.max(0, from - step);
    const older = await readEvents(name, after, from);
    if (story.value?.name !== name) return;
    [from, events, loaded] = [after, [...older, ...events], loaded + older.length];
    if (older[0]?.version === 1) from = 0;
  }
  story.value = { ...story.value, from, events };
}

/** Load the newest events of a list whose rows are at this position. */
async function readNewer(name, seq) {
  if (story.value?.name !== name) {
    story.value = { name, from: seq, to: seq, events: [] };
    return readOlder();
  }
  const newer = await readEvents(name, story.value.to, Infinity);
  if (story.value?.name !== name || !newer.length) return;
  story.value = { ...story.value, to: newer.at(-1).seq, events: [...story.value.events, ...newer] };
}

/** Bring the story up to date with the list, with one read at a time. */
function refresh() {
  if (reading || !list.value) return;
  const { name, rows } = list.value;
  const { version } = rows;
  reading = attempt(() => readNewer(name, rows.seq)).finally(() => {
    reading = null;
    if (needsStory && list.value && list.value.rows.version !== version && isBehind()) refresh();
  });
}

/** Return whether the story belongs to another list or lacks the newest events. */
const isBehind = () => story.value?.name !== list.value.name || getNewestVersion() < list.value.rows.version;
const getNewestVersion = () => story.value.events.at(-1)?.version ?? 0;

let needsStory = false;
effect(() => {
  needsStory = place.value.view === "history" || isPast.value;
  if (list.value && needsStory) untracked(refresh);
});

/** Return the loaded events of a task, newest first. Start loading if the story is behind. */
export function findTaskEvents(id) {
  const isStale = story.value?.name !== place.value.name || getNewestVersion() < (list.value?.rows.version ?? 0);
  if (isStale) queueMicrotask(refresh);
  const isAbout = ({ event: { task, blocker } }) => task === id || task?.id === id || blocker === id;
  return (story.value?.events ?? []).filter(isAbout).toReversed();
}

const shorten = (value) => {
  const text = typeof value === "string" ? value : value === null ? "none" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
};
/** Return whether to show a member. If both a day and its time are set, only one of them is shown. */
const isShown = (event, key) => {
  const at = key.replace(/_day$/, "");
  return at === key ? !event[`${key}_day`] : event[key] || !(at in event);
};
const formatName = (key) => key.replace(/_ms$|_day$/, "").replace("_", " ");
const formatMembers = (event, names) =>
  Object.keys(event)
    .filter((key) => names.includes(key) && isShown(event, key))
    .map((key) => `${formatName(key)} ${shorten(FORMATS[key]?.(event[key]) ?? event[key])}`)
    .join(", ");
const MEMBERS = [
  "title", "description", "priority", "active_form", "owner", "parent", "metadata", "due", "not_before", "due_day",
  "not_before_day", "labels", "links", "estimate_ms",
];

/** Formatters of members that are not strings. */
const FORMATS = {};
for (const [key, [format]] of Object.entries(CONVERTERS)) FORMATS[key] = (value) => format(value) || "none";
for (const key of TIMES) {
  FORMATS[key] = (at) => (at ? dayText({ due: at }, "due") : "none");
  FORMATS[`${key}_day`] = (day) => (day ? dayText({ due_day: day }, "due") : "none");
}

function formatConfigured(event) {
  const settings = Object.entries(event.settings ?? {}).map(([key, value]) => `${key} ${value}`);
  return [formatMembers(event, ["title", "attached", "detached"]), ...settings].filter(Boolean).join(", ");
}

function formatStatusChange({ from, to, waits_for: gate, fail_reason: reason, result_summary: result }) {
  const waits = gate ? `, waits for a ${gate}` : "";
  const because = reason || result ? ` (${shorten(reason || result)})` : "";
  return `${from.replace("_", " ")} ${GLYPHS.to} ${to.replace("_", " ")}${waits}${because}`;
}

const SENTENCES = {
  ConversationOpened: () => "created the list",
  ConversationConfigured: (event) => `set ${formatConfigured(event)}`,
  TaskAdded: (event) => `added “${event.task.title}”`,
  TaskEdited: (event) => `edited ${formatMembers(event, MEMBERS)}`,
  NoteAdded: (event) => `noted${event.author ? ` for ${event.author}` : ""}: ${shorten(event.text)}`,
  NoteRemoved: () => "removed a note",
  TaskWoken: () => "is no longer deferred",
  TaskMoved: (event) => (event.before ? `moved before #${event.before}` : "moved to the end"),
  StatusChanged: formatStatusChange,
  Deleted: () => "deleted",
  DependencyAdded: (event) => `waits for #${event.blocker}`,
  DependencyRemoved: (event) => `no longer waits for #${event.blocker}`,
  Claimed: (event) => `claimed by ${event.owner}`,
  Released: (event) => `released by ${event.owner} (${event.reason})`,
  ListCleared: () => "cleared the list",
  MessageAppended: (event) => `wrote: ${shorten(event.content)}`,
  EventLost: () => "lost to damage",
};
const formatEvent = ({ event }) =>
  safe((SENTENCES[event.type] ?? (() => `${event.type} (unknown to this page)`))(event));
const taskOf = ({ event }) => event.task?.id ?? event.task ?? null;

/** Events as lines. A click shows the list at that version. */
export const Story = ({ entries, limit = 400 }) => html`<ol class="story">
  ${entries.slice(0, limit).map((entry) => html`<${Entry} key=${entry.seq} entry=${entry} />`)}</ol>`;

const Entry = ({ entry }) => html`<li class=${past.value?.version === entry.version ? "here" : ""}>
  <button title=${`Version ${entry.version}: show the list as it was`}
    onClick=${() => attempt(() => showVersion(entry.version))}>
    <span class="when">${clock(entry.at)}</span>
    <span class="said">${taskOf(entry) && html`<span class="id">#${taskOf(entry)}</span> `}${formatEvent(entry)}</span>
    <${Text} class="owner" of=${entry.actor} />
  </button>
  ${canChange.value && html`<button class="quiet" title=${`Undo this change by ${safe(entry.actor)}`}
    aria-label=${`Undo version ${entry.version}`} onClick=${() => undoCall(entry)}>↶</button>`}</li>`;

export function History() {
  const current = story.value?.name === place.value.name ? story.value : null;
  if (!current) return html`<p class="hush" role="status">Loading the history…</p>`;
  return html`<div class="scroll" tabindex="0" aria-label="Newest first" role="group">
    <${Story} entries=${current.events.toReversed()} limit=${600} />
    ${current.from > 0 && html`<button class="more" onClick=${() => attempt(readOlder)}>Older</button>`}
  </div>`;
}

let frame = 0;
/** Show a version at the next frame. Dragging the slider requests at most one version per frame. */
function showVersionSoon(version) {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => attempt(() => showVersion(version)));
}

/** The slider over all versions. It is also shown at the newest version, so that the layout doesn't jump. */
export function TimeBar() {
  const present = list.value?.rows.version;
  if (!present) return null;
  const at = past.value?.version ?? present;
  return html`<label class="time"><span class="sr">Version of the list</span>
    <input type="range" min="1" max=${present} value=${at}
      aria-valuetext=${isPast.value ? `version ${at} of ${present}` : "now"}
      onInput=${(event) => showVersionSoon(Number(event.currentTarget.value))} />
    <output>${isPast.value ? `${at} of ${present}` : "now"}</output></label>`;
}

/** A banner with the version shown and the event that created it. */
export function PastBanner() {
  if (!past.value || !place.value.name) return null;
  const { version } = past.value;
  const events = story.value?.name === place.value.name ? story.value.events : [];
  const entry = events.find((event) => event.version === version);
  const change = entry && `${clock(entry.at)}: ${taskOf(entry) ? `#${taskOf(entry)} ` : ""}${formatEvent(entry)}`;
  return html`<div class="past-banner" role="status">
    <span><b>As it was</b> at version ${version} of ${list.value?.rows.version}
      ${entry && html`<span class="made"> · <${Text} of=${entry.actor} />, ${change}</span>`}</span>
    <button onClick=${() => showVersion(null)}>Back to now</button>
  </div>`;
}
