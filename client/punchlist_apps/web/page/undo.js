// Undo and redo. Your own changes are undone without a question, unless that takes something from an agent.

import { call, lastList, session } from "./link.js";
import { API, ask, attempt, cards, go, nameOf, place, showToast } from "./model.js";
import { clock, plural, safe } from "./text.js";

// The undo is rejected if a newer call depends on what it undoes, and it also undoes claims.
const OPTIONS = { whole: true, claims: true };
const undoPath = (name) => `${API}${encodeURIComponent(name)}/undo`;

/** Matches a line of an undo that gives a task to an agent, takes it from one, or drops a result. */
const TAKES = /: (?:claimed|released) by (.+?)(?: again)?$|; lost: .*\bits result\b/;

/** Return whether an undo takes something from someone else. */
function takesFromOthers(line) {
  const match = TAKES.exec(line);
  return match !== null && (!match[1] || match[1] !== session.value.person);
}

const sumUp = (lines) => safe(lines[0]) + (lines.length > 1 ? `, and ${lines.length - 1} more` : "");
const titleOf = (name) => safe(cards.peek().has(name) ? nameOf(cards.peek().get(name)) : name);
const placeOf = (name) => (place.peek().name === name ? "" : ` in ${titleOf(name)}`);

/** Show why nothing was undone, with a link to the task that has changed since. */
function showConflict(name, { message, facts: { actor, task } }) {
  const why = actor ? `${safe(actor)} changed #${task} since.` : message;
  const look = () => go({ name, task });
  showToast(`Not undone: ${why}`, "bad", task ? [["Look", look]] : []);
}

/** Return the result of an undo or its preview; null if it was rejected, which is shown. */
async function tryUndo(name, selection) {
  const post = () => call("POST", undoPath(name), { ...OPTIONS, ...selection });
  try {
    return await post();
  } catch (error) {
    if (error.kind === "undo_conflict") showConflict(name, error);
    else await attempt(() => Promise.reject(error));
    return null;
  }
}

/** Undo one call of a list and return the result; null if it was rejected, cancelled, or has nothing to undo. */
async function undoOne(name, selection) {
  const preview = await tryUndo(name, { ...selection, preview: true });
  if (!preview?.undone.length) return preview && { undone: [] };
  if (preview.undone.some(takesFromOthers)) {
    const question = { title: "Take this back?", lines: preview.undone.map(safe), confirm: "Undo" };
    if (!(await ask(question))) return null;
  }
  return tryUndo(name, { call: preview.calls[0] }); // Newer changes don't alter what is undone.
}

/** Undo calls, the newest first, and offer the opposite. `verb` is what the toast says. */
async function undoAll(name, selections, verb = "Undone") {
  const lines = [];
  const made = [];
  for (const selection of selections) {
    const result = await undoOne(name, selection);
    if (!result) return null;
    if (result.version) made.unshift({ call: result.version });
    lines.push(...result.undone);
  }
  if (!lines.length) return lines;
  const opposite = verb === "Undone" ? "Redo" : "Undo";
  const turnBack = () => undoAll(name, made, verb === "Undone" ? "Redone" : "Undone");
  showToast(`${verb}${placeOf(name)}: ${sumUp(lines)}`, "info", [[opposite, turnBack]]);
  return lines;
}

/** Say what you did, with a button that undoes it. `results` are those of its calls. */
export function showDone(text, results, name = place.peek().name) {
  const keys = results.map((result) => result?.key).filter(Boolean);
  if (!keys.length) return showToast(text);
  showToast(text, "info", [["Undo", () => undoKeys(name, keys)]]);
}

/** Undo the calls with these idempotency keys. A call that changed nothing has no events. */
export async function undoKeys(name, keys) {
  const find = (key) => call("GET", `${API}${encodeURIComponent(name)}/keys/${encodeURIComponent(key)}`);
  const found = await attempt(() => Promise.all(keys.toReversed().map(find)));
  const calls = found?.filter(({ events }) => events.length).map(({ events }) => ({ call: events[0].version }));
  if (calls && !(calls.length && (await undoAll(name, calls))?.length !== 0)) showToast("There is nothing to undo.");
}

/** Undo, or with `redo` redo, your newest change to the open list, or else to the list that you changed last. */
export async function undoOwn(redo = false) {
  const name = place.value.name ?? lastList.value;
  const verb = redo ? "redo" : "undo";
  if (!name) return showToast(`You changed nothing in this tab that you can ${verb}.`);
  const selection = { mine: true, count: 1, ...(redo && { redo }) };
  const lines = await undoAll(name, [selection], redo ? "Redone" : "Undone");
  if (lines?.length !== 0) return;
  const look = () => go({ name, view: "history" });
  showToast(`You have nothing to ${verb}${placeOf(name) || " here"}.`, "info", [["What others changed", look]]);
}

/** Undo a change from the history, made by any actor, after a preview. */
export async function undoCall({ version, actor, at }) {
  const { name } = place.value;
  const preview = await tryUndo(name, { call: version, preview: true });
  if (!preview) return;
  if (!preview.undone.length) return showToast("This change has nothing to undo.");
  const result = await ask({
    title: `Undo this change by ${safe(actor)}?`,
    lines: preview.undone.map(safe),
    text: [`${safe(actor)} made it at ${clock(at)}. Nothing else changes, and the history keeps both.`],
    confirm: "Undo",
    send: () => call("POST", undoPath(name), { ...OPTIONS, call: preview.calls[0] }),
  });
  if (result) showToast(`Undone: ${plural(result.undone.length, "change")}`);
}
