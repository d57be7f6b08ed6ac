// The events of the open list, as they were read, and grouped by call.

import { computed, effect, html, signal, untracked } from "./vendor.js";
import { call, sleep } from "./link.js";
import { API, attempt, isPast, list, place, visibleRows } from "./model.js";
import { format } from "./differences.js";
import { KINDS, membersOf, say, taskOf } from "./sentences.js";
import { Text } from "./parts.js";
import { plural } from "./text.js";

const PAGE_SIZE = 1000;
const VAGUE = ["title", "description", "links", "metadata", "gate"]; // members whose sentence leaves out the value
const REST_MS = 200; // between two reads of new events
const MAX_READ = 5000;

/** The read events of the list `name`, in order, from position `from` up to `to`. */
export const story = signal(null);

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

/** Read about `count` older events. The range grows with each step, because positions count the events of all lists. */
export async function readOlder(count = 200) {
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

/** Read older events up to a version, at most MAX_READ in all. */
export function readUpTo(version) {
  const { from, events } = story.value ?? {};
  if (reading || !from || !(events[0]?.version > version) || events.length > MAX_READ) return;
  reading = attempt(() => readOlder(events.length + 200)).finally(() => (reading = null));
}

/** Read the newest events of a list whose rows are at this position. */
async function readNewer(name, seq) {
  if (story.value?.name !== name) {
    story.value = { name, from: seq, to: seq, events: [] };
    return readOlder();
  }
  const newer = await readEvents(name, story.value.to, Infinity);
  if (story.value?.name !== name || !newer.length) return;
  story.value = { ...story.value, to: newer.at(-1).seq, events: [...story.value.events, ...newer] };
}

const getNewestVersion = () => story.value?.events.at(-1)?.version ?? 0;
/** Return whether the story belongs to another list or lacks the newest events. */
const isBehind = () => story.value?.name !== list.value?.name || getNewestVersion() < list.value.rows.version;

/** Bring the story up to date with the list, with one read at a time. */
export function refresh() {
  if (reading || !list.value || !isBehind()) return;
  const { name, rows } = list.value;
  const { version } = rows;
  reading = attempt(() => readNewer(name, rows.seq)).finally(async () => {
    await sleep(REST_MS);
    reading = null;
    if (needsStory() && list.value && list.value.rows.version !== version) refresh();
  });
}

const needsStory = () => place.value.view === "history" || isPast.value;
effect(() => {
  if (list.value && needsStory()) untracked(refresh);
});

/** The read events of the open list; null before the first. */
export const current = computed(() => (story.value?.name === place.value.name ? story.value.events : null));

/** Return the members that an edit sets, each with its text before and after, unless its sentence says it all. */
function compareMembers(event, known) {
  if (event.type !== "TaskEdited") return [];
  const members = membersOf(event).map((name) => ({
    name, before: known && (known.isWhole || name in known) ? format(name, known) : undefined, after: format(name, event),
  }));
  return members.filter(({ name, before }) => name !== "active_form" && (before || VAGUE.includes(name)));
}

/**
 * The calls of the open list, oldest first.
 *
 * A call has the `version` of its last event, and its events as `lines`. A line has the `entry`, the task's `title`, and
 * the members that it changed with their texts before and after, as far as the events before have been read.
 */
export const calls = computed(() => {
  const known = new Map(); // members of each task, as far as they are known
  const calls = [];
  for (const entry of current.value ?? []) {
    const { event, version, at, actor, undoes } = entry;
    const key = entry.call || version;
    if (calls.at(-1)?.key !== key) calls.push({ key, at, actor, undoes, lines: [], kinds: new Set() });
    const call = calls.at(-1);
    call.version = version;
    const id = taskOf(event);
    const members = compareMembers(event, known.get(id));
    if (event.type === "TaskAdded") known.set(id, { ...event.task, isWhole: true });
    else if (event.type === "TaskEdited") known.set(id, { ...known.get(id), ...event });
    const title = known.get(id)?.title ?? visibleRows.peek()?.tasks.get(id)?.title ?? "";
    call.lines.push({ entry, id, title, members });
    for (const [kind, belongs] of Object.entries(KINDS)) if (belongs(event)) call.kinds.add(kind);
  }
  return calls;
});

/** What an event says. A text is cut by the line it stands in. */
export function Said({ of: event }) {
  const { verb, more, tone } = say(event);
  return html`<span class=${`verb s-${tone}`}><${Text} of=${verb} /></span>${more && html`: <${Text} of=${more} />`}`;
}

/** Return what a call did, in a few words for screen readers and labels, such as `codex finished #3`. */
export function sayCall({ actor, lines }) {
  const [{ entry, id }] = lines;
  const tasks = new Set(lines.map((line) => line.id)).size;
  return `${actor} ${say(entry.event).verb}${tasks > 1 ? ` ${plural(tasks, "task")}` : id ? ` #${id}` : ""}`;
}
