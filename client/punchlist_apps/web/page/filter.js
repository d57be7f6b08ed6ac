// The words of a filter, such as `is:blocked @ann p:high +web words`. Words of one kind mean "or", others "and".

import { isDeferred, isFinished, isLate } from "./rows.js";
import { PRIORITIES } from "./words.js";

const isIn = (group) => (task, rows) => rows.groupOf(task) === group;

/** Tests of `is:` words. */
const STATES = {
  all: () => true,
  open: (task) => !isFinished(task),
  needs: isIn("needs"),
  running: isIn("running"),
  ready: isIn("ready"),
  blocked: isIn("blocked"),
  paused: isIn("paused"),
  done: isIn("done"),
  failed: (task) => task.status === "failed",
};
const DATES = { late: (task) => isLate(task), deferred: (task) => !isFinished(task) && isDeferred(task) };

/** The chips of a list: the `is:` word and its title. */
export const CHIPS = [
  ["open", "Open"], ["needs", "Needs you"], ["running", "Running"], ["ready", "Ready"], ["blocked", "Blocked"],
  ["failed", "Failed"], ["late", "Late"],
];

/** Return a name as a part of a filter word, with dots for spaces, since a space would end the word. */
const dotted = (name) => name.replaceAll(/\s/g, ".");
export const labelWord = (label) => `+${dotted(label)}`;
const ownerWord = (owner) => `@${dotted(owner)}`;

export const splitWords = (text) => text.split(/\s+/).filter(Boolean);

/** Return a word's kind and its test. The kind of a word of free text is the word, so all such words must match. */
function compileWord(word) {
  if (word.startsWith("is:")) {
    const name = word.slice(3);
    if (Object.hasOwn(DATES, name)) return ["date", DATES[name]];
    return ["state", Object.hasOwn(STATES, name) ? STATES[name] : () => false];
  }
  if (word[0] === "@") return ["owner", (task) => ownerWord(task.owner ?? "").toLowerCase().startsWith(word)];
  if (word.startsWith("p:")) return ["priority", (task) => task.priority.startsWith(word.slice(2))];
  if (word.length > 1 && word[0] === "+")
    return ["label", (task) => !!task.labels?.some((label) => labelWord(label).toLowerCase().startsWith(word))];
  if (/^#\d+$/.test(word)) return ["id", (task) => task.id === word.slice(1)];
  return [`text ${word}`, ({ title, active_form: doing, description, labels }) =>
    [title, doing, description, ...(labels ?? [])].join(" ").toLowerCase().includes(word)];
}

const compileKinds = (text) => Object.entries(Object.groupBy(
  splitWords(text.toLowerCase()).map(compileWord), ([kind]) => kind));

/** Return whether a task of the rows fits every kind of words, except the kind `without`. */
const fits = (kinds, task, rows, without) =>
  kinds.every(([kind, words]) => kind === without || words.some(([, test]) => test(task, rows)));

/** Return a predicate for a filter. */
export function compileFilter(text) {
  const kinds = compileKinds(text);
  return (task, rows) => fits(kinds, task, rows);
}

/** Return the number of tasks for each chip, among those that fit the filter's words of other kinds. */
export function countChips(text, rows) {
  const kinds = compileKinds(text);
  const counts = Object.fromEntries(CHIPS.map(([name]) => [name, 0]));
  for (const task of rows.tasks.values()) {
    if (task.status === "completed") continue; // no chip has it
    if (fits(kinds, task, rows, "state")) {
      const group = rows.groupOf(task);
      if (group in counts) counts[group]++;
      counts[task.status === "failed" ? "failed" : "open"]++;
    }
    if (isLate(task) && fits(kinds, task, rows, "date")) counts.late++;
  }
  return counts;
}

/** Return the words that narrow a filter by label, owner and priority: [title, [[word, text, count], …]] of each. */
export function listOffers(text, rows) {
  const kinds = compileKinds(text);
  const tasks = [...rows.tasks.values()].filter((task) => !isFinished(task));
  const count = (kind, wordsOf) => {
    const counts = new Map();
    for (const task of tasks) {
      if (!fits(kinds, task, rows, kind)) continue;
      for (const [word, shown] of wordsOf(task)) counts.set(word, [shown, (counts.get(word)?.[1] ?? 0) + 1]);
    }
    const offers = [...counts].map(([word, [shown, number]]) => [word, shown, number]);
    return offers.sort((a, b) => b[2] - a[2] || (a[0] < b[0] ? -1 : 1));
  };
  const byUrgency = (a, b) => PRIORITIES.indexOf(b[1]) - PRIORITIES.indexOf(a[1]);
  return [
    ["Labels", count("label", (task) => (task.labels ?? []).map((label) => [labelWord(label), label]))],
    ["Owners", count("owner", ({ owner }) => (owner ? [[ownerWord(owner), owner]] : []))],
    ["Priorities", count("priority", ({ priority }) => [[`p:${priority}`, priority]]).sort(byUrgency)],
  ].filter(([, offers]) => offers.length);
}
