// What differs between two texts, two values and two versions of a list.

import { dayText, formatDuration } from "./text.js";

const MAX_WORDS = 300; // of the part in which two texts differ; the table of their words grows with the square

/** Return a text's words, each with the space after it. */
const split = (text) => text.match(/\S+\s*|\s+/g) ?? [];

/**
 * Return the parts of two texts as `[sign, text]`: "-" only in the first, "+" only in the second, "=" in both.
 *
 * Where more than MAX_WORDS words differ, the texts are not compared word by word.
 */
export function diffWords(before, after) {
  const [a, b] = [split(before), split(after)];
  let start = 0, end = 0;
  while (start < Math.min(a.length, b.length) && a[start].trim() === b[start].trim()) start++;
  const isSame = (at) => a[a.length - 1 - at].trim() === b[b.length - 1 - at].trim();
  while (end < Math.min(a.length, b.length) - start && isSame(end)) end++;
  const parts = [];
  const push = (sign, words) => {
    if (!words.length) return;
    if (parts.at(-1)?.[0] === sign) parts.at(-1)[1] += words.join("");
    else parts.push([sign, words.join("")]);
  };
  push("=", b.slice(0, start));
  pushMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end), push);
  push("=", b.slice(b.length - end));
  return parts;
}

/** Push the parts of two lists of words by their longest common subsequence. */
function pushMiddle(a, b, push) {
  if (Math.max(a.length, b.length) > MAX_WORDS) return push("-", a), push("+", b);
  const wide = b.length + 1;
  const common = new Uint16Array((a.length + 1) * wide); // lengths for the rests of both
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * wide + j;
      common[at] = a[i].trim() === b[j].trim() ? common[at + wide + 1] + 1 : Math.max(common[at + wide], common[at + 1]);
    }
  }
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    const at = i * wide + j;
    if (i < a.length && j < b.length && a[i].trim() === b[j].trim()) push("=", [b[j]]), i++, j++;
    else if (j === b.length || (i < a.length && common[at + wide] >= common[at + 1])) push("-", [a[i++]]);
    else push("+", [b[j++]]);
  }
}

const FORMATS = {
  estimate_ms: formatDuration,
  labels: (labels) => (labels ?? []).join(", "),
  links: (links) => (links ?? []).map(({ kind, to }) => `${kind}=${to}`).join(" "),
  gate: (gate) => (gate?.check ? `check ${gate.check}` : gate ? "a yes" : ""),
  parent: (id) => (id ? `#${id}` : ""),
  blocked_by: (ids) => (ids ?? []).map((id) => `#${id}`).join(" "),
  metadata: (value) => (value && Object.keys(value).length ? JSON.stringify(value) : ""),
  priority: (value) => value ?? "normal",
};
for (const name of ["due", "not_before"]) FORMATS[name] = (at, task) => (at ? dayText(task, name) : "");

/** Return a member of a task as text. */
export const format = (name, task) => (FORMATS[name] ?? ((value) => `${value ?? ""}`))(task[name], task);

/** Return the ids of `after` that have moved: all but the longest run of common ids that kept their order. */
export function findMoved(before, after) {
  const places = new Map(before.map((id, at) => [id, at]));
  const common = after.filter((id) => places.has(id));
  const ends = []; // by length of a run, the index in `common` of its smallest last id
  const previous = [];
  common.forEach((id, index) => {
    let low = 0, high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (places.get(common[ends[middle]]) < places.get(id)) low = middle + 1;
      else high = middle;
    }
    previous[index] = ends[low - 1];
    ends[low] = index;
  });
  const kept = new Set();
  for (let at = ends.at(-1); at !== undefined; at = previous[at]) kept.add(common[at]);
  return new Set(common.filter((id) => !kept.has(id)));
}

const TEXT_MEMBERS = ["title", "description", "priority", "owner", "labels", "due", "not_before", "estimate_ms", "links"];

const isOpen = ({ status }) => ["pending", "in_progress", "paused"].includes(status);
const isDone = (task) => task?.status === "completed" && !task.waits_for;

/** The groups of a comparison: title, sign, class, and whether a task `b`, which was `a`, belongs; null if absent. */
export const GROUPS = [
  ["Failed", "×", "failed", (a, b) => b?.status === "failed" && a?.status !== "failed"],
  ["Asks for a yes", "?", "asks", (a, b) => b?.waits_for === "yes" && a?.waits_for !== "yes"],
  ["Added", "+", "added", (a) => !a],
  ["Deleted", "−", "deleted", (a, b) => !b],
  ["Reworded", "~", "", (a, b) => a && b && TEXT_MEMBERS.some((name) => format(name, a) !== format(name, b))],
  ["Moved", "↕", "", (a, b, moved) => a && b && (moved.has(b.id) || format("parent", a) !== format("parent", b))],
  ["Waits changed", "←", "", (a, b) => a && b && format("blocked_by", a) !== format("blocked_by", b)],
  ["Done", "✓", "completed", (a, b) => isDone(b) && !isDone(a)],
  ["Other states", "→", "", (a, b) => a && b && a.status !== b.status && isOpen(b)],
];

/** Return `{ group, task, before }` for each difference of two versions, in the order of GROUPS and of the list. */
export function compareRows(base, rows) {
  const found = GROUPS.map(() => []);
  const moved = findMoved(base.ids(), rows.ids());
  for (const id of new Set([...rows.ids(), ...base.ids()])) {
    const [before, task] = [base.tasks.get(id), rows.tasks.get(id)];
    if (before && task && before.version === task.version && !moved.has(id)) continue;
    GROUPS.forEach(([, , , belongs], group) => {
      if (belongs(before, task, moved)) found[group].push({ group, task: task ?? before, before });
    });
  }
  return found.flat();
}

/** Return the members that differ between two versions of a task. */
export const listDifferences = (before, task) =>
  [...TEXT_MEMBERS, "parent", "blocked_by"].filter((name) => format(name, before) !== format(name, task));
