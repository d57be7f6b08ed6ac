// The commands for keys, buttons and the palette, in one table.

import { signal } from "./vendor.js";
import { listVisibleCards, selectedCard } from "./lists.js";
import { buildLinkCommand, call, session, signOut } from "./link.js";
import {
  ask, attempt, boardFilter, canChange, cards, columns, copyText, currentTask, cursor, dialog, explanation, filter,
  go, isPast, listPath, marks, place, showToast, taskPath, versions, visibleIds, visibleRows, visibleTasks,
} from "./model.js";
import { findFormerNeighbor, groupByNext, listGroupMates, shownIds, sortByNext } from "./groups.js";
import { loadLater } from "./lazy.js";
import { backToNow, goToVersion, isPlaying, toggleStrip } from "./past.js";
import { belowFirst, gateOf } from "./rows.js";
import { plural, safe } from "./text.js";
import { showDone, undoOwn } from "./undo.js";
import { KEYS, PRIORITIES } from "./words.js";

export { undoCall } from "./undo.js";

let lastChange = null; // repeated by `.`

/** Return the marked tasks, or the task at the cursor. */
function getTargets() {
  if (marks.value.size) return visibleTasks.value.filter((task) => marks.value.has(task.id));
  return currentTask.value ? [currentTask.value] : [];
}

export const nameOfTask = (task) => `#${task.id} ${safe(task.title)}`;
const nameOfAll = (tasks) => (tasks.length === 1 ? nameOfTask(tasks[0]) : plural(tasks.length, "task"));

/**
 * Change each task, children before their parents. Stop at the first error and show it. `change` is called with a task
 * and a function that returns its path, also after the person has gone to another list.
 */
export async function changeEach(verb, tasks, change) {
  const name = place.value.name;
  const results = [];
  for (const task of belowFirst(tasks)) {
    const result = await attempt(() => change(task, (rest) => taskPath(task.id, rest, name)));
    if (result === null) break;
    results.push(result);
  }
  if (results.length === tasks.length) {
    if (tasks.length === marks.value.size) marks.value = new Set();
    showDone(`${verb}: ${nameOfAll(tasks)}`, results, name);
  } else if (results.length) showDone(`${verb}: ${results.length} of ${plural(tasks.length, "task")}`, results, name);
  return results.length;
}

async function postStatus(task, pathOf, status, more = {}) {
  try {
    return await call("POST", pathOf("/status"), { status, ...more });
  } catch (error) {
    if (error.kind !== "lease_held" || !task.fence) throw error;
    const isSure = await ask({ title: `#${task.id} is claimed`, text: [error.message], confirm: "Do it anyway" });
    return isSure && call("POST", pathOf("/status"), { status, fence: task.fence, ...more });
  }
}

/** Return whether a task waits for approval. If so, show how to answer, as a status change would withdraw the task. */
function isHeldForApproval(tasks) {
  const held = tasks.find((task) => task.waits_for === "yes");
  if (held) showToast(`#${held.id} waits for ${safe(gateOf(held))}: y approves it, n rejects it with a reason.`, "bad");
  return !!held;
}

/** Set the status of a task that was dragged to a column. Ask for the result or the reason. */
export async function setStatus(id, status) {
  const task = visibleRows.value?.tasks.get(id);
  if (!task || !canChange.value || task.status === status || isHeldForApproval([task])) return;
  const field = { completed: RESULT, failed: REASON }[status];
  const values = field ? await ask({ title: `${STATUS_VERBS[status]}: ${nameOfTask(task)}`, fields: [field], confirm: STATUS_VERBS[status] }) : {};
  if (!values) return;
  await changeEach(STATUS_VERBS[status], [task], (_, pathOf) => postStatus(task, pathOf, status, dropEmpty(values)));
}

/** Return the values of a form that are not empty. */
const dropEmpty = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value));

const STATUS_VERBS = {
  in_progress: "Started", completed: "Done", failed: "Failed", paused: "Paused", pending: "Reopened",
};

const buildStatusCommand = (verb, status, field) => async () => {
  const tasks = getTargets();
  if (!tasks.length || isHeldForApproval(tasks)) return;
  const values = field ? await ask({ title: `${verb}: ${nameOfAll(tasks)}`, fields: [field], confirm: verb }) : {};
  if (!values) return;
  const more = dropEmpty(values);
  const change = (targets) => changeEach(STATUS_VERBS[status], targets, (task, pathOf) => postStatus(task, pathOf, status, more));
  lastChange = () => isHeldForApproval(getTargets()) || change(getTargets());
  await change(tasks);
};

const REJECTION = { name: "text", label: "Why not?", required: true, kind: "line" };

/** Approve or reject the tasks that wait for approval, at the versions the user has seen. */
const buildApprovalCommand = (verb, accept) => async () => {
  if (isPast.value && !accept) return backToNow();
  if (!canChange.value) return showToast("This link is read-only.", "bad");
  const tasks = getTargets().filter((task) => task.waits_for === "yes");
  if (!tasks.length) return getTargets().length && showToast("This task does not wait for approval.", "bad");
  const title = `Reject: ${nameOfAll(tasks)}`;
  const values = accept ? {} : await ask({ title, fields: [REJECTION], confirm: "Reject" });
  if (!values) return;
  const answer = (task, pathOf) => call("POST", pathOf("/approval"), { accept, version: task.version, ...values });
  await changeEach(verb, tasks, answer);
};

// Forms, which are loaded when the first one is opened.

const loadForms = () => import("./forms.js");
loadLater(loadForms);
const buildFormCommand = (name) => async () => (await loadForms())[name]();

/** Edit the title where the details show it; their module is loaded with them. */
async function editTitle() {
  const { editing } = await import("./inplace.js");
  if (currentTask.value) editing.value = `${currentTask.value.id} title`;
}

/** Whether the line that adds tasks is shown in a list. */
export const isAdding = signal(false);
function add() {
  if (!place.value.name) return buildFormCommand("addList")();
  isAdding.value = true;
  document.querySelector(".inline-add input")?.focus();
}

async function remove() {
  const tasks = getTargets();
  if (!tasks.length) return;
  const lines = tasks.slice(0, 8).map(nameOfTask);
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
  const what = tasks.length === 1 && result.deleted.length === 1 ? lines[0] : plural(result.deleted.length, "task");
  showDone(`Deleted: ${what}`, [result]);
}

const NAME_KEY = "punchlist.me";
async function askForName() {
  const stored = session.value.person || localStorage.getItem(NAME_KEY);
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
  const claimTask = (task, pathOf) => call("POST", pathOf("/claim"), { owner, keep: true, lease_ms: DAY_MS });
  if (owner) await changeEach("Claimed", getTargets(), claimTask);
}
async function release() {
  await changeEach("Released", getTargets(), (task, pathOf) =>
    call("POST", pathOf("/release"), { owner: task.owner }));
}

const buildPriorityCommand = (step) => () => {
  lastChange = buildPriorityCommand(step);
  return changeEach("Priority", getTargets(), (task, pathOf) => {
    const next = PRIORITIES[Math.min(3, Math.max(0, PRIORITIES.indexOf(task.priority) + step))];
    return next === task.priority ? Promise.resolve({}) : call("PATCH", pathOf(), { priority: next });
  });
};

/** Move a task past its neighbor in the group with the same parent. */
const buildMoveCommand = (step) => async () => {
  const task = currentTask.value;
  if (!task || filter.value) return task && showToast("Clear the filter to move tasks.", "bad");
  const mates = listGroupMates(task.id);
  if (!mates) return showToast("Sort by order (o) to move tasks.", "bad");
  const siblings = mates.map((id) => visibleRows.value.tasks.get(id)).filter(
    (other) => (other.parent ?? null) === (task.parent ?? null));
  const sibling = siblings[siblings.indexOf(task) + step];
  lastChange = buildMoveCommand(step);
  const side = step < 0 ? "before" : "after";
  if (sibling)
    await changeEach("Moved", [task], () => call("POST", taskPath(task.id, "/move"), { [side]: sibling.id }));
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
  const { view } = place.value;
  if (view === "flow") return columns.value.flatMap(({ tasks }) => tasks.map((task) => task.id));
  return view === "list" ? shownIds.value : visibleIds.value;
}
const getCursor = () => (place.value.name ? cursor.value : selectedCard.value);

function getNeighbor(step) {
  const former = place.value.view === "list" && findFormerNeighbor(step);
  if (former) return former;
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
  if (Math.abs(by) === 1) return moveTo(getNeighbor(by));
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
  else if (isPast.value) backToNow();
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

function copy() {
  const text = getTargets().map(copyText).join("\n");
  if (text) copyToClipboard(text);
}

export async function copyToClipboard(text) {
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
    code: buildLinkCommand(` --read-only${only}`),
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

/** Commands by name. Each has its `title` in the palette, and whether it needs a list, a task, all lists, or write access. */
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
  inbox: { run: buildScreenCommand("inbox"), title: "Inbox", board: true },
  lists: { run: buildScreenCommand("lists"), title: "All lists", board: true },
  timeline: { run: buildScreenCommand("timeline"), title: "Timeline" },
  chat: { run: buildScreenCommand("chat"), title: "Chat" },
  who: { run: buildScreenCommand("who"), title: "Who is there" },
  filter: { run: focusFilter, title: "Filter" },
  group: { run: groupByNext, title: "Group by state, owner, label or parent", list: true },
  sort: { run: sortByNext, title: "Sort by the next column", list: true },
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
  note: { run: buildFormCommand("addNote"), title: "Write a note", task: true, change: true },
  edit: { run: editTitle, title: "Edit the title", task: true, change: true },
  edit_all: { run: buildFormCommand("edit"), title: "Edit all members", task: true, change: true },
  blockers: {
    run: () => (dialog.value = { kind: "picker", id: currentTask.value.id }), title: "What it waits for", task: true,
    change: true,
  },
  delete: { run: remove, title: "Delete", task: true, change: true },
  move_down: { run: buildMoveCommand(1), title: "Move down", task: true, change: true },
  move_up: { run: buildMoveCommand(-1), title: "Move up", task: true, change: true },
  raise: { run: buildPriorityCommand(1), title: "More urgent", task: true, change: true },
  lower: { run: buildPriorityCommand(-1), title: "Less urgent", task: true, change: true },
  mark: { run: (id) => (isPast.value ? (isPlaying.value = !isPlaying.value) : toggleMark(id)), list: true },
  mark_all: { run: toggleAllMarks, title: "Mark all visible tasks", list: true },
  copy: { run: copy, title: "Copy number and title", task: true },
  repeat: { run: () => lastChange?.(), task: true, change: true },
  undo: { run: () => undoOwn(), title: "Undo", change: true },
  redo: { run: () => undoOwn(true), title: "Redo", change: true },
  older: { run: () => goToVersion(-1), list: true },
  newer: { run: () => goToVersion(1), list: true },
  time: { run: toggleStrip, title: "Time machine", list: true },
  back_to_now: { run: backToNow, title: "Back to now", list: true },
  share: { run: share, title: "Share a read-only link" },
  sign_out: { run: () => signOut(), title: "Sign this browser out" },
};

const screenCommands = {}; // by screen, or for a list's view by "list/VIEW"; two versions are the view "compare"

/** Add commands that work on a screen only, or replace others there. A lazily loaded screen adds its own. */
export const addCommands = (screen, commands) => (screenCommands[screen] = { ...screenCommands[screen], ...commands });

/** Return the command of a name on the current screen. */
function findCommand(name) {
  const { screen } = place.value;
  const view = versions.value.from === null ? place.value.view : "compare";
  return screenCommands[`${screen}/${view}`]?.[name] ?? screenCommands[screen]?.[name] ?? COMMANDS[name];
}

/** Return whether a command can be used now. */
export function canRun(name) {
  const command = findCommand(name);
  if (!command) return false;
  const { list: onList, task: onTask, board: onBoard, change } = command;
  if (onBoard && session.value.scope.list) return false;
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

/** Return the commands that the palette offers now, each with its `name`, `title` and first `key`, if any. */
export const listCommands = () => Object.entries(COMMANDS)
  .filter(([name, { title }]) => title && canRun(name))
  .map(([name, { title }]) => ({ name, title, key: KEYS[name]?.[0][0] }));
