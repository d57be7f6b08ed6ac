// The past: who did what, and the list at any of its versions.

import { effect, html, signal, untracked } from "./vendor.js";
import { call } from "./link.js";
import { API, attempt, isPast, list, look, mayChange, past, place } from "./model.js";
import { undoCall } from "./commands.js";
import { AS_TEXT, TIMES } from "./members.js";
import { Text } from "./parts.js";
import { clock, dayText, safe } from "./text.js";
import { GLYPHS } from "./words.js";

const PAGE = 1000;

/** What is known of the list's events: in order, from position `from` up to `to`. */
const story = signal(null);

async function read(name, after, upto) {
  const found = [];
  for (;;) {
    const page = await call("GET", `${API}${encodeURIComponent(name)}/events?after=${after}&limit=${PAGE}`);
    found.push(...page.events.filter((one) => one.seq <= upto));
    if (page.events.length < PAGE || page.events.at(-1).seq >= upto) return { found, next: page.next };
    after = page.events.at(-1).seq;
  }
}

let reading = null;

/** Read `wanted` events before those that are known, in growing steps: a position counts the events of all lists. */
async function readOlder(wanted = 200) {
  const name = place.value.name;
  let { from, events } = story.value;
  let got = 0;
  for (let step = 500; from > 0 && got < wanted; step *= 4) {
    const after = Math.max(0, from - step);
    const { found } = await read(name, after, from);
    if (story.value?.name !== name) return;
    [from, events, got] = [after, [...found, ...events], got + found.length];
    if (found[0]?.version === 1) from = 0;
  }
  story.value = { ...story.value, from, events };
}

async function follow(name, seq) {
  if (story.value?.name !== name) {
    story.value = { name, from: seq, to: seq, events: [] };
    return readOlder();
  }
  const { found } = await read(name, story.value.to, Infinity);
  if (story.value?.name !== name || !found.length) return;
  story.value = { ...story.value, to: found.at(-1).seq, events: [...story.value.events, ...found] };
}

/** Keep the story up to date with the list; one reading at a time. */
function refresh() {
  if (reading || !list.value) return;
  const { name, rows } = list.value;
  const { version } = rows;
  reading = attempt(() => follow(name, rows.seq)).finally(() => {
    reading = null;
    if (wantsStory && list.value && list.value.rows.version !== version && isBehind()) refresh();
  });
}

/** Whether the story is of another list, or lacks events of this one. */
const isBehind = () => story.value?.name !== list.value.name || newest() < list.value.rows.version;
const newest = () => story.value.events.at(-1)?.version ?? 0;

let wantsStory = false;
effect(() => {
  wantsStory = place.value.view === "history" || isPast.value;
  if (list.value && wantsStory) untracked(refresh);
});

/** What the known events say of a task, newest first; asks for them if nobody has. */
export function storyOf(id) {
  if (story.value?.name !== place.value.name || newest() < (list.value?.rows.version ?? 0)) queueMicrotask(refresh);
  const isAbout = ({ event: { task, blocker } }) => task === id || task?.id === id || blocker === id;
  return (story.value?.events ?? []).filter(isAbout).toReversed();
}

const short = (value) => {
  const text = typeof value === "string" ? value : value === null ? "none" : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
};
/** Whether a member has something to say: of a day and its moment one does. */
const isTold = (event, key) => {
  const at = key.replace(/_day$/, "");
  return at === key ? !event[`${key}_day`] : event[key] || !(at in event);
};
const nameOf = (key) => key.replace(/_ms$|_day$/, "").replace("_", " ");
const named = (event, names) =>
  Object.keys(event)
    .filter((key) => names.includes(key) && isTold(event, key))
    .map((key) => `${nameOf(key)} ${short(SHOWN[key]?.(event[key]) ?? event[key])}`)
    .join(", ");
const MEMBERS = [
  "title", "description", "priority", "active_form", "owner", "parent", "metadata", "due", "not_before", "due_day",
  "not_before_day", "labels", "links", "estimate_ms",
];

/** How members are shown whose value on the wire is no text. */
const SHOWN = {};
for (const [key, [text]] of Object.entries(AS_TEXT)) SHOWN[key] = (value) => text(value) || "none";
for (const key of TIMES) {
  SHOWN[key] = (at) => (at ? dayText({ due: at }, "due") : "none");
  SHOWN[`${key}_day`] = (day) => (day ? dayText({ due_day: day }, "due") : "none");
}

function configured(event) {
  const settings = Object.entries(event.settings ?? {}).map(([key, value]) => `${key} ${value}`);
  return [named(event, ["title", "attached", "detached"]), ...settings].filter(Boolean).join(", ");
}

function moved({ from, to, waits_for: what, fail_reason: reason, result_summary: result }) {
  const waits = what ? `, waits for a ${what}` : "";
  const because = reason || result ? ` (${short(reason || result)})` : "";
  return `${from.replace("_", " ")} ${GLYPHS.to} ${to.replace("_", " ")}${waits}${because}`;
}

const SAY = {
  ConversationOpened: () => "began the list",
  ConversationConfigured: (event) => `set ${configured(event)}`,
  TaskAdded: (event) => `added “${event.task.title}”`,
  TaskEdited: (event) => `edited ${named(event, MEMBERS)}`,
  NoteAdded: (event) => `noted${event.author ? ` for ${event.author}` : ""}: ${short(event.text)}`,
  NoteRemoved: () => "took a note back",
  TaskWoken: () => "is no longer put off",
  TaskMoved: (event) => (event.before ? `moved in front of #${event.before}` : "moved to the end"),
  StatusChanged: moved,
  Deleted: () => "deleted",
  DependencyAdded: (event) => `waits for #${event.blocker}`,
  DependencyRemoved: (event) => `no longer waits for #${event.blocker}`,
  Claimed: (event) => `claimed by ${event.owner}`,
  Released: (event) => `released by ${event.owner} (${event.reason})`,
  ListCleared: () => "cleared the list",
  MessageAppended: (event) => `said: ${short(event.content)}`,
  EventLost: () => "lost to damage",
};
const sentence = ({ event }) => safe((SAY[event.type] ?? (() => `${event.type} (not known to this page)`))(event));
const taskOf = ({ event }) => event.task?.id ?? event.task ?? null;

/** Events as lines: a click shows the list as it was then. */
export const Story = ({ entries, most = 400 }) => html`<ol class="story">
  ${entries.slice(0, most).map((one) => html`<${Entry} key=${one.seq} one=${one} />`)}</ol>`;

const Entry = ({ one }) => html`<li class=${past.value?.version === one.version ? "here" : ""}>
  <button title=${`Version ${one.version}: show the list as it was`} onClick=${() => attempt(() => look(one.version))}>
    <span class="when">${clock(one.at)}</span>
    <span class="said">${taskOf(one) && html`<span class="id">#${taskOf(one)}</span> `}${sentence(one)}</span>
    <${Text} class="owner" of=${one.actor} />
  </button>
  ${mayChange.value && html`<button class="quiet" title=${`Undo this change by ${safe(one.actor)}`}
    aria-label=${`Undo version ${one.version}`} onClick=${() => undoCall(one)}>↶</button>`}</li>`;

export function History() {
  const known = story.value?.name === place.value.name ? story.value : null;
  if (!known) return html`<p class="hush" role="status">Reading what happened…</p>`;
  return html`<div class="scroll" tabindex="0" aria-label="Newest first" role="group">
    <${Story} entries=${known.events.toReversed()} most=${600} />
    ${known.from > 0 && html`<button class="more" onClick=${() => attempt(readOlder)}>Older</button>`}
  </div>`;
}

let waiting = 0;
function slide(version) {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => attempt(() => look(version)));
}

/** The slider through all versions. Its place is always kept, so nothing jumps. */
export function TimeBar() {
  const present = list.value?.rows.version;
  if (!present) return null;
  const at = past.value?.version ?? present;
  return html`<label class="time"><span class="sr">Version of the list</span>
    <input type="range" min="1" max=${present} value=${at}
      aria-valuetext=${isPast.value ? `version ${at} of ${present}` : "now"}
      onInput=${(event) => slide(Number(event.currentTarget.value))} />
    <output>${isPast.value ? `${at} of ${present}` : "now"}</output></label>`;
}

/** Says which version is shown, and what made it. */
export function PastBanner() {
  if (!past.value || !place.value.name) return null;
  const { version } = past.value;
  const events = story.value?.name === place.value.name ? story.value.events : [];
  const made = events.find((one) => one.version === version);
  const said = made && `${clock(made.at)}: ${taskOf(made) ? `#${taskOf(made)} ` : ""}${sentence(made)}`;
  return html`<div class="past-banner" role="status">
    <span><b>As it was</b> at version ${version} of ${list.value?.rows.version}
      ${made && html`<span class="made"> · <${Text} of=${made.actor} />, ${said}</span>`}</span>
    <button onClick=${() => look(null)}>Back to now</button>
  </div>`;
}
