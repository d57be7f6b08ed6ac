// The commands for keys, buttons and the palette, in one table.

import { listVisibleCards, selectedCard } from "./board.js";
import { call, session, signOut } from "./link.js";
import {
  API, ask, attempt, boardFilter, canChange, cards, columns, copyText, currentTask, cursor, dialog, explanation, filter,
  go, goToVersion, isPast, listPath, marks, place, showToast, showVersion, taskPath, visibleIds, visibleRows,
  visibleTasks,
} from "./model.js";
import { CONVERTERS, TIMES, parseWhen, formatWhen } from "./members.js";
import { belowFirst, gateOf } from "./rows.js";
import { isNotifying, toggleNotifications } from "./notify.js";
import { clock, plural, safe } from "./text.js";
import { PRIORITIES } from "./words.js";

let lastChange = null; // repeated by `.`

/** Return the marked tasks, or the task at the cursor. */
function getTargets() {
  if (marks.value.size) return visibleTasks.value.filter((task) => marks.value.has(task.id));
  return currentTask.value ? [currentTask.value] : [];
}

const nameOf = (task) => `#${task.id} ${safe(task.title)}`;
const nameOfAll = (tasks) => (tasks.length === 1 ? nameOf(tasks[0]) : plural(tasks.length, "task"));

/** Change each task, children before their parents. Stop at the first error and show it. */
async function changeEach(verb, tasks, change) {
  let count = 0;
  for (const task of belowFirst(tasks)) {
    if ((await attempt(() => change(task))) === null) break;
    count++;
  }
  const ofAll = count < tasks.length ? ` of ${tasks.length}` : "";
  if (count && tasks.length > 1) showToast(`${verb}: ${plural(count, "task")}${ofAll}`);
  if (count === tasks.length) marks.value = new Set();
  return count;
}

async function postStatus(task, status, more = {}) {
  try {
    return await call("POST", taskPath(task.id, "/status"), { status, ...more });
  } catch (error) {
    if (error.kind !== "lease_held" || !task.fence) throw error;
    const isSure = await ask({ title: `#${task.id} is claimed`, text: [error.message], confirm: "Do it anyway" });
    return isSure && call("POST", taskPath(task.id, "/status"), { status, fence: task.fence, ...more });
  }
}

/** Return whether a task waits for approval. If so, show how to answer, as a status change would withdraw the task. */
function isHeldForApproval(tasks) {
  const held = tasks.find((task) => task.waits_for === "yes");
  if (held) showToast(`#${held.id} waits for ${safe(gateOf(held))}: y approves it, n rejects it with a reason.`, "bad");
  return !!held;
}

/** Set the status of a task that was dragged to a column. */
export async function setStatus(id, status) {
  const task = visibleRows.value?.tasks.get(id);
  if (!task || !canChange.value || task.status === status || isHeldForApproval([task])) return;
  await attempt(() => postStatus(task, status));
}

const buildStatusCommand = (verb, status, field) => async () => {
  const tasks = getTargets();
  if (!tasks.length || isHeldForApproval(tasks)) return;
  const values = field ? await ask({ title: `${verb}: ${nameOfAll(tasks)}`, fields: [field], confirm: verb }) : {};
  if (!values) return;
  const more = Object.fromEntries(Object.entries(values).filter(([, value]) => value));
  lastChange = () => changeEach(verb, getTargets(), (task) => postStatus(task, status, more));
  await changeEach(verb, tasks, (task) => postStatus(task, status, more));
};

const REJECTION = { name: "text", label: "Why not?", required: true, kind: "line" };

/** Approve or reject the tasks that wait for approval, at the versions the user has seen. */
const buildApprovalCommand = (verb, accept) => async () => {
  if (isPast.value && !accept) return showVersion(null);
  const tasks = getTargets().filter((task) => task.waits_for === "yes");
  if (!tasks.length) return getTargets().length && showToast("This task does not wait for approval.", "bad");
  const title = `Reject: ${nameOfAll(tasks)}`;
  const values = accept ? {} : await ask({ title, fields: [REJECTION], confirm: "Reject" });
  if (!values) return;
  const answer = (task) => call("POST", taskPath(task.id, "/approval"), { accept, version: task.version, ...values });
  await changeEach(verb, tasks, answer);
};

// Forms.

const IDS = "numbers, such as 3 7";
const parseIds = (text) => [...new Set((text ?? "").match(/\d+/g) ?? [])];

const TITLE = { name: "title", label: "Title", required: true };
const DESCRIPTION = { name: "description", label: "Description", kind: "long" };
const MEMBERS = [
  { name: "labels", label: "Labels", hint: "separated by commas", half: true },
  { name: "owner", label: "Owner", half: true },
  { name: "priority", label: "Priority", kind: "choice", options: PRIORITIES, half: true },
  { name: "estimate_ms", label: "Estimate", hint: "30m, 2h, 3d", half: true },
  { name: "due", label: "Due", kind: "time", half: true },
  { name: "not_before", label: "Not before", kind: "time", half: true },
  { name: "blocked_by", label: "Waits for", hint: IDS, half: true },
  { name: "parent", label: "Part of", hint: "a number", half: true },
];
const LINKS = {
  name: "links", label: "Links", hint: "a URL, a path or KIND=TARGET on each line", kind: "long", rows: 2,
};
const DOING = { name: "active_form", label: "Shown while in progress", hint: "such as “Writing the parser”" };

/** Return a task's members as the texts of form fields. */
function formatForm(task) {
  const texts = { title: task.title, priority: task.priority, blocked_by: (task.blocked_by ?? []).join(" ") };
  for (const name of ["description", "active_form", "owner", "parent"]) texts[name] = task[name] ?? "";
  for (const [name, [format]] of Object.entries(CONVERTERS)) texts[name] = format(task[name]);
  for (const name of TIMES) texts[name] = formatWhen(task, name);
  return texts;
}

/** Return the members whose text was changed, in the API's format. */
function diffForm(before, after) {
  const body = {};
  for (const [name, value] of Object.entries(after)) {
    if (value === before[name] || name === "blocked_by") continue;
    if (name === "parent") body.parent = parseIds(value)[0] ?? null;
    else if (TIMES.includes(name)) Object.assign(body, parseWhen(value, name));
    else body[name] = CONVERTERS[name] ? CONVERTERS[name][1](value) : value || null;
  }
  return body;
}

async function add() {
  const name = place.value.name;
  if (!name) return addList();
  const before = formatForm({ title: "", priority: "normal", parent: currentTask.value?.parent });
  const added = await ask({
    title: "Add a task",
    fields: [TITLE, DESCRIPTION, ...MEMBERS],
    values: before,
    confirm: "Add",
    send: (values) => {
      const members = diffForm({ ...before, title: null, parent: "" }, values);
      const body = { ...members, blocked_by: parseIds(values.blocked_by) };
      return call("POST", listPath("/tasks"), body);
    },
  });
  if (!added) return;
  showToast(`Added #${added.task.id}`);
  go({ ...place.value, task: added.task.id }, { trail: false });
}

async function addList() {
  const opened = await ask({
    title: "New list",
    fields: [
      { name: "conversation", label: "Name", required: true, hint: "letters, digits and . _ : -" },
      { name: "title", label: "Title", hint: "optional" },
    ],
    confirm: "Create",
    send: ({ conversation, title }) => call("PUT", API + encodeURIComponent(conversation), title ? { title } : {}),
  });
  if (opened) go({ name: opened.conversation.conversation });
}

async function edit() {
  const task = currentTask.value;
  if (!task) return;
  const before = formatForm(task);
  await ask({
    title: `Edit #${task.id}`,
    fields: [TITLE, DESCRIPTION, ...MEMBERS, LINKS, DOING],
    values: before,
    confirm: "Save",
    send: (values) => {
      const body = diffForm(before, values);
      const [old, now] = [task.blocked_by ?? [], parseIds(values.blocked_by)];
      const [added, removed] = [now.filter((id) => !old.includes(id)), old.filter((id) => !now.includes(id))];
      if (added.length) body.add_blocked_by = added;
      if (removed.length) body.remove_blocked_by = removed;
      return Object.keys(body).length ? call("PATCH", taskPath(task.id), body) : {};
    },
  });
}

async function addNote() {
  const task = currentTask.value;
  if (!task) return;
  await ask({
    title: `Note on ${nameOf(task)}`,
    fields: [{ name: "text", label: "Note", kind: "long", hint: "Ctrl Enter adds it", required: true }],
    confirm: "Add",
    send: ({ text }) => call("POST", taskPath(task.id, "/notes"), { text }),
  });
}

async function remove() {
  const tasks = getTargets();
  if (!tasks.length) return;
  const lines = tasks.slice(0, 8).map(nameOf);
  if (tasks.length > 8) lines.push(`and ${tasks.length - 8} more`);
  const title = tasks.length === 1 ? "Delete this task?" : `Delete ${tasks.length} tasks?`;
  if (!(await ask({ title, lines, text: ["You can undo this."], confirm: "Delete", danger: true }))) return;
  const next = getNeighbor(1) ?? getNeighbor(-1);
  const query = new URLSearchParams(tasks.map((task) => ["tasks", task.id]));
  const path = tasks.length === 1 ? taskPath(tasks[0].id) : listPath(`/tasks?${query}`);
  const result = await attempt(() => call("DELETE", path));
  if (!result) return;
  marks.value = new Set();
  go({ ...place.value, task: next && !result.deleted.includes(next) ? next : null }, { trail: false });
  showToast(`Deleted ${plural(result.deleted.length, "task")}. Press u to undo.`);
}

/** Preview an undo or redo, then apply it to the previewed call, so that newer changes don't alter the result. */
async function confirmUndo(selection, { title, confirm, none, text = [] }) {
  const options = { whole: true, claims: true };
  const preview = await attempt(() => call("POST", listPath("/undo"), { ...options, ...selection, preview: true }));
  if (!preview) return;
  if (!preview.undone.length) return showToast(none);
  const send = () => call("POST", listPath("/undo"), { ...options, call: preview.calls[0] });
  const result = await ask({ title, lines: preview.undone.map(safe), text, confirm, send });
  if (result) showToast(`${confirm}: ${plural(result.undone.length, "change")}`);
}

const undoOwn = (verb, title, more) => () =>
  confirmUndo({ mine: true, count: 1, ...more }, {
    title,
    confirm: verb,
    none: `You have nothing to ${verb.toLowerCase()} here: the history shows what others changed.`,
    text: ["Nothing else changes."],
  });

/** Undo a change from the history, made by any actor. */
export const undoCall = ({ version, actor, at }) =>
  confirmUndo({ call: version }, {
    title: `Undo this change by ${safe(actor)}?`,
    confirm: "Undo",
    none: "This change has nothing to undo.",
    text: [`${safe(actor)} made it at ${clock(at)}. Nothing else changes, and the history keeps both.`],
  });

const NAME_KEY = "punchlist.me";
async function askForName() {
  const stored = localStorage.getItem(NAME_KEY);
  if (stored) return stored;
  const values = await ask({
    title: "Who are you?",
    text: ["A claim records who works on a task. This browser remembers the name."],
    fields: [{ name: "owner", label: "Name", required: true }],
    confirm: "Continue",
  });
  if (values) localStorage.setItem(NAME_KEY, values.owner);
  return values?.owner;
}

const DAY_MS = 86_400_000;
async function claim() {
  const owner = await askForName();
  const claimTask = (task) => call("POST", taskPath(task.id, "/claim"), { owner, keep: true, lease_ms: DAY_MS });
  if (owner) await changeEach("Claimed", getTargets(), claimTask);
}
async function release() {
  await changeEach("Released", getTargets(), (task) =>
    call("POST", taskPath(task.id, "/release"), { owner: task.owner }));
}

const buildPriorityCommand = (step) => () => {
  lastChange = buildPriorityCommand(step);
  return changeEach("Priority", getTargets(), (task) => {
    const next = PRIORITIES[Math.min(3, Math.max(0, PRIORITIES.indexOf(task.priority) + step))];
    return next === task.priority ? Promise.resolve({}) : call("PATCH", taskPath(task.id), { priority: next });
  });
};

/** Move a task past its neighbor with the same parent. */
const buildMoveCommand = (step) => async () => {
  const task = currentTask.value;
  if (!task || filter.value) return task && showToast("Clear the filter to move tasks.", "bad");
  const siblings = visibleTasks.value.filter((other) => (other.parent ?? null) === (task.parent ?? null));
  const sibling = siblings[siblings.indexOf(task) + step];
  lastChange = buildMoveCommand(step);
  const side = step < 0 ? "before" : "after";
  if (sibling) await attempt(() => call("POST", taskPath(task.id, "/move"), { [side]: sibling.id }));
};

async function explain() {
  const task = currentTask.value;
  if (!task) return;
  const result = await attempt(() => call("GET", taskPath(task.id, "/explanation")));
  if (result) explanation.value = { task: task.id, startable: result.startable, reasons: result.reasons ?? [] };
}

// Navigation.

/** Return the ids of the cards or tasks on the screen, in order. */
function listIds() {
  if (place.value.screen === "lists") return listVisibleCards().map((card) => card.conversation);
  if (!place.value.name) return [];
  if (place.value.view === "flow") return columns.value.flat().map((task) => task.id);
  return visibleIds.value;
}
const getCursor = () => (place.value.name ? cursor.value : selectedCard.value);

function getNeighbor(step) {
  const ids = listIds();
  const at = ids.indexOf(getCursor());
  return ids[at < 0 ? (step > 0 ? 0 : ids.length - 1) : at + step];
}

function moveTo(id) {
  if (id === undefined) return;
  if (place.value.name) return go({ ...place.value, task: id }, { trail: false });
  selectedCard.value = id;
  queueMicrotask(() => document.querySelector(".card.picked")?.scrollIntoView({ block: "nearest" }));
}

const buildStepCommand = (by) => () => {
  const ids = listIds();
  const at = ids.indexOf(getCursor());
  moveTo(at < 0 ? ids[by > 0 ? 0 : ids.length - 1] : ids[Math.min(ids.length - 1, Math.max(0, at + by))]);
};

function back() {
  const current = place.value;
  if (current.screen === "lists" && (boardFilter.value || selectedCard.value))
    return boardFilter.value ? (boardFilter.value = "") : (selectedCard.value = null);
  if (!current.name) return goHome();
  if (marks.value.size) marks.value = new Set();
  else if (current.task) go({ ...current, task: null }, { trail: false });
  else if (filter.value) filter.value = "";
  else if (isPast.value) showVersion(null);
  else if (current.view !== "list") go({ ...current, view: "list" });
  else goHome();
}

/** Go to the screen Now, or if the link is limited to one list, to that list. */
const goHome = () => go({ name: session.value.scope.list });

function open() {
  if (!place.value.name) return selectedCard.value && go({ name: selectedCard.value });
  if (!cursor.value) return moveTo(listIds()[0]);
  document.querySelector(".detail")?.focus();
}

function toggleMark(id = cursor.value) {
  if (!id) return;
  const next = new Set(marks.value);
  if (!next.delete(id)) next.add(id);
  marks.value = next;
}

async function copy() {
  const text = getTargets().map(copyText).join("\n");
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text);
    showToast("Copied");
  } catch {
    showToast("The browser does not allow copying here.", "bad");
  }
}

function share() {
  const only = place.value.name ? ` --only ${place.value.name}` : "";
  ask({
    title: "Share a read-only link",
    text: ["A link signs in one browser on this machine, within a minute. In a terminal, run:"],
    code: `punch web --link --read-only${only}`,
    confirm: "Close",
    only: true,
  });
}

const toggleAllMarks = () => (marks.value = marks.value.size ? new Set() : new Set(listIds()));

const buildViewCommand = (name) => () => go({ ...place.value, view: name });
const buildScreenCommand = (screen) => () => go({ screen });
const focusFilter = () => document.querySelector("#filter")?.focus();
const openPalette = () => (dialog.value = { kind: "palette" });

const RESULT = { name: "result_summary", label: "Result", hint: "optional", kind: "line" };
const REASON = { name: "fail_reason", label: "Reason", hint: "optional", kind: "line" };

/** Commands by name. Each has its `title` in the palette, and whether it needs a list, a task, or write access. */
export const COMMANDS = {
  down: { run: buildStepCommand(1) },
  up: { run: buildStepCommand(-1) },
  first: { run: () => moveTo(listIds()[0]) },
  last: { run: () => moveTo(listIds().at(-1)) },
  page_down: { run: buildStepCommand(12) },
  page_up: { run: buildStepCommand(-12) },
  open: { run: open },
  back: { run: back },
  home: { run: goHome, title: "Now" },
  inbox: { run: buildScreenCommand("inbox"), title: "Inbox" },
  lists: { run: buildScreenCommand("lists"), title: "All lists" },
  timeline: { run: buildScreenCommand("timeline"), title: "Timeline" },
  chat: { run: buildScreenCommand("chat"), title: "Chat" },
  who: { run: buildScreenCommand("who"), title: "Who is there" },
  filter: { run: focusFilter, title: "Filter" },
  search: { run: openPalette },
  palette: { run: openPalette },
  help: { run: () => (dialog.value = { kind: "help" }), title: "Keys" },
  view_list: { run: buildViewCommand("list"), title: "As a list", list: true },
  view_flow: { run: buildViewCommand("flow"), title: "As columns", list: true },
  view_graph: { run: buildViewCommand("graph"), title: "As a graph", list: true },
  view_timeline: { run: buildViewCommand("timeline"), title: "As a timeline", list: true },
  view_history: { run: buildViewCommand("history"), title: "What happened", list: true },
  why: { run: explain, title: "Why can't it start?", task: true },
  start: { run: buildStatusCommand("Start", "in_progress"), title: "Start", task: true, change: true },
  done: { run: buildStatusCommand("Done", "completed", RESULT), title: "Done", task: true, change: true },
  fail: { run: buildStatusCommand("Failed", "failed", REASON), title: "Failed", task: true, change: true },
  pause: { run: buildStatusCommand("Pause", "paused"), title: "Pause", task: true, change: true },
  reopen: { run: buildStatusCommand("Reopen", "pending"), title: "Reopen", task: true, change: true },
  approve: { run: buildApprovalCommand("Approved", true), title: "Approve", task: true, change: true },
  reject: { run: buildApprovalCommand("Rejected", false), title: "Reject", list: true },
  claim: { run: claim, title: "Claim", task: true, change: true },
  release: { run: release, title: "Release the claim", task: true, change: true },
  add: { run: add, title: "Add", change: true },
  note: { run: addNote, title: "Write a note", task: true, change: true },
  edit: { run: edit, title: "Edit", task: true, change: true },
  edit_all: { run: edit, task: true, change: true },
  delete: { run: remove, title: "Delete", task: true, change: true },
  move_down: { run: buildMoveCommand(1), title: "Move down", task: true, change: true },
  move_up: { run: buildMoveCommand(-1), title: "Move up", task: true, change: true },
  raise: { run: buildPriorityCommand(1), title: "More urgent", task: true, change: true },
  lower: { run: buildPriorityCommand(-1), title: "Less urgent", task: true, change: true },
  mark: { run: toggleMark, task: true },
  mark_all: { run: toggleAllMarks, title: "Mark all visible tasks", list: true },
  copy: { run: copy, title: "Copy number and title", task: true },
  repeat: { run: () => lastChange?.(), task: true, change: true },
  undo: { run: undoOwn("Undo", "Undo your last change?"), title: "Undo…", list: true, change: true },
  redo: { run: undoOwn("Redo", "Redo what you undid?", { redo: true }), title: "Redo…", list: true, change: true },
  older: { run: () => attempt(() => goToVersion(-1)), list: true },
  newer: { run: () => attempt(() => goToVersion(1)), list: true },
  back_to_now: { run: () => showVersion(null), title: "Back to now", list: true },
  notify: {
    run: toggleNotifications,
    get title() {
      return isNotifying() ? "Stop notifications" : "Notify me when something fails or waits";
    },
  },
  share: { run: share, title: "Share a read-only link" },
  sign_out: { run: () => signOut(), title: "Sign this browser out" },
};

const screenCommands = {}; // by screen, or for a list's view by "list/VIEW"

/** Add commands that work on a screen only, or replace others there. A lazily loaded screen adds its own. */
export const addCommands = (screen, commands) => (screenCommands[screen] = { ...screenCommands[screen], ...commands });

/** Return the command of a name on the current screen. */
function findCommand(name) {
  const { screen, view } = place.value;
  return screenCommands[`${screen}/${view}`]?.[name] ?? screenCommands[screen]?.[name] ?? COMMANDS[name];
}

/** Return whether a command can be used now. */
export function canRun(name) {
  const command = findCommand(name);
  if (!command) return false;
  const { list: onList, task: onTask, change } = command;
  if ((onList || onTask) && !(place.value.name && visibleRows.value)) return false;
  if (onTask && !currentTask.value && !marks.value.size) return false;
  return !change || canChange.value;
}

export function run(name, ...args) {
  const command = findCommand(name);
  if (canRun(name)) return command.run(...args);
  if (command?.change && isPast.value) showToast("The past can't be changed. Press n to go back to now.", "bad");
  else if (command?.change && !canChange.value) showToast("This link is read-only.", "bad");
}

/** Return the entries of the palette: commands that can be used now, and all lists. */
export function listPaletteEntries() {
  const entries = Object.entries(COMMANDS)
    .filter(([name, { title }]) => title && canRun(name))
    .map(([name, { title }]) => ({ key: name, text: title, kind: "command", run: () => run(name) }));
  for (const { conversation: name, title } of cards.value.values()) {
    const text = safe(title ? `${title} · ${name}` : name);
    entries.push({ key: `list ${name}`, text, kind: "list", run: () => go({ name }) });
  }
  return entries;
}
