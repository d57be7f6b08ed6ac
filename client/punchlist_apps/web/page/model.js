// What the page knows: the place in the address, all lists, the list that is open, and what of it is shown.

import { batch, computed, effect, signal } from "./vendor.js";
import { Link, Problem, call, session } from "./link.js";
import { Rows, isDeferred, isFinished, isLate, rowsOf, stateOf } from "./rows.js";
import { GLYPHS } from "./words.js";

export const API = "/api/v1/conversations/";

// The place: #/ is the board, #/who the agents and people, #/list/NAME[/flow|graph|history][/TASK] a list.

export const VIEWS = ["list", "flow", "graph", "history"];
export const place = signal(placeOf(location.hash));

function placeOf(hash) {
  const [, kind, named, ...rest] = hash.slice(1).split("/");
  if (kind === "who") return { name: null, view: kind, task: null };
  const name = session.value?.scope.list ?? (kind === "list" && named ? decodeURIComponent(named) : null);
  if (!name) return { name: null, view: "list", task: null };
  const view = VIEWS.includes(rest[0]) ? rest.shift() : "list";
  return { name, view, task: rest[0] ?? null };
}

export function hashOf({ name, view = "list", task = null }) {
  if (!name) return view === "who" ? "#/who" : "#/";
  return ["#/list", encodeURIComponent(name), view === "list" ? null : view, task].filter(Boolean).join("/");
}

/** Go somewhere; moving among the tasks of a list leaves no trail in the browser's history. */
export function go(to, { trail = true } = {}) {
  const hash = hashOf(to);
  if (hash === (location.hash || "#/")) return;
  history[trail ? "pushState" : "replaceState"](null, "", location.pathname + hash);
  place.value = placeOf(hash);
}
addEventListener("popstate", () => (place.value = placeOf(location.hash)));
addEventListener("hashchange", () => (place.value = placeOf(location.hash)));

// All lists.

export const cards = signal(new Map());
export const known = signal(false); // the board came at least once
let comingCards = null;

export const needsYou = (card) => card.counts.failed > 0 || card.counts.paused > 0 || !!card.damaged;
export const total = (counts) => counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed;
const isOpen = (card) => card.counts.pending + card.counts.in_progress + card.counts.paused > 0;
const DAY = 86_400_000;

const SECTIONS = [
  { key: "needs", title: "Needs you", has: needsYou },
  { key: "working", title: "Being worked on", has: (card) => card.counts.in_progress > 0 },
  { key: "waiting", title: "Waiting", has: isOpen },
  { key: "done", title: "Done today", has: (card) => total(card.counts) > 0 && Date.now() - card.updated_at < DAY },
  { key: "quiet", title: "Quiet", has: () => true },
];

export const boardFilter = signal("");

/** How many lists of repositories have the same name before the hash. */
const stems = computed(() => {
  const counts = new Map();
  for (const id of cards.value.keys()) counts.set(stemOf(id), (counts.get(stemOf(id)) ?? 0) + 1);
  return counts;
});
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const stemOf = (id) => (GUID.test(id) ? undefined : /^([^:]+)-[0-9a-f]{12}$/.exec(id)?.[1]);

/** The name that is shown for a list: without the hash, unless another list could be meant. */
function shortName(id) {
  const stem = stemOf(id);
  return stem && stems.value.get(stem) === 1 && !cards.value.has(stem) ? stem : id;
}

export const nameOf = (card) => card.title || shortName(card.conversation);

/** The board: sections of cards, the latest changed first. */
export const board = computed(() => {
  const words = boardFilter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = SECTIONS.map((section) => ({ ...section, cards: [] }));
  for (const card of cards.value.values()) {
    const running = (card.running ?? []).map((one) => `@${one.owner} ${one.title}`);
    const text = [card.conversation, card.title ?? "", ...running].join(" ").toLowerCase();
    if (words.every((word) => text.includes(word))) found.find((section) => section.has(card)).cards.push(card);
  }
  const newestFirst = (a, b) => b.updated_at - a.updated_at || (a.conversation < b.conversation ? -1 : 1);
  for (const section of found) section.cards.sort(newestFirst);
  return found.filter((section) => section.cards.length);
});

export const card = computed(() => cards.value.get(place.value.name) ?? null);

// The open list.

let rows = new Rows();
export const list = signal(null); // { name, rows, stamp }: a new object at each change
export const absent = signal(null); // the problem if the open list does not exist
export const past = signal(null); // { version, rows } while an old version is shown
export const isPast = computed(() => past.value !== null);
export const mayChange = computed(() => session.value?.scope.mode !== "ro" && !isPast.value);
export const shownRows = computed(() => past.value?.rows ?? list.value?.rows ?? null);
export const others = signal([]); // who else follows the open list
export const filter = signal("");
export const marks = signal(new Set());
export const cursor = computed(() => place.value.task);

const IS = {
  all: () => true,
  open: (task) => !isFinished(task),
  ready: (task) => stateOf(task) === "pending" && !isDeferred(task) && !shownRows.value?.holds(task),
  blocked: (task) => !isFinished(task) && !!task.open_blockers?.length,
  running: (task) => task.status === "in_progress",
  paused: (task) => task.status === "paused",
  done: (task) => task.status === "completed",
  failed: (task) => task.status === "failed",
  deferred: (task) => !isFinished(task) && isDeferred(task),
  late: (task) => isLate(task),
};
export const FILTERS = ["all", "open", "ready", "blocked", "running", "paused", "done", "failed"];

/** Add a word to the filter, or take it out. */
export function toggleWord(word) {
  const words = filter.value.split(/\s+/).filter(Boolean);
  filter.value = (words.includes(word) ? words.filter((one) => one !== word) : [...words, word]).join(" ");
}

/** The word that a label is filtered by: a blank in it ends the word, so it is written as a dot. */
export const labelWord = (label) => `+${label.replaceAll(/\s/g, ".")}`;

/** What `is:blocked @ann p:high +web words` keeps: every word must fit. */
export function keeps(text) {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
    if (word.startsWith("is:")) return IS[word.slice(3)] ?? (() => false);
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

/** The ids shown, in their order: the same array until a task comes, goes, moves, or the filter keeps another one. */
export const shownIds = computed(() => {
  const found = shownRows.value;
  list.value; // rows change in place
  if (!found) return [];
  const ids = found.ids();
  if (!filter.value.trim()) return ids;
  const keep = keeps(filter.value);
  return ids.filter((id) => keep(found.tasks.get(id)));
});
export const cursorAt = computed(() => shownIds.value.indexOf(cursor.value));

/** The tasks shown. */
export const shown = computed(() => (list.value, shownIds.value.map((id) => shownRows.value.tasks.get(id))));

export const task = computed(() => (list.value, shownRows.value?.tasks.get(cursor.value) ?? null));
export const why = signal(null); // what keeps a task from being started, once it was asked

/** The columns of the flow, and the status that a task gets which is moved there. */
export const COLUMNS = [
  { title: "Ready", states: ["pending"], to: "pending" },
  { title: "Blocked", states: ["blocked", "paused"], to: "paused" },
  { title: "In progress", states: ["in_progress"], to: "in_progress" },
  { title: "Done", states: ["completed"], to: "completed" },
  { title: "Failed", states: ["failed"], to: "failed" },
];

/** The tasks shown, by column. */
export const columns = computed(() =>
  COLUMNS.map(({ states }) => shown.value.filter((one) => states.includes(stateOf(one)))));

// Time: a second passes only where something that is shown runs.

export const now = signal(Date.now());
const runs = computed(() => {
  if (place.value.name) return list.value?.rows.counts?.in_progress > 0;
  return [...cards.value.values()].some((one) => one.running?.length);
});
effect(() => {
  const every = runs.value ? 1000 : 30_000;
  const timer = setInterval(() => document.hidden || (now.value = Date.now()), every);
  return () => clearInterval(timer);
});

// The stream.

const SELF = "punch web"; // the name of our server's connections, of which this tab's stream is one
let due = 0;
const dirty = { cards: false, list: false };
function showSoon(what) {
  dirty[what] = true;
  due ||= requestAnimationFrame(() => {
    due = 0;
    batch(() => {
      if (dirty.cards) cards.value = new Map(cards.value);
      if (dirty.list) list.value = { name: place.value.name, rows };
      dirty.cards = dirty.list = false;
    });
  });
}

export const watchers = new Set(); // called with (card, the card before) for each change of a list

export const link = new Link({
  awake: () => !document.hidden || watchers.size > 0,
  begin() {
    comingCards = null;
    rows.begin();
    others.value = [];
  },
  refused(problem, name) {
    if (name === place.value.name) absent.value = problem;
  },
  take({ event, data }) {
    if (event === "cards") {
      comingCards ??= new Map();
      for (const one of data.conversations) comingCards.set(one.conversation, one);
      if (data.next_cursor) return;
      cards.value = comingCards;
      comingCards = null;
      known.value = true;
    } else if (event === "board") {
      const before = cards.value.get(data.card.conversation);
      if (before && before.created_at === data.card.created_at && before.version > data.card.version) return;
      if (data.gone) cards.value.delete(data.card.conversation);
      else cards.value.set(data.card.conversation, data.card);
      for (const watch of watchers) watch(data.card, before);
      showSoon("cards");
      if (absent.value && data.card.conversation === place.value.name && !data.gone) reopen();
    } else if (event === "presence") {
      if (data.conversation !== place.value.name) return;
      const withoutThis = (one) => (one.actor === SELF ? { ...one, connections: one.connections - 1 } : one);
      others.value = data.present.map(withoutThis).filter((one) => one.connections);
    } else if (event === "rows" && data.conversation === place.value.name && rows.take(data)) showSoon("list");
  },
});

function reopen() {
  absent.value = null;
  link.restart();
}

// A link to one list alone shows no board: what the list is called is asked once.
effect(() => {
  const only = session.value?.scope.list;
  const show = ({ conversation }) => (cards.value = new Map([[only, conversation]]));
  if (only) call("GET", API + encodeURIComponent(only)).then(show, () => {});
});

let opened;
effect(() => {
  const name = place.value.name;
  if (name === opened) return;
  opened = name;
  rows = new Rows();
  batch(() => {
    for (const one of [list, past, absent]) one.value = null;
    [filter.value, marks.value, others.value] = ["", new Set(), []];
  });
  link.follow(name);
});
effect(() => {
  session.value;
  link.restart();
});

// Changes of the open list.

export const listPath = (rest = "") => API + encodeURIComponent(place.value.name) + rest;
export const taskPath = (id, rest = "") => listPath(`/tasks/${encodeURIComponent(id)}${rest}`);

/** Show an old version; null or the present one: back to now. */
export async function look(version) {
  const present = list.value?.rows.version;
  if (version === null || version >= present) return void (past.value = null);
  const wanted = Math.max(1, version);
  looking = wanted;
  const answer = await call("GET", listPath(`/tasks?at_version=${wanted}`));
  if (looking !== wanted || place.value.name !== opened) return;
  past.value = { version: wanted, rows: rowsOf({ ...answer, version: wanted }) };
}
let looking = 0;

export const goToVersion = (step) => look((past.value?.version ?? shownRows.value.version) + step);

// What the page says: the last refusal or success, read out by screen readers.

export const said = signal(null);
let silence = 0;
export function say(text, kind = "info") {
  said.value = { text, kind };
  clearTimeout(silence);
  silence = setTimeout(() => (said.value = null), kind === "bad" ? 12_000 : 5000);
}

/** Run a change; a refusal is said, never swallowed. */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    say(error.message, "bad");
    return null;
  }
}

// Questions: the dialog that is open, one at a time.

export const dialog = signal(null);

export function closeDialog(answer = null) {
  const open = dialog.value;
  dialog.value = null;
  open?.answer?.(answer);
}

/**
 * Ask; resolves to the values given, null if the question was put away. With `send` to what it makes of them: a
 * refusal is said in the form, which stays as it was filled in.
 */
export const ask = (question) => new Promise((answer) => (dialog.value = { kind: "form", answer, ...question }));

export const copyText = (one) => `#${one.id} ${one.title}`;
export const priorityMark = (one) => (one.priority === "normal" || isFinished(one) ? "" : GLYPHS[one.priority]);
