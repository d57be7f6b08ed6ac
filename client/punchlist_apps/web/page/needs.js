// What needs a person, in all lists, and the answers to it.

import { computed, signal } from "./vendor.js";
import { call, session } from "./link.js";
import { API, ask, attempt, cards, go, nameOf, now, place, showToast } from "./model.js";
import { roster } from "./roster.js";
import { plural, safe, since } from "./text.js";
import { showDone, undoKeys } from "./undo.js";

const IS_PHONE = matchMedia("(max-width: 700px)");
const KINDS = ["yes", "failed", "check", "still", "damaged"];
const CHECK_MS = 600_000; // A check that takes longer probably runs nowhere.
const STILL_MS = 3_600_000;

/** Return whether this browser's user is not allowed to approve a task: it is someone else's turn, or their own work. */
export function isForOthers({ kind, by, owner }) {
  const me = session.value?.person;
  return kind === "yes" && !!me && ((!!by && by !== me) || owner === me);
}

/** Return the tasks in progress for an hour that no agent has claimed, and whose owner isn't here. */
function findStill({ conversation, running = [], shared }) {
  // The owner of a task of a shared list may be connected to another machine.
  if (!roster.value || shared) return [];
  const isHeld = (id) => roster.value.agents.some(({ tasks }) =>
    tasks.some((task) => task.conversation === conversation && task.id === id));
  const isHere = (owner) => roster.value.agents.some(({ name, is_here: here }) => here && name === owner);
  return running
    .filter(({ id, owner, since: at }) => now.value - at > STILL_MS && !isHeld(id) && !isHere(owner))
    .map((task) => ({ ...task, kind: "still" }));
}

function findNeeds(card) {
  const needs = (card.needs ?? []).filter((need) => !isForOthers(need));
  const checks = (need) => need.kind !== "check" || now.value - need.since > CHECK_MS;
  const damage = card.damaged && { id: "", kind: "damaged", title: nameOf(card), since: card.updated_at, text: card.damaged.reason };
  return [...needs.filter(checks), ...findStill(card), ...(damage ? [damage] : [])];
}

const byUrgency = (a, b) =>
  KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || b.frees - a.frees || a.since - b.since || (a.key < b.key ? -1 : 1);

/** All tasks that need you, most urgent first, as far as the cards have them. `key` identifies the task. */
export const needs = computed(() => {
  const found = [];
  for (const card of cards.value.values()) {
    const { conversation: list } = card;
    for (const need of findNeeds(card))
      found.push({ frees: 0, ...need, list, listTitle: nameOf(card), key: `${list} ${need.id}` });
  }
  return found.sort(byUrgency);
});

/** Return the number of tasks of a list that wait for your yes or have failed. Its card has only the first of them. */
export function countNeeds({ counts, waiting = 0, needs: shown = [] }) {
  return counts.failed + waiting - shown.filter(isForOthers).length;
}
export const needsCount = computed(() => [...cards.value.values()].reduce((sum, card) => sum + countNeeds(card), 0));

/** Return what a task needs, in words. */
export function wordsOf({ kind, attempts, max_attempts: max, since: at, by }) {
  if (kind === "yes") return `Waits for ${by && by !== session.value.person ? `${safe(by)}'s` : "your"} yes`;
  if (kind === "failed") return attempts > 1 || max ? `Failed, try ${attempts || 1}${max ? ` of ${max}` : ""}` : "Failed";
  if (kind === "check") return "Waits for its check";
  return kind === "still" ? `Stands still for ${since(now.value - at)}` : "The log is damaged";
}
/** The state whose sign and color a need has. */
export const SIGNS = { yes: "asks", failed: "failed", check: "paused", still: "blocked", damaged: "failed" };

// Answers. Each is shown in place of its card for a while, with a button that undoes it.

const FOLDED_MS = 6000;

/** Answers by key: `text`, `undo()`, the `version` that was answered, and `until` when the answer is shown. */
export const answers = signal(new Map());
/** When the keys of cards whose task had changed were noticed. Their buttons wait, since their text is new. */
export const conflicts = signal(new Map());
export const CONFLICT_MS = 1000;

const set = (map, key, value) => {
  map.value = new Map(map.value).set(key, value);
  setTimeout(() => (map.value = new Map(map.value)), map === answers ? FOLDED_MS : CONFLICT_MS);
};

/** Return whether a need was answered and its card isn't newer than the answer. */
export const isAnswered = ({ key, version }) => answers.value.get(key)?.version === version;
export const isFolded = (need) => isAnswered(need) && answers.value.get(need.key).until > Date.now();
export const isChanged = ({ key }) => Date.now() - (conflicts.value.get(key) ?? 0) < CONFLICT_MS;

/** Show an answer in place of its card, also while its call is under way, so that a new card doesn't hide it. */
function keepAnswer(need, text, result) {
  const undo = result && (() => (forget(need), undoKeys(need.list, [result.key])));
  set(answers, need.key, { text: result ? text : `${text}…`, undo, version: need.version, until: result ? Date.now() + FOLDED_MS : Infinity });
}
const forget = (need) => (answers.value = new Map([...answers.value].filter(([key]) => key !== need.key)));

const listPath = ({ list }, rest) => `${API}${encodeURIComponent(list)}${rest}`;
export const taskPath = (need, rest = "") => listPath(need, `/tasks/${encodeURIComponent(need.id)}${rest}`);
const nameOfNeed = ({ id, title }) => `#${id} ${safe(title)}`;

/** Make a call that answers a need, and return whether it succeeded. */
async function answer(need, text, work) {
  keepAnswer(need, text);
  try {
    const result = await work();
    keepAnswer(need, text, result);
    // A phone's inbox shows no cards, so a toast has the button that undoes the answer.
    if (place.value.screen === "inbox" && IS_PHONE.matches) showDone(`${text}: ${nameOfNeed(need)}`, [result], need.list);
    return true;
  } catch (error) {
    forget(need);
    if (error.kind === "version_conflict") {
      set(conflicts, need.key, Date.now());
      showToast(`#${need.id} has changed since you read it. Nothing was answered; read it again.`, "bad");
    } else await attempt(() => Promise.reject(error));
    return false;
  }
}

const postApproval = (need, body) => call("POST", taskPath(need, "/approval"), { version: need.version, ...body });
const apply = (need, changes) => call("POST", listPath(need, "/changes"), { changes });
/** Return the change that makes a task pending, unless it has changed since it was read. */
const toPending = ({ id, version }) =>
  ({ method: "task.set_status", task: id, status: "pending", task_version: version });

const MAX_REASONS = 5;
const REASONS_KEY = "punchlist.reasons";
const listReasons = () => JSON.parse(localStorage.getItem(REASONS_KEY) ?? "[]");

export const approve = (need) => answer(need, "Approved", () => postApproval(need, { accept: true }));

/** Reject with a reason, which is asked for. */
export async function reject(need) {
  const values = await ask({
    title: `Reject: ${nameOfNeed(need)}`,
    fields: [{ name: "text", label: "Why not?", required: true, options: listReasons() }],
    confirm: "Reject",
  });
  if (!values) return false;
  const reasons = [values.text, ...listReasons().filter((reason) => reason !== values.text)].slice(0, MAX_REASONS);
  localStorage.setItem(REASONS_KEY, JSON.stringify(reasons));
  return answer(need, "Rejected", () => postApproval(need, { accept: false, ...values }));
}

export const retry = (need) => answer(need, "Will be tried again", () => apply(need, [toPending(need)]));

/** Retry failed tasks of several lists after a question, with one call for each list. */
export async function retryAll(failed) {
  const confirm = `Retry ${failed.length}`;
  if (!(await ask({ title: `Retry ${plural(failed.length, "task")}?`, lines: failed.map(nameOfNeed), confirm }))) return;
  for (const group of Map.groupBy(failed, ({ list }) => list).values()) {
    for (const need of group) keepAnswer(need, "Will be tried again");
    const result = await attempt(() => apply(group[0], group.map(toPending)));
    for (const need of group) result ? keepAnswer(need, "Will be tried again", result) : forget(need);
  }
}

/** Hand a failed task to an agent or a person, who is asked for. */
export async function hand(need) {
  const options = (roster.value?.agents ?? []).map(({ name }) => name);
  const values = await ask({
    title: `Hand on: ${nameOfNeed(need)}`,
    fields: [{ name: "owner", label: "To", required: true, options }],
    confirm: "Hand on",
  });
  if (!values) return false;
  // A task that becomes pending loses its owner.
  const changes = [toPending(need), { method: "task.edit", task: need.id, owner: values.owner }];
  return answer(need, `Handed to ${safe(values.owner)}`, () => apply(need, changes));
}

const giveBack = (need) => {
  const changes = [toPending(need), { method: "task.edit", task: need.id, owner: null }];
  return answer(need, "Given back", () => apply(need, changes));
};

export const open = ({ list, id }) => go({ name: list, task: id || null });

/** What can be done about a need: the command's name, label, key, function, and the kinds of need. */
export const ACTIONS = [
  ["approve", "Approve", "y", approve, ["yes"]],
  ["reject", "Reject…", "n", reject, ["yes"]],
  ["reopen", "Retry", "r", retry, ["failed"]],
  ["hand", "Hand to…", "@", hand, ["failed"]],
  ["release", "Give back", "R", giveBack, ["still"]],
];
