// The arrangement of a list: its groups, the order within them, and which groups are folded.

import { computed, effect, signal } from "./vendor.js";
import { computedFromRows, cursor, place, visibleIds } from "./model.js";
import { setQuery } from "./place.js";
import { buildTree } from "./rows.js";
import { PRIORITIES } from "./words.js";

const STATES = {
  running: "Running", needs: "Needs you", ready: "Ready", blocked: "Blocked", paused: "Paused", later: "Put off",
};
export const GROUPINGS = ["state", "owner", "label", "parent", "none"];

/** Sort keys by the name of the order. Tasks with equal keys stay in the list's order. */
const SORT_KEYS = {
  order: null,
  priority: (task) => -PRIORITIES.indexOf(task.priority),
  due: (task) => task.due ?? Infinity,
  age: (task) => task.status_changed_at,
  frees: (task, rows) => -rows.freesOf(task.id),
  owner: (task) => task.owner?.toLowerCase() || "\uffff",
};
export const SORTS = Object.keys(SORT_KEYS);

const readQuery = (member, names) => computed(() => {
  const given = place.value.query[member];
  return names.includes(given) ? given : names[0];
});
export const grouping = readQuery("group", GROUPINGS);
export const sorting = readQuery("sort", SORTS);
export const setGrouping = (name) => setQuery({ group: name === GROUPINGS[0] ? "" : name });
export const setSorting = (name) => setQuery({ sort: name === SORTS[0] ? "" : name });

const nextOf = (names, name) => names[(names.indexOf(name) + 1) % names.length];
export const groupByNext = () => setGrouping(nextOf(GROUPINGS, grouping.value));
export const sortByNext = () => setSorting(nextOf(SORTS, sorting.value));

/** Return tasks sorted by keys, each of which is computed once. */
function sortBy(tasks, keyOf) {
  const keyed = tasks.map((task) => [keyOf(task), task]);
  return keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, task]) => task);
}

const idsOf = (tasks) => tasks.map((task) => task.id);

/** Return the names of a task's groups, other than the group of completed tasks. */
const GROUP_NAMES = {
  state: (task, rows) => [rows.groupOf(task)],
  owner: (task) => [task.owner ?? ""],
  label: (task) => (task.labels?.length ? task.labels : [""]),
};

/**
 * Return the groups of the visible tasks: `key`, `title`, `ids` in order, and `state`, `owner` or `label`. A tree is one
 * group without a title, with the `depth` by id. The group of completed tasks is the last one.
 */
function arrange(rows) {
  if (!rows) return [];
  const keyOf = SORT_KEYS[sorting.value];
  let tasks = visibleIds.value.map((id) => rows.tasks.get(id));
  if (keyOf) tasks = sortBy(tasks, (task) => keyOf(task, rows));
  if (grouping.value === "none") return [{ key: "", ids: idsOf(tasks) }];
  if (grouping.value === "parent") {
    const depth = tasks.length === rows.tasks.size && !keyOf ? rows.tree() : buildTree(tasks);
    return [{ key: "", ids: [...depth.keys()], depth }];
  }
  const namesOf = GROUP_NAMES[grouping.value];
  const places = [];
  let done = [];
  for (const task of tasks) {
    if (task.status === "completed") done.push(task);
    else for (const name of namesOf(task, rows)) places.push([name, task.id]);
  }
  const members = Map.groupBy(places, ([name]) => name);
  const names = grouping.value === "state" ? Object.keys(STATES) : [...members.keys()].sort(compareNames);
  const groups = names.filter((name) => members.has(name)).map((name) =>
    ({ key: name, title: titleOf(name), [grouping.value]: name, ids: members.get(name).map(([, id]) => id) }));
  if (!done.length) return groups;
  if (!keyOf) done = sortBy(done, (task) => -task.status_changed_at);
  const newest = done.reduce((at, task) => Math.max(at, task.status_changed_at), 0);
  return [...groups, { key: DONE, title: "Done", state: "done", ids: idsOf(done), newest, isLast: true }];
}

const DONE = "\0done"; // No owner or label contains this character.
const compareNames = (a, b) => (!a - !b) || a.localeCompare(b) || (a < b ? -1 : 1);
const UNNAMED = { owner: "nobody", label: "no label" };
const titleOf = (name) => (grouping.value === "state" ? STATES[name] : name || UNNAMED[grouping.value]);

const arranged = computedFromRows(arrange, () => [grouping.value, sorting.value]);

// Folded groups.

const FOLDS_KEY = "punchlist.folds";
const MAX_FOLDS = 200; // lists in storage

function loadFolds() {
  try {
    return Object.entries(JSON.parse(localStorage.getItem(FOLDS_KEY)) ?? {});
  } catch {
    return [];
  }
}
/** List -> group -> whether it is folded, of the groups that were folded or unfolded by hand. */
const folds = signal(new Map(loadFolds()));
const foldKey = (group) => `${grouping.value} ${group.key}`;

export function setFold(group, isFolded) {
  const { name } = place.value;
  const ofList = { ...folds.value.get(name), [foldKey(group)]: isFolded };
  const others = [...folds.value].filter(([list]) => list !== name).slice(1 - MAX_FOLDS);
  folds.value = new Map([...others, [name, ofList]]);
  localStorage.setItem(FOLDS_KEY, JSON.stringify(Object.fromEntries(folds.value)));
}

/** The groups with `isFolded`, and the `shown` ids. A folded group still shows the task at the cursor. */
export const groups = computed(() => {
  const ofList = folds.value.get(place.value.name) ?? {};
  const all = arranged.value;
  return all.map((group) => {
    const isFolded = !!group.title && (ofList[foldKey(group)] ?? (group.key === DONE && all.length > 1));
    const atCursor = isFolded && group.ids.includes(cursor.value) ? [cursor.value] : [];
    return { ...group, isFolded, shown: isFolded ? atCursor : group.ids };
  });
});

/** The ids of the shown tasks, from top to bottom. A task in two groups has the place of the first. */
export const shownIds = computed(() => [...new Set(groups.value.flatMap((group) => group.shown))]);

/** Return the first group that shows a task. */
export const findGroup = (id) => groups.value.find((group) => group.shown.includes(id));

/** Fold the group at the cursor. */
export function foldGroup() {
  const group = findGroup(cursor.value);
  if (group?.title) setFold(group, true);
}

/** Unfold the group at the cursor, or else the next folded group after it. */
export function unfoldGroup() {
  const at = groups.value.indexOf(findGroup(cursor.value));
  const isFolded = (group) => group.isFolded;
  const group = groups.value.slice(Math.max(at, 0)).find(isFolded) ?? groups.value.find(isFolded);
  if (group) setFold(group, false);
}

/** Return the ids of the shown tasks in the group of a task, if they are in the list's order; otherwise null. */
export const listGroupMates = (id) => (sorting.value === "order" ? findGroup(id)?.ids ?? [] : null);

/** The task at the cursor, its group, and its neighbors there, as they were before a change moved it to another group. */
let left = {};
effect(() => {
  const { name, task: id } = place.value;
  const ids = shownIds.value;
  const key = findGroup(id)?.key;
  if (name === left.name && id === left.id && left.key !== undefined && key !== left.key) return;
  const at = ids.indexOf(id);
  left = { name, id, key, before: ids[at - 1], after: ids[at + 1] };
});

/** Return the neighbor that the task at the cursor had before it moved to another group; undefined if it didn't. */
export function findFormerNeighbor(step) {
  const id = step < 0 ? left.before : left.after;
  return left.id === cursor.value && findGroup(left.id)?.key !== left.key && shownIds.value.includes(id) ? id : undefined;
}
