// State of the page: all lists, the open list, and its visible tasks.

import { batch, computed, effect, signal } from "./vendor.js";
import { Link, Problem, call, session } from "./link.js";
import { VIEWS, go, hashOf, place, setQuery } from "./place.js";
import { compileFilter, splitWords } from "./filter.js";
import { Rows, isFinished } from "./rows.js";
import { showToast } from "./toast.js";
import { safe } from "./text.js";
import { GLYPHS } from "./words.js";

export { VIEWS, go, hashOf, place, showToast };
export const API = "/api/v1/conversations/";

// All lists.

export const cards = signal(new Map());
export const isBoardLoaded = signal(false);
let incomingCards = null; // pages of the board, until the last one has arrived

export const needsAttention = (card) => card.counts.failed > 0 || card.counts.paused > 0 || !!card.damaged;
export const total = (counts) => counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed;
const isOpen = (card) => card.counts.pending + card.counts.in_progress + card.counts.paused > 0;
const DAY_MS = 86_400_000;

const SECTIONS = [
  { key: "needs", title: "Needs you", has: needsAttention },
  { key: "working", title: "Being worked on", has: (card) => card.counts.in_progress > 0 },
  { key: "waiting", title: "Waiting", has: isOpen },
  { key: "done", title: "Done today", has: (card) => total(card.counts) > 0 && Date.now() - card.updated_at < DAY_MS },
  { key: "quiet", title: "Quiet", has: () => true },
];

export const boardFilter = signal("");

/** The number of repository lists that have the same name before the hash, by that name. */
const stemCounts = computed(() => {
  const counts = new Map();
  for (const id of cards.value.keys()) counts.set(stemOf(id), (counts.get(stemOf(id)) ?? 0) + 1);
  return counts;
});
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const stemOf = (id) => (GUID.test(id) ? undefined : /^([^:]+)-[0-9a-f]{12}$/.exec(id)?.[1]);

/** Return the name of a list without its hash, unless that would be ambiguous. */
function shortenName(id) {
  const stem = stemOf(id);
  return stem && stemCounts.value.get(stem) === 1 && !cards.value.has(stem) ? stem : id;
}

export const nameOf = (card) => card.title || shortenName(card.conversation);

/** The board, as sections of cards with the most recently changed first. */
export const board = computed(() => {
  const words = boardFilter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const sections = SECTIONS.map((section) => ({ ...section, cards: [] }));
  for (const card of cards.value.values()) {
    const running = (card.running ?? []).map((task) => `@${task.owner} ${task.title}`);
    const text = [card.conversation, card.title ?? "", ...running].join(" ").toLowerCase();
    if (words.every((word) => text.includes(word))) sections.find((section) => section.has(card)).cards.push(card);
  }
  const newestFirst = (a, b) => b.updated_at - a.updated_at || (a.conversation < b.conversation ? -1 : 1);
  for (const section of sections) section.cards.sort(newestFirst);
  return sections.filter((section) => section.cards.length);
});

export const card = computed(() => cards.value.get(place.value.name) ?? null);

// The open list.

let rows = new Rows();
export const list = signal(null); // { name, rows }, a new object after each change
export const absent = signal(null); // the problem if the open list doesn't exist
/** The version that is shown, null for the present, and an earlier one that it is compared with. past.js reads them. */
export const versions = signal({ from: null, to: null });
export const past = signal(null); // { version, rows } of `versions.to`, once it has been read
export const isPast = computed(() => versions.value.from !== null || versions.value.to !== null);
export const canChange = computed(() => session.value?.scope.mode !== "ro" && !isPast.value);
export const visibleRows = computed(() => past.value?.rows ?? list.value?.rows ?? null);
/** Changes when a task may stand elsewhere, free another number of tasks, or hold others: rows change in place. */
export const shape = computed(() => (list.value, visibleRows.value?.shape));
export const followers = signal([]); // other clients that follow the open list
export const filter = signal("");
export const marks = signal(new Set());
export const cursor = computed(() => place.value.task);

/** Add a word to the filter, or remove it. */
export function toggleWord(word) {
  const words = splitWords(filter.value);
  filter.value = (words.includes(word) ? words.filter((other) => other !== word) : [...words, word]).join(" ");
}

/**
 * Return a value computed from the visible rows. It is recomputed only if a task may stand elsewhere, or if the values
 * of `listInputs` or, with a filter, any task changed: rows change in place, 100 times a second.
 */
export function computedFromRows(compute, listInputs = () => []) {
  let inputs = [];
  let value;
  return computed(() => {
    list.value; // rows change in place
    const rows = visibleRows.value;
    const text = filter.value.trim();
    const current = [rows, rows?.shape, text, text && rows?.version, ...listInputs()];
    if (current.length !== inputs.length || current.some((input, at) => input !== inputs[at]))
      [inputs, value] = [current, compute(rows)];
    return value;
  });
}

/** The visible tasks' ids, in order. Without a filter, the same array until a task is added, removed or moved. */
export const visibleIds = computedFromRows((rows) => {
  const ids = rows?.ids() ?? [];
  if (!filter.value.trim()) return ids;
  const matches = compileFilter(filter.value);
  return ids.filter((id) => matches(rows.tasks.get(id), rows));
});

export const visibleTasks = computed(() => (list.value, visibleIds.value.map((id) => visibleRows.value.tasks.get(id))));

export const currentTask = computed(() => (list.value, visibleRows.value?.tasks.get(cursor.value) ?? null));
export const explanation = signal(null); // result of `task.explain` for a task, once requested

/**
 * The columns of the flow. `has` are their groups by state, and `to` is the status of a task that is dropped there.
 * Those without `to` are shown only if they have tasks, apart from the blocked ones.
 */
const COLUMNS = [
  { title: "Ready", has: (group) => group === "ready", to: "pending" },
  { title: "Blocked", has: (group) => group === "blocked", isKept: true },
  { title: "Put off", has: (group) => group === "later" },
  { title: "Running", has: (group) => group === "running", to: "in_progress" },
  { title: "Waits for a yes", has: (group, task) => group === "needs" && task.status !== "failed" },
  { title: "Paused", has: (group) => group === "paused", to: "paused" },
  { title: "Done", has: (group) => group === "done", to: "completed", isNewestFirst: true },
  { title: "Failed", has: (group, task) => task.status === "failed", to: "failed", isNewestFirst: true },
];

/** The columns to show, each with its visible tasks. */
export const columns = computed(() => {
  const rows = visibleRows.value;
  const filled = COLUMNS.map((column) => ({ ...column, tasks: [] }));
  for (const task of visibleTasks.value) {
    const group = rows.groupOf(task);
    filled.find((column) => column.has(group, task)).tasks.push(task);
  }
  for (const { tasks, isNewestFirst } of filled)
    if (isNewestFirst) tasks.sort((a, b) => b.status_changed_at - a.status_changed_at);
  return filled.filter((column) => column.tasks.length || column.to || column.isKept);
});

// Time: ticks every second, but only while a visible task is in progress.

export const now = signal(Date.now());
const isRunning = computed(() => {
  if (place.value.name) return list.value?.rows.counts?.in_progress > 0;
  return [...cards.value.values()].some((card) => card.running?.length);
});
effect(() => {
  const interval = isRunning.value ? 1000 : 30_000;
  const timer = setInterval(() => document.hidden || (now.value = Date.now()), interval);
  return () => clearInterval(timer);
});

// The stream.

const SELF = "punch web"; // actor of this server's connections, including this tab's stream
let frame = 0;
const dirty = { cards: false, list: false };
/** Publish changed cards or rows at the next frame. */
function publishSoon(kind) {
  dirty[kind] = true;
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    batch(() => {
      if (dirty.cards) cards.value = new Map(cards.value);
      if (dirty.list) list.value = { name: place.value.name, rows };
      dirty.cards = dirty.list = false;
    });
  });
}

export const eventWatchers = new Set(); // called with the new events of all lists
export const watchers = new Set(); // called with (card, previous card) for each change to a list

export const link = new Link({
  isAwake: () => !document.hidden || watchers.size > 0,
  onConnect() {
    incomingCards = null;
    rows.begin();
    followers.value = [];
  },
  onNotFound(problem, name) {
    if (name === place.value.name) absent.value = problem;
  },
  onEvent({ event, data }) {
    if (event === "cards") {
      incomingCards ??= new Map();
      for (const card of data.conversations) incomingCards.set(card.conversation, card);
      if (data.next_cursor) return;
      cards.value = incomingCards;
      incomingCards = null;
      isBoardLoaded.value = true;
    } else if (event === "board") {
      const before = cards.value.get(data.card.conversation);
      if (before && before.created_at === data.card.created_at && before.version > data.card.version) return;
      if (data.gone) cards.value.delete(data.card.conversation);
      else cards.value.set(data.card.conversation, data.card);
      for (const watch of watchers) watch(data.card, before);
      publishSoon("cards");
      if (absent.value && data.card.conversation === place.value.name && !data.gone) reopen();
    } else if (event === "change") {
      for (const watch of eventWatchers) watch(data.events);
    } else if (event === "presence") {
      if (data.conversation !== place.value.name) return;
      const withoutSelf = (client) =>
        client.actor === SELF ? { ...client, connections: client.connections - 1 } : client;
      followers.value = data.present.map(withoutSelf).filter((client) => client.connections);
    } else if (event === "rows" && data.conversation === place.value.name && rows.take(data)) publishSoon("list");
  },
});

function reopen() {
  absent.value = null;
  link.restart();
}

// A link limited to one list doesn't get the board, so the list's title is requested once.
effect(() => {
  const only = session.value?.scope.list;
  const setCard = ({ conversation }) => (cards.value = new Map([[only, conversation]]));
  if (only) call("GET", API + encodeURIComponent(only)).then(setCard, () => {});
});

export const lastList = signal(""); // the list that was open last

let openName;
effect(() => {
  const name = place.value.name;
  if (name === openName) return;
  openName = name;
  if (name) lastList.value = name;
  rows = new Rows();
  batch(() => {
    for (const each of [list, past, absent]) each.value = null;
    versions.value = { from: null, to: null };
    [marks.value, followers.value] = [new Set(), []];
  });
  link.follow(name);
});

// The filter is in the address. While it is typed, the address follows it after a pause.
const TYPING_MS = 250;
let typing = 0;
let readQuery = ""; // list and filter of the address
effect(() => {
  const { name, query: { q = "" } } = place.value;
  const current = JSON.stringify([name, q]);
  if (current !== readQuery) [readQuery, filter.value] = [current, q];
});
effect(() => {
  const q = filter.value;
  clearTimeout(typing);
  typing = 0;
  if (q === (place.peek().query.q ?? "")) return;
  typing = setTimeout(() => {
    typing = 0;
    setQuery({ q });
  }, TYPING_MS);
});
effect(() => {
  session.value;
  link.restart();
});

// Changes to the open list.

export const listPath = (rest = "") => API + encodeURIComponent(place.value.name) + rest;
export const taskPath = (id, rest = "", name = place.value.name) =>
  `${API}${encodeURIComponent(name)}/tasks/${encodeURIComponent(id)}${rest}`;

/** Report that the address names a thing that was deleted or never existed. */
export const reportAbsent = (what, id) =>
  showToast(`The address names a ${what} that is not there: ${safe(id)}`, "bad");

const ABSENT_MS = 1000; // A new task is in the response of its call before its row arrives.
const loadedName = computed(() => list.value?.name);
effect(() => {
  const { name, task } = place.value;
  if (!task || loadedName.value !== name) return;
  const timer = setTimeout(() => {
    if (isPast.value || list.value?.rows.tasks.has(task)) return;
    reportAbsent("task", `#${task}`);
    go({ ...place.value, task: null }, { trail: false });
  }, ABSENT_MS);
  return () => clearTimeout(timer);
});

/** Run a change and return its result. If the server returns an error, show it and return null. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    showToast(error.message, "bad");
    return null;
  }
}

// The open dialog. At most one is open.

export const dialog = signal(null);

export function closeDialog(answer = null) {
  const open = dialog.peek();
  dialog.value = null;
  open?.answer?.(answer);
}

const shownName = computed(() => place.value.name);
effect(() => {
  shownName.value; // An answer would change a task of another list.
  closeDialog();
});

/**
 * Open a form. Resolves to its values, to the result of `send(values)` if `send` is given, or to null if cancelled.
 * If `send` fails, the form stays open and shows the error.
 */
export const ask = (question) => new Promise((answer) => (dialog.value = { kind: "form", answer, ...question }));

export const copyText = (task) => `#${task.id} ${task.title}`;
export const priorityMark = (task) =>
  task.priority === "normal" || isFinished(task) ? "" : GLYPHS[task.priority];
