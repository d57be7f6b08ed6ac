// A list folded from the pushes of the view `rows`, as docs/protocol.md says, and its order as a tree.

import { clock } from "./text.js";

/** When the owner went and when the task is free, as `punchlist.departures` says it; empty if it is there. */
export function departureOf(task) {
  const silent = task.silent_at ? `not heard of since ${clock(task.silent_at)}` : "";
  const gone = task.left_at ? `left at ${clock(task.left_at)}` : silent;
  return gone && task.lease_expires_at ? `${gone}, ${freeAt(task.lease_expires_at)}` : gone;
}

/** When a task is free whose owner is gone. */
export const freeAt = (ms) => `free at ${clock(ms)}`;

/** Who works on a task, in a list that machines share where, and whether they are gone. */
export function ownerOf(task) {
  const gone = departureOf(task);
  return `@${task.owner}${task.machine ? ` on ${task.machine}` : ""}${gone ? `, ${gone}` : ""}`;
}

/** The state as shown: an unfinished task with open blockers is `blocked`. */
export const stateOf = (task) => (task.status === "pending" && task.open_blockers?.length ? "blocked" : task.status);

/** What a completed task waits for at its gate; undefined for any other task. */
export function gateOf(task) {
  if (task.waits_for !== "yes") return task.waits_for && `the check ${task.gate?.check ?? ""}`;
  return `${task.gate?.by ? `${task.gate.by}'s` : "your"} yes`;
}

/** Whether a task is put off: not ready before a time that has not come. */
export const isDeferred = (task, at = Date.now()) => task.not_before > at;

const pad = (number, width = 2) => String(number).padStart(width, "0");
/** The local day of a time, as `due_day` has it. */
function dayOf(ms) {
  const at = new Date(ms);
  return `${pad(at.getFullYear(), 4)}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

/** Whether a task should have been done: a day is over when it has ended here. */
export const isLate = (task, at = Date.now()) =>
  !isFinished(task) && (task.due_day ? task.due_day < dayOf(at) : task.due < at);

export const isFinished = (task) => task.status === "completed" || task.status === "failed";

/** Whether a task was imported as a heading: it holds tasks and is none to work on. */
const isHeading = (task) => Number.isInteger(task.metadata?.heading);

const byPlace = (a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

/** Depth by id and the ids in order: children stand behind their parent, members of a parent cycle at the top level. */
export function asTree(tasks) {
  const known = new Set(tasks.map((task) => task.id));
  const children = new Map();
  let nested = false;
  for (const task of tasks) {
    const parent = task.parent && task.parent !== task.id && known.has(task.parent) ? task.parent : "";
    nested ||= parent !== "";
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(task.id);
  }
  const depth = new Map();
  if (!nested) {
    for (const task of tasks) depth.set(task.id, 0);
    return depth;
  }
  for (const root of [...(children.get("") ?? []), ...known]) {
    const stack = [[0, root]];
    while (stack.length) {
      const [level, id] = stack.pop();
      if (depth.has(id)) continue;
      depth.set(id, level);
      for (const child of (children.get(id) ?? []).toReversed()) stack.push([level + 1, child]);
    }
  }
  return depth;
}

/** Tasks in the order in which they can be completed: those below a task before it. */
export function belowFirst(tasks) {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const sorted = [];
  const above = [];
  for (const [id, depth] of asTree(tasks)) {
    while (above.length > depth) sorted.push(above.pop());
    above.push(byId.get(id));
  }
  return [...sorted, ...above.toReversed()];
}

export class Rows {
  tasks = new Map();
  version = 0;
  seq = 0;
  counts = null;
  damaged = null;
  shared = null;
  #coming = this.tasks;
  #depth = null;
  #ids = null;
  #children = null;

  /** A connection begins: what came of a whole list that was cut is forgotten. */
  begin() {
    this.#coming = this.tasks;
  }

  /** Take a push; true once all its pieces are there. */
  take(push) {
    if (push.reset) this.#coming = new Map();
    const rows = this.#coming;
    for (const id of push.gone ?? []) if (rows.delete(id)) this.#depth = null;
    for (const row of push.rows) {
      const old = rows.get(row.id);
      if (!old || old.rank !== row.rank || old.parent !== row.parent) this.#depth = null;
      rows.set(row.id, row);
    }
    if (push.more) return false;
    if (rows !== this.tasks) this.#depth = null;
    this.tasks = rows;
    [this.version, this.seq, this.counts] = [push.version, push.seq, push.counts];
    [this.damaged, this.shared] = [push.damaged ?? null, push.shared ?? null];
    return true;
  }

  /** The list. */
  sorted() {
    return [...this.tasks.values()].sort(byPlace);
  }

  /** Depth by id, in the order shown; worked out anew only when a task came, went or moved. */
  tree() {
    if (!this.#depth) [this.#depth, this.#ids, this.#children] = [asTree(this.sorted()), null, null];
    return this.#depth;
  }

  /** The ids in the order shown: the same array until a task comes, goes or moves. */
  ids() {
    const depth = this.tree();
    return (this.#ids ??= [...depth.keys()]);
  }

  /** The parts of a task. */
  childrenOf(id) {
    const ids = this.ids();
    this.#children ??= Map.groupBy(ids, (one) => this.tasks.get(one).parent ?? null);
    return (this.#children.get(id) ?? []).map((one) => this.tasks.get(one));
  }

  /** Whether the work of a task is that of others: it has open parts, or is a heading. */
  holds(task) {
    const isOpen = (one) => !isFinished(one) && !one.open_blockers?.includes(task.id);
    return isHeading(task) || this.childrenOf(task.id).some(isOpen);
  }
}

/** A list of the past, as `task.list` answers it, in the same shape. */
export function rowsOf(answer) {
  const rows = new Rows();
  const ranked = answer.tasks.map((task, at) => ({ ...task, rank: String(at).padStart(9, "0") }));
  rows.take({ ...answer, reset: true, rows: ranked });
  return rows;
}
