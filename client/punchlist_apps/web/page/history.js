// The view of what happened: the calls of a list by day, newest first.

import { computed, effect, html, signal, useLayoutEffect } from "./vendor.js";
import { addCommands, undoCall } from "./commands.js";
import { Member } from "./changes.js";
import { attempt, canChange, go, list, place, versions } from "./model.js";
import { Badge, Key, Text, Windowed } from "./parts.js";
import { KINDS } from "./sentences.js";
import { Said, calls, current, readOlder, sayCall, story } from "./story.js";
import { plural, safe } from "./text.js";

const ROW_HEIGHT = matchMedia("(max-width: 760px)").matches ? 58 : 34;
const MAX_TASKS = 4; // named after a call that changed several

const actor = signal(null); // filter: calls of this actor
const kind = signal(null); // filter: calls with a change of this kind
const opened = signal(new Set()); // versions of calls that show their events
const folded = signal(new Set()); // days
const cursor = signal(null); // version of the chosen call
const listName = computed(() => place.value.name);
effect(() => {
  listName.value;
  [actor.value, kind.value, cursor.value, opened.value, folded.value] = [null, null, null, new Set(), new Set()];
});

const hasActor = (call) => !actor.value || call.actor === actor.value;
const hasKind = (call) => !kind.value || call.kinds.has(kind.value);
const shown = computed(() => calls.value.filter((call) => hasActor(call) && hasKind(call)).toReversed());

const TIME = { hour: "2-digit", minute: "2-digit" };
const timeOf = (ms) => new Date(ms).toLocaleTimeString(undefined, TIME);
const momentOf = (ms) => new Date(ms).toLocaleString(undefined, { dateStyle: "full", timeStyle: "medium" });

/** Return the name of a day, such as "Today" or "Thursday 26 November". */
function nameDay(ms) {
  const day = new Date(ms);
  const today = new Date();
  if (day.toDateString() === today.toDateString()) return "Today";
  const year = day.getFullYear() !== today.getFullYear() && { year: "numeric" };
  return day.toLocaleDateString(undefined, { weekday: "long", day: "numeric", month: "long", ...year });
}

/** The lines of the view: days, calls, the events of opened calls, and a button for older ones. */
const items = computed(() => {
  const items = [];
  let day = null;
  for (const call of shown.value) {
    const name = nameDay(call.at);
    if (name !== day?.day) items.push((day = { day: name, count: 0, key: name }));
    day.count++;
    if (folded.value.has(name)) continue;
    items.push({ call, key: call.version });
    if (opened.value.has(call.version))
      for (const line of call.lines) items.push({ line, key: `${call.version}.${line.entry.version}` });
  }
  if (story.value?.from > 0) items.push({ key: "older" });
  return items;
});

/** Return a copy of a set with one member added or removed. */
function toggle(set, member) {
  const next = new Set(set);
  if (!next.delete(member)) next.add(member);
  return next;
}

/** Show the list as it was after a call. */
function showCall({ version, lines }) {
  const tasks = new Set(lines.map((line) => line.id));
  const task = tasks.size === 1 ? lines[0].id : null;
  const query = { ...place.value.query, at: version < list.value.rows.version ? `${version}` : "" };
  go({ ...place.value, view: "list", task, query });
}

const chosen = () => shown.value.find((call) => call.version === cursor.value);
const listed = () => items.value.filter((item) => item.call).map((item) => item.key);
const moveTo = (version) => version !== undefined && (cursor.value = version);
const step = (by) => () => {
  const versions = listed();
  const at = versions.indexOf(cursor.value);
  moveTo(at < 0 ? versions[0] : versions[Math.min(versions.length - 1, Math.max(0, at + by))]);
};
const fold = (isOpen) => () => chosen() && opened.value.has(cursor.value) !== isOpen && toggleCall(cursor.value);
const toggleCall = (version) => (opened.value = toggle(opened.value, version));

addCommands("list/history", {
  down: { run: step(1), list: true },
  up: { run: step(-1), list: true },
  page_down: { run: step(12), list: true },
  page_up: { run: step(-12), list: true },
  first: { run: () => moveTo(listed()[0]), list: true },
  last: { run: () => moveTo(listed().at(-1)), list: true },
  left: { run: fold(false), list: true },
  right: { run: fold(true), list: true },
  open: { run: () => chosen() && showCall(chosen()), list: true },
  undo: { run: () => (chosen() ? undoCall(chosen()) : undefined), list: true, change: true },
});

const Chip = ({ of, value, count, children }) => html`<button class="chip-button"
  aria-pressed=${of.value === value ? "true" : "false"} onClick=${() => (of.value = of.value === value ? null : value)}>
  ${children} <b>${count.toLocaleString()}</b></button>`;

function Chips() {
  const byActor = new Map();
  for (const call of calls.value.filter(hasKind)) byActor.set(call.actor, (byActor.get(call.actor) ?? 0) + 1);
  const total = [...byActor.values()].reduce((sum, count) => sum + count, 0);
  const ofActor = calls.value.filter(hasActor);
  const kinds = Object.keys(KINDS).map((name) => [name, ofActor.filter((call) => call.kinds.has(name)).length]);
  return html`<div class="tools chips" role="group" aria-label="Filters">
    <${Chip} of=${actor} value=${null} count=${total}>Everybody<//>
    ${[...byActor].sort(([, a], [, b]) => b - a).map(([name, count]) => html`<${Chip} key=${name} of=${actor}
      value=${name} count=${count}><${Badge} of=${name} size="small" /><${Text} class="cut" of=${name} /><//>`)}
    <i class="rule"></i>
    ${kinds.map(([name, count]) => count > 0 && html`<${Chip} key=${name} of=${kind} value=${name} count=${count}>${name}<//>`)}
    <span class="room"></span>
    <span class="hush">${plural(calls.value.length, "call")}, ${plural(current.value.length, "version")}</span>
  </div>`;
}

export default function History() {
  if (!current.value) return html`<p class="hush" role="status">Loading the history…</p>`;
  const active = items.value.findIndex((item) => item.key === cursor.value);
  useLayoutEffect(() => {
    if (active >= 0 && !document.activeElement.closest("dialog, input, .time-machine"))
      document.querySelector(".call.here .main")?.focus({ preventScroll: true });
  }, [cursor.value, active]);
  return html`<${Chips} />
    <${Windowed} items=${items.value} size=${ROW_HEIGHT} active=${active} class="rows calls" role="list"
      aria-label="Newest first">
      ${(item) => html`<${Item} key=${item.key} item=${item} />`}<//>
    ${!shown.value.length && html`<p class="hush">No call fits these filters.</p>`}`;
}

const style = { height: `${ROW_HEIGHT}px` };

function Item({ item: { day, count, call, line } }) {
  if (call) return html`<${Call} call=${call} />`;
  if (line) return html`<div role="listitem" class="call part" style=${style}><${Line} line=${line} /></div>`;
  if (!day) return html`<div role="listitem" class="call" style=${style}>
    <button class="text" onClick=${() => attempt(() => readOlder(1000))}>Older</button></div>`;
  const isFolded = folded.value.has(day);
  return html`<div role="listitem" class="day-head" style=${style}>
    <button aria-expanded=${isFolded ? "false" : "true"} onClick=${() => (folded.value = toggle(folded.value, day))}>
      <span aria-hidden="true">${isFolded ? "▸" : "▾"}</span><b>${day}</b>
      <span class="count">${plural(count, "call")}</span></button></div>`;
}

/** What an event did to which task, and the members that it changed, before and after. */
const Line = ({ line: { entry, id, title, members } }) => html`<span class="id">${id && `#${id}`}</span>
  <span class="told cut">${title && html`<${Text} class="hush" of=${title} /> `}<${Said} of=${entry.event} /></span>
  <span class="cut">${members.map((member) => html`<${Member} key=${member.name} ...${member} /> `)}</span>`;

/** A call that changed several tasks: how many, in what way, and the first of them. */
function Several({ lines }) {
  const ids = [...new Set(lines.map((line) => line.id).filter(Boolean))];
  const verbs = [...new Set(lines.map((line) => line.entry.event.type))];
  return html`<span class="id"></span><span class="told cut">
    ${verbs.length === 1 ? html`<${Said} of=${{ ...lines[0].entry.event, text: "", fail_reason: "", result_summary: "" }} />` : "changed"}
    ${" "}<b>${plural(ids.length, "task")}</b> <span class="hush">${ids.slice(0, MAX_TASKS).map((id, at) =>
      html`${at > 0 && ", "}#${id}${at === 0 && html` <${Text} of=${lines.find((line) => line.id === id).title} />`}`)}
      ${ids.length > MAX_TASKS && ", …"}</span></span><span></span>`;
}

function Call({ call }) {
  const { version, at, actor, lines, undoes } = call;
  const tasks = new Set(lines.map((line) => line.id)).size;
  const isLong = lines.length > 1;
  const here = cursor.value === version || versions.value.to === version;
  return html`<div role="listitem" class=${`call${here ? " here" : ""}`} style=${style}>
    <button class="main" onClick=${() => showCall(call)} onFocus=${() => (cursor.value = version)}
      title=${`${momentOf(at)}: show the list as it was`}>
      <time>${timeOf(at)}</time>
      <span class="actor"><${Badge} of=${actor} size="small" /><${Text} class="cut" of=${actor} /></span>
      ${undoes?.length > 0 && html`<span class="hush undoes">took back</span>`}
      ${tasks > 1 ? html`<${Several} lines=${lines} />` : html`<${Line} line=${lines.at(0)} />`}</button>
    <span class="acts">
      ${isLong && html`<button aria-expanded=${opened.value.has(version) ? "true" : "false"}
        onClick=${() => toggleCall(version)} aria-label=${`The ${lines.length} events of version ${version}`}>
        ${lines.length} ${opened.value.has(version) ? "▾" : "▸"}</button>`}
      ${canChange.value && html`<button class="on-hover" aria-label=${`Take back version ${version}: ${safe(sayCall(call))}`}
        onClick=${() => undoCall(call)}>Take this back… <${Key} of="u" /></button>`}</span></div>`;
}
