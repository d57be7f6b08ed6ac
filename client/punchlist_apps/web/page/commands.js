// What a key, a button or a line of the palette does: one table.

import { onScreen, picked } from "./board.js";
import { call, session, signOut } from "./link.js";
import {
  API, ask, attempt, boardFilter, cards, columns, copyText, cursor, dialog, filter, go, goToVersion, isPast, listPath,
  look, marks, mayChange, place, say, shown, shownIds, shownRows, task, taskPath, why,
} from "./model.js";
import { AS_TEXT, TIMES, whenIn, whenText } from "./members.js";
import { belowFirst, gateOf } from "./rows.js";
import { isNotifying, notify } from "./notify.js";
import { clock, plural, safe } from "./text.js";
import { PRIORITIES } from "./words.js";

let last = null; // what `.` repeats

// What is meant: the marked tasks, or the one that the cursor is at.

function targets() {
  if (marks.value.size) return shown.value.filter((one) => marks.value.has(one.id));
  return task.value ? [task.value] : [];
}

const nameOf = (one) => `#${one.id} ${safe(one.title)}`;
const nameOfAll = (tasks) => (tasks.length === 1 ? nameOf(tasks[0]) : plural(tasks.length, "task"));

/** Do a change to each target, to those below a task before it; the first refusal stops it and is said. */
async function each(verb, tasks, change) {
  let count = 0;
  for (const one of belowFirst(tasks)) {
    if ((await attempt(() => change(one))) === null) break;
    count++;
  }
  const ofAll = count < tasks.length ? ` of ${tasks.length}` : "";
  if (count && tasks.length > 1) say(`${verb}: ${plural(count, "task")}${ofAll}`);
  if (count === tasks.length) marks.value = new Set();
  return count;
}

async function putStatus(one, status, more = {}) {
  try {
    return await call("POST", taskPath(one.id, "/status"), { status, ...more });
  } catch (error) {
    if (error.kind !== "lease_held" || !one.fence) throw error;
    const sure = await ask({ title: `#${one.id} is claimed`, text: [error.message], confirm: "Do it anyway" });
    return sure && call("POST", taskPath(one.id, "/status"), { status, fence: one.fence, ...more });
  }
}

/** Say what to do with a task that waits for a yes, which any other change of its status would take back. */
function isHeld(tasks) {
  const one = tasks.find((each) => each.waits_for === "yes");
  if (one) say(`#${one.id} waits for ${safe(gateOf(one))}: Y approves it, N rejects it with a reason.`, "bad");
  return one;
}

/** Give a task, as dragged to a column, a status. */
export async function setStatus(id, status) {
  const one = shownRows.value?.tasks.get(id);
  if (!one || !mayChange.value || one.status === status || isHeld([one])) return;
  await attempt(() => putStatus(one, status));
}

const statusOf = (verb, status, field) => async () => {
  const tasks = targets();
  if (!tasks.length || isHeld(tasks)) return;
  const given = field ? await ask({ title: `${verb}: ${nameOfAll(tasks)}`, fields: [field], confirm: verb }) : {};
  if (!given) return;
  const more = Object.fromEntries(Object.entries(given).filter(([, value]) => value));
  last = () => each(verb, targets(), (one) => putStatus(one, status, more));
  await each(verb, tasks, (one) => putStatus(one, status, more));
};

const WHY_NOT = { name: "text", label: "Why not?", required: true, kind: "line" };

/** Answer tasks that wait for a yes, as they were when the person looked at them. */
const answer = (verb, accept) => async () => {
  const tasks = targets().filter((one) => one.waits_for === "yes");
  if (!tasks.length) return targets().length && say("This task does not wait for a yes.", "bad");
  const title = `Reject: ${nameOfAll(tasks)}`;
  const given = accept ? {} : await ask({ title, fields: [WHY_NOT], confirm: "Reject" });
  if (!given) return;
  const answered = (one) => call("POST", taskPath(one.id, "/approval"), { accept, version: one.version, ...given });
  await each(verb, tasks, answered);
};

// Forms.

const IDS = "numbers, such as 3 7";
const idsIn = (text) => [...new Set((text ?? "").match(/\d+/g) ?? [])];

const TITLE = { name: "title", label: "Title", required: true };
const DESCRIPTION = { name: "description", label: "Description", kind: "long" };
const MEMBERS = [
  { name: "labels", label: "Labels", hint: "with commas between them", half: true },
  { name: "owner", label: "Owner", half: true },
  { name: "priority", label: "Priority", kind: "choice", options: PRIORITIES, half: true },
  { name: "estimate_ms", label: "Estimate", hint: "30m, 2h, 3d", half: true },
  { name: "due", label: "Due", kind: "time", half: true },
  { name: "not_before", label: "Not before", kind: "time", half: true },
  { name: "blocked_by", label: "Waits for", hint: IDS, half: true },
  { name: "parent", label: "Part of", hint: "a number", half: true },
];
const LINKS = {
  name: "links", label: "Leads to", hint: "an address or a path a line, or KIND=TARGET", kind: "long", rows: 2,
};
const DOING = { name: "active_form", label: "While it is done", hint: "such as “Writing the parser”" };

/** A task's members as a form shows them. */
function textsOf(one) {
  const texts = { title: one.title, priority: one.priority, blocked_by: (one.blocked_by ?? []).join(" ") };
  for (const name of ["description", "active_form", "owner", "parent"]) texts[name] = one[name] ?? "";
  for (const [name, [text]] of Object.entries(AS_TEXT)) texts[name] = text(one[name]);
  for (const name of TIMES) texts[name] = whenText(one, name);
  return texts;
}

/** What differs between two sets of texts, as members of the wire. */
function changesOf(before, given) {
  const body = {};
  for (const [name, value] of Object.entries(given)) {
    if (value === before[name] || name === "blocked_by") continue;
    if (name === "parent") body.parent = idsIn(value)[0] ?? null;
    else if (TIMES.includes(name)) Object.assign(body, whenIn(value, name));
    else body[name] = AS_TEXT[name] ? AS_TEXT[name][1](value) : value || null;
  }
  return body;
}

async function add() {
  const name = place.value.name;
  if (!name) return addList();
  const before = textsOf({ title: "", priority: "normal", parent: task.value?.parent });
  const made = await ask({
    title: "Add a task",
    fields: [TITLE, DESCRIPTION, ...MEMBERS],
    values: before,
    confirm: "Add",
    send: (given) => {
      const body = { ...changesOf({ ...before, title: null, parent: "" }, given), blocked_by: idsIn(given.blocked_by) };
      return call("POST", listPath("/tasks"), body);
    },
  });
  if (!made) return;
  say(`Added #${made.task.id}`);
  go({ ...place.value, task: made.task.id }, { trail: false });
}

async function addList() {
  const made = await ask({
    title: "Begin a list",
    fields: [
      { name: "conversation", label: "Name", required: true, hint: "letters, digits and . _ : -" },
      { name: "title", label: "Title", hint: "may be empty" },
    ],
    confirm: "Begin",
    send: ({ conversation, title }) => call("PUT", API + encodeURIComponent(conversation), title ? { title } : {}),
  });
  if (made) go({ name: made.conversation.conversation });
}

async function edit() {
  const one = task.value;
  if (!one) return;
  const before = textsOf(one);
  await ask({
    title: `Edit #${one.id}`,
    fields: [TITLE, DESCRIPTION, ...MEMBERS, LINKS, DOING],
    values: before,
    confirm: "Save",
    send: (given) => {
      const body = changesOf(before, given);
      const [old, now] = [one.blocked_by ?? [], idsIn(given.blocked_by)];
      const [more, less] = [now.filter((id) => !old.includes(id)), old.filter((id) => !now.includes(id))];
      if (more.length) body.add_blocked_by = more;
      if (less.length) body.remove_blocked_by = less;
      return Object.keys(body).length ? call("PATCH", taskPath(one.id), body) : {};
    },
  });
}

async function note() {
  const one = task.value;
  if (!one) return;
  await ask({
    title: `Note on ${nameOf(one)}`,
    fields: [{ name: "text", label: "Note", kind: "long", hint: "Ctrl Enter adds it", required: true }],
    confirm: "Add",
    send: ({ text }) => call("POST", taskPath(one.id, "/notes"), { text }),
  });
}

async function remove() {
  const tasks = targets();
  if (!tasks.length) return;
  const lines = tasks.slice(0, 8).map(nameOf);
  if (tasks.length > 8) lines.push(`and ${tasks.length - 8} more`);
  const title = tasks.length === 1 ? "Delete this task?" : `Delete ${tasks.length} tasks?`;
  if (!(await ask({ title, lines, text: ["An undo brings it back."], confirm: "Delete", danger: true }))) return;
  const next = neighbour(1) ?? neighbour(-1);
  const query = new URLSearchParams(tasks.map((one) => ["tasks", one.id]));
  const path = tasks.length === 1 ? taskPath(tasks[0].id) : listPath(`/tasks?${query}`);
  const gone = await attempt(() => call("DELETE", path));
  if (!gone) return;
  marks.value = new Set();
  go({ ...place.value, task: next && !gone.deleted.includes(next) ? next : null }, { trail: false });
  say(`Deleted ${plural(gone.deleted.length, "task")}. u takes it back.`);
}

/** Show what an undo or a redo comes to, then do it: the preview names the call, so that other changes don't matter. */
async function takeBack(which, { title, confirm, none, text = [] }) {
  const how = { whole: true, claims: true };
  const would = await attempt(() => call("POST", listPath("/undo"), { ...how, ...which, preview: true }));
  if (!would) return;
  if (!would.undone.length) return say(none);
  const send = () => call("POST", listPath("/undo"), { ...how, call: would.calls[0] });
  const done = await ask({ title, lines: would.undone.map(safe), text, confirm, send });
  if (done) say(`${confirm}: ${plural(done.undone.length, "change")}`);
}

const takeMineBack = (verb, title, more) => () =>
  takeBack({ mine: true, count: 1, ...more }, {
    title,
    confirm: verb,
    none: `You have nothing to ${verb.toLowerCase()} here: the history shows what others changed.`,
    text: ["Nothing else is touched."],
  });

/** Undo a change out of the history, whoever's it is. */
export const undoCall = ({ version, actor, at }) =>
  takeBack({ call: version }, {
    title: `Undo this change by ${safe(actor)}?`,
    confirm: "Undo",
    none: "There is nothing to undo in this change.",
    text: [`${safe(actor)} made it at ${clock(at)}. Nothing else is touched, and the history keeps both.`],
  });

const ME = "punchlist.me";
async function myName() {
  const kept = localStorage.getItem(ME);
  if (kept) return kept;
  const given = await ask({
    title: "Who are you?",
    text: ["A claim says whose the task is. This browser remembers the name."],
    fields: [{ name: "owner", label: "Name", required: true }],
    confirm: "Go on",
  });
  if (given) localStorage.setItem(ME, given.owner);
  return given?.owner;
}

const DAY_MS = 86_400_000;
async function claim() {
  const owner = await myName();
  const claimed = (one) => call("POST", taskPath(one.id, "/claim"), { owner, keep: true, lease_ms: DAY_MS });
  if (owner) await each("Claimed", targets(), claimed);
}
async function release() {
  await each("Given back", targets(), (one) => call("POST", taskPath(one.id, "/release"), { owner: one.owner }));
}

const priority = (step) => () => {
  last = priority(step);
  return each("Priority", targets(), (one) => {
    const next = PRIORITIES[Math.min(3, Math.max(0, PRIORITIES.indexOf(one.priority) + step))];
    return next === one.priority ? Promise.resolve({}) : call("PATCH", taskPath(one.id), { priority: next });
  });
};

/** Move a task past its neighbour among those with the same parent. */
const move = (step) => async () => {
  const one = task.value;
  if (!one || filter.value) return one && say("Clear the filter to move tasks.", "bad");
  const same = shown.value.filter((each) => (each.parent ?? null) === (one.parent ?? null));
  const other = same[same.indexOf(one) + step];
  last = move(step);
  const to = step < 0 ? "before" : "after";
  if (other) await attempt(() => call("POST", taskPath(one.id, "/move"), { [to]: other.id }));
};

async function explain() {
  const one = task.value;
  if (!one) return;
  const told = await attempt(() => call("GET", taskPath(one.id, "/explanation")));
  if (told) why.value = { task: one.id, startable: told.startable, reasons: told.reasons ?? [] };
}

// Moving about.

function order() {
  if (place.value.view === "who") return [];
  if (!place.value.name) return onScreen().map((one) => one.conversation);
  if (place.value.view === "flow") return columns.value.flat().map((one) => one.id);
  return shownIds.value;
}
const here = () => (place.value.name ? cursor.value : picked.value);

function neighbour(step) {
  const ids = order();
  const at = ids.indexOf(here());
  return ids[at < 0 ? (step > 0 ? 0 : ids.length - 1) : at + step];
}

function moveTo(id) {
  if (id === undefined) return;
  if (place.value.name) return go({ ...place.value, task: id }, { trail: false });
  picked.value = id;
  queueMicrotask(() => document.querySelector(".card.picked")?.scrollIntoView({ block: "nearest" }));
}

const step = (by) => () => {
  const ids = order();
  const at = ids.indexOf(here());
  moveTo(at < 0 ? ids[by > 0 ? 0 : ids.length - 1] : ids[Math.min(ids.length - 1, Math.max(0, at + by))]);
};

function back() {
  const place_ = place.value;
  if (place_.view === "who") return home();
  if (!place_.name) return boardFilter.value ? (boardFilter.value = "") : (picked.value = null);
  if (marks.value.size) marks.value = new Set();
  else if (place_.task) go({ ...place_, task: null }, { trail: false });
  else if (filter.value) filter.value = "";
  else if (isPast.value) look(null);
  else if (place_.view !== "list") go({ ...place_, view: "list" });
  else home();
}

/** The board, unless the link is for one list alone. */
function home() {
  go({ name: session.value.scope.list });
}

function open() {
  if (place.value.view === "who") return;
  if (!place.value.name) return picked.value && go({ name: picked.value });
  if (!cursor.value) return moveTo(order()[0]);
  document.querySelector(".detail")?.focus();
}

function mark(id = cursor.value) {
  if (!id) return;
  const next = new Set(marks.value);
  if (!next.delete(id)) next.add(id);
  marks.value = next;
}

async function copy() {
  const text = targets().map(copyText).join("\n");
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text);
    say("Copied");
  } catch {
    say("The browser lets nothing be copied here.", "bad");
  }
}

function share() {
  const only = place.value.name ? ` --only ${place.value.name}` : "";
  ask({
    title: "Share without the right to change",
    text: ["A link lets one browser of this machine in, and is good for a minute. In a terminal:"],
    code: `punch web --link --read-only${only}`,
    confirm: "Close",
    only: true,
  });
}

const markAll = () => (marks.value = marks.value.size ? new Set() : new Set(order()));

const view = (name) => () => go({ ...place.value, view: name });
const focusFilter = () => document.querySelector("#filter")?.focus();

const RESULT = { name: "result_summary", label: "Result", hint: "may be empty", kind: "line" };
const REASON = { name: "fail_reason", label: "Reason", hint: "may be empty", kind: "line" };

/** By name: what it does, its title in the palette, and whether it needs a list, a task, the right to change. */
export const COMMANDS = {
  down: { run: step(1) },
  up: { run: step(-1) },
  first: { run: () => moveTo(order()[0]) },
  last: { run: () => moveTo(order().at(-1)) },
  page_down: { run: step(12) },
  page_up: { run: step(-12) },
  open: { run: open },
  back: { run: back },
  home: { run: home },
  filter: { run: focusFilter, title: "Filter" },
  palette: { run: () => (dialog.value = { kind: "palette" }) },
  who: { run: () => go({ name: null, view: "who" }), title: "Who is there" },
  help: { run: () => (dialog.value = { kind: "help" }), title: "Keys" },
  view_list: { run: view("list"), title: "As a list", list: true },
  view_flow: { run: view("flow"), title: "As columns", list: true },
  view_graph: { run: view("graph"), title: "As a graph", list: true },
  view_history: { run: view("history"), title: "What happened", list: true },
  why: { run: explain, title: "Why can't it start?", task: true },
  start: { run: statusOf("Start", "in_progress"), title: "Start", task: true, change: true },
  done: { run: statusOf("Done", "completed", RESULT), title: "Done", task: true, change: true },
  fail: { run: statusOf("Failed", "failed", REASON), title: "Failed", task: true, change: true },
  pause: { run: statusOf("Pause", "paused"), title: "Pause", task: true, change: true },
  reopen: { run: statusOf("Reopen", "pending"), title: "Reopen", task: true, change: true },
  approve: { run: answer("Approved", true), title: "Approve", task: true, change: true },
  reject: { run: answer("Rejected", false), title: "Reject", task: true, change: true },
  claim: { run: claim, title: "Claim", task: true, change: true },
  release: { run: release, title: "Give the claim back", task: true, change: true },
  add: { run: add, title: "Add", change: true },
  note: { run: note, title: "Write a note", task: true, change: true },
  edit: { run: edit, title: "Edit", task: true, change: true },
  delete: { run: remove, title: "Delete", task: true, change: true },
  move_down: { run: move(1), title: "Move down", task: true, change: true },
  move_up: { run: move(-1), title: "Move up", task: true, change: true },
  raise: { run: priority(1), title: "More urgent", task: true, change: true },
  lower: { run: priority(-1), title: "Less urgent", task: true, change: true },
  mark: { run: mark, task: true },
  mark_all: { run: markAll, title: "Mark all that are shown", list: true },
  copy: { run: copy, title: "Copy number and title", task: true },
  repeat: { run: () => last?.(), task: true, change: true },
  undo: { run: takeMineBack("Undo", "Undo your last change?"), title: "Undo…", list: true, change: true },
  redo: { run: takeMineBack("Redo", "Redo what you undid?", { redo: true }), title: "Redo…", list: true, change: true },
  older: { run: () => attempt(() => goToVersion(-1)), list: true },
  newer: { run: () => attempt(() => goToVersion(1)), list: true },
  now: { run: () => look(null), title: "Back to now", list: true },
  notify: {
    run: notify,
    get title() {
      return isNotifying() ? "Stop notifications" : "Notify me when something fails or waits";
    },
  },
  share: { run: share, title: "Share a read-only link" },
  sign_out: { run: () => signOut(), title: "Sign this browser out" },
};

/** Whether a command can do something now. */
export function can(name) {
  const { list: onList, task: onTask, change } = COMMANDS[name];
  if ((onList || onTask) && !(place.value.name && shownRows.value)) return false;
  if (onTask && !task.value && !marks.value.size) return false;
  return !change || mayChange.value;
}

export function run(name, ...given) {
  if (can(name)) return COMMANDS[name].run(...given);
  if (COMMANDS[name].change && isPast.value) say("The past can't be changed: n goes back to now.", "bad");
  else if (COMMANDS[name].change && !mayChange.value) say("This link may only read.", "bad");
}

/** What the palette finds: commands that can be run now, and all lists. */
export function findable() {
  const found = Object.entries(COMMANDS)
    .filter(([name, { title }]) => title && can(name))
    .map(([name, { title }]) => ({ key: name, text: title, kind: "command", run: () => run(name) }));
  const isElsewhere = place.value.name || place.value.view === "who";
  if (isElsewhere && !session.value.scope.list) found.push({ key: "board", text: "Board", kind: "list", run: home });
  for (const { conversation: name, title } of cards.value.values()) {
    const text = safe(title ? `${title} · ${name}` : name);
    found.push({ key: `list ${name}`, text, kind: "list", run: () => go({ name }) });
  }
  return found;
}
