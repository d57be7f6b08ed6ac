// State of the page: all lists, the open list, and its visible tasks.

import { batch, computed, effect, signal } from "./vendor.js";
import { Link, Problem, call, session } from "./link.js";
import { VIEWS, go, hashOf, place, setQuery } from "./place.js";
import { Rows, isDeferred, isFinished, isLate, buildRows, stateOf } from "./rows.js";
import { GLYPHS } from "./words.js";

export { VIEWS, go, hashOf, place };
export const API = "/api/v1/conversations/";

// All lists.

export const cards = signal(new Map());
export const isBoardLoaded = signal(false);
let incomingCards = null; // pages of the board, until the last one has arrived

export const needsAttention = (card) => card.counts.failed > 0 || card.counts.paused > 0 || !!card.damaged;
export const total = (counts) => counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed;
const isOpen = (card) => card.counts.pending + card.counts.in_progress + card.counts.paused > 0;
const DAY_MS = 86_400_000;

/** The number of tasks of all lists that wait for a yes or have failed. */
export const needsCount = computed(() => {
  let count = 0;
  for (const { counts, waiting = 0 } of cards.value.values()) count += counts.failed + waiting;
  return count;
});

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
export const past = signal(null); // { version, rows } while an old version is shown
export const isPast = computed(() => past.value !== null);
export const canChange = computed(() => session.value?.scope.mode !== "ro" && !isPast.value);
export const visibleRows = computed(() => past.value?.rows ?? list.value?.rows ?? null);
export const followers = signal([]); // other clients that follow the open list
export const filter = signal("");
export const marks = signal(new Set());
export const cursor = computed(() => place.value.task);

const FILTER_TESTS = {
  all: () => true,
  open: (task) => !isFinished(task),
  ready: (task) => stateOf(task) === "pending" && !isDeferred(task) && !visibleRows.value?.hasOpenParts(task),
  blocked: (task) => !isFinished(task) && !!task.open_blockers?.length,
  running: (task) => task.status === "in_progress",
  paused: (task) => task.status === "paused",
  done: (task) => task.status === "completed",
  failed: (task) => task.status === "failed",
  deferred: (task) => !isFinished(task) && isDeferred(task),
  late: (task) => isLate(task),
};
export const FILTERS = ["all", "open", "ready", "blocked", "running", "paused", "done", "failed"];

/** Add a word to the filter, or remove it. */
export function toggleWord(word) {
  const words = filter.value.split(/\s+/).filter(Boolean);
  filter.value = (words.includes(word) ? words.filter((other) => other !== word) : [...words, word]).join(" ");
}

/** Return the filter word for a label, with dots for spaces, since a space would end the word. */
export const labelWord = (label) => `+${label.replaceAll(/\s/g, ".")}`;

/** Return a predicate for a filter such as `is:blocked @ann p:high +web words`, all of whose words must match. */
export function compileFilter(text) {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    if (word.startsWith("is:")) return FILTER_TESTS[word.slice(3)] ?? (() => false);
    if (word.startsWith("@")) return (task) => (task.owner ?? "").toLowerCase().startsWith(word.slice(1));
    if (word.startsWith("p:")) return (task) => task.priority.startsWith(word.slice(2));
    if (word.length > 1 && word[0] === "+") {
      return (task) => !!task.labels?.some((label) => labelWord(label).toLowerCase().startsWith(word));
    }
    if (/^#\d+$/.test(word)) return (task) => task.id === word.slice(1);
    return ({ title, active_form: doing, description, labels }) =>
      [title, doing, description, ...(labels ?? [])].join(" ").toLowerCase().includes(word);
  });
  return (task) => tests.every((test) => test(task));
}

/** The visible tasks' ids, in order. Without a filter, the same array until a task is added, removed or moved. */
export const visibleIds = computed(() => {
  const rows = visibleRows.value;
  list.value; // rows change in place
  if (!rows) return [];
  const ids = rows.ids();
  if (!filter.value.trim()) return ids;
  const matches = compileFilter(filter.value);
  return ids.filter((id) => matches(rows.tasks.get(id)));
});
export const cursorIndex = computed(() => visibleIds.value.indexOf(cursor.value));

export const visibleTasks = computed(() => (list.value, visibleIds.value.map((id) => visibleRows.value.tasks.get(id))));

export const currentTask = computed(() => (list.value, visibleRows.value?.tasks.get(cursor.value) ?? null));
export const explanation = signal(null); // result of `task.explain` for a task, once requested

/** The columns of the flow. `to` sets the status of a task that is dropped there. */
export const COLUMNS = [
  { title: "Ready", states: ["pending"], to: "pending" },
  { title: "Blocked", states: ["blocked", "paused"], to: "paused" },
  { title: "In progress", states: ["in_progress"], to: "in_progress" },
  { title: "Done", states: ["completed"], to: "completed" },
  { title: "Failed", states: ["failed"], to: "failed" },
];

/** The visible tasks by column. */
export const columns = computed(() =>
  COLUMNS.map(({ states }) => visibleTasks.value.filter((task) => states.includes(stateOf(task)))));

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

let openName;
effect(() => {
  const name = place.value.name;
  if (name === openName) return;
  openName = name;
  rows = new Rows();
  batch(() => {
    for (const each of [list, past, absent]) each.value = null;
    [marks.value, followers.value] = [new Set(), []];
  });
  link.follow(name);
});

// The filter is in the address. While it is typed, the address follows it after a pause.
const TYPING_MS = 250;
let typing = 0;
effect(() => {
  const { q = "" } = place.value.query;
  if (!typing || q !== filter.peek()) filter.value = q;
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
export const taskPath = (id, rest = "") => listPath(`/tasks/${encodeURIComponent(id)}${rest}`);

/** Show an old version; null or the newest version returns to the present. */
export async function showVersion(version) {
  const present = list.value?.rows.version;
  if (version === null || version >= present) return void (past.value = null);
  const target = Math.max(1, version);
  requestedVersion = target;
  const result = await call("GET", listPath(`/tasks?at_version=${target}`));
  if (requestedVersion !== target || place.value.name !== openName) return;
  past.value = { version: target, rows: buildRows({ ...result, version: target }) };
}
let requestedVersion = 0;

export const goToVersion = (step) => showVersion((past.value?.version ?? visibleRows.value.version) + step);

// The toast: the last error or success, read out by screen readers.

export const toast = signal(null);
let toastTimer = 0;
export function showToast(text, kind = "info") {
  toast.value = { text, kind };
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.value = null), kind === "bad" ? 12_000 : 5000);
}

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
  const open = dialog.value;
  dialog.value = null;
  open?.answer?.(answer);
}

/**
 * Open a form. Resolves to its values, to the result of `send(values)` if `send` is given, or to null if cancelled.
 * If `send` fails, the form stays open and shows the error.
 */
export const ask = (question) => new Promise((answer) => (dialog.value = { kind: "form", answer, ...question }));

export const copyText = (task) => `#${task.id} ${task.title}`;
export const priorityMark = (task) =>
  task.priority === "normal" || isFinished(task) ? "" : GLYPHS[task.priority];
