// A list built from pushes of the view `rows` (docs/protocol.md), and its order as a tree.

import { clock } from "./text.js";

/** Return when the owner left and when the task becomes free, like `punchlist.departures`; empty if still present. */
export function departureOf(task) {
  const silent = task.silent_at ? `not heard of since ${clock(task.silent_at)}` : "";
  const gone = task.left_at ? `left at ${clock(task.left_at)}` : silent;
  return gone && task.lease_expires_at ? `${gone}, ${freeAt(task.lease_expires_at)}` : gone;
}

/** Return, in words, when the task of an absent owner becomes free. */
export const freeAt = (ms) => `free at ${clock(ms)}`;

/** Return the owner of a task, with its machine in a shared list and its departure. */
export function ownerOf(task) {
  const gone = departureOf(task);
  return `@${task.owner}${task.machine ? ` on ${task.machine}` : ""}${gone ? `, ${gone}` : ""}`;
}

/** Return the state to show: the status, `blocked` for a pending task with open blockers, or `asks` if it needs a yes. */
export function stateOf(task) {
  if (task.waits_for === "yes") return "asks";
  return task.status === "pending" && task.open_blockers?.length ? "blocked" : task.status;
}

/** Return what a completed task waits for at its gate; undefined for any other task. */
export function gateOf(task) {
  if (task.waits_for !== "yes") return task.waits_for && `the check ${task.gate?.check ?? ""}`;
  return `${task.gate?.by ? `${task.gate.by}'s` : "your"} yes`;
}

/** Return whether a task is deferred to a later time. */
export const isDeferred = (task, at = Date.now()) => task.not_before > at;

const pad = (number, width = 2) => String(number).padStart(width, "0");
/** Return the local day of a time, in the format of `due_day`. */
function dayOf(ms) {
  const at = new Date(ms);
  return `${pad(at.getFullYear(), 4)}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

/** Return whether a task is overdue. A due day ends at local midnight. */
export const isLate = (task, at = Date.now()) =>
  !isFinished(task) && (task.due_day ? task.due_day < dayOf(at) : task.due < at);

export const isFinished = (task) => task.status === "completed" || task.status === "failed";

/** Return whether a task was imported as a heading, which only groups other tasks. */
const isHeading = (task) => Number.isInteger(task.metadata?.heading);

const STATUS_GROUPS = { in_progress: "running", paused: "paused", completed: "done" };

const byPlace = (a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0);

/** Return depth by id, in order. Children follow their parent, and members of a parent cycle are at the top level. */
export function buildTree(tasks) {
  const ids = new Set(tasks.map((task) => task.id));
  const children = new Map();
  let isNested = false;
  for (const task of tasks) {
    const parent = task.parent && task.parent !== task.id && ids.has(task.parent) ? task.parent : "";
    isNested ||= parent !== "";
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(task.id);
  }
  const depth = new Map();
  if (!isNested) {
    for (const task of tasks) depth.set(task.id, 0);
    return depth;
  }
  for (const root of [...(children.get("") ?? []), ...ids]) {
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

/** Return tasks in an order in which they can be completed, with children before their parent. */
export function belowFirst(tasks) {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const sorted = [];
  const above = [];
  for (const [id, depth] of buildTree(tasks)) {
    while (above.length > depth) sorted.push(above.pop());
    above.push(byId.get(id));
  }
  return [...sorted, ...above.toReversed()];
}

/** Upper limit for the number of tasks that a task frees. */
export const MAX_FREED = 99;
const MAX_EDGES = 1000; // followed to count the tasks that one task frees

/** Return the members that decide where a task stands in any grouping and order, as one text. */
const placeOf = (task) => JSON.stringify([
  task.status, task.waits_for, task.owner, task.parent, task.rank, task.priority, task.labels, task.due,
  task.not_before, task.open_blockers, task.blocks, task.status_changed_at, task.metadata?.heading,
]);

export class Rows {
  tasks = new Map();
  version = 0;
  shape = 0; // rises when a task may stand elsewhere in a grouping or order
  seq = 0;
  counts = null;
  damaged = null;
  shared = null;
  #incoming = this.tasks; // a reset in several pushes is collected here
  #depth = null;
  #ids = null;
  #children = null;
  #freed = new Map();

  /** Start a connection. Drop a reset whose last pushes never arrived. */
  begin() {
    this.#incoming = this.tasks;
  }

  /** Apply a push. Return whether the list is complete, which it isn't until all pushes of a reset have arrived. */
  take(push) {
    if (push.reset) this.#incoming = new Map();
    const rows = this.#incoming;
    let isSame = rows === this.tasks;
    for (const id of push.gone ?? []) if (rows.delete(id)) [this.#depth, isSame] = [null, false];
    for (const row of push.rows) {
      const old = rows.get(row.id);
      if (!old || old.rank !== row.rank || old.parent !== row.parent) this.#depth = null;
      isSame &&= !!old && placeOf(old) === placeOf(row);
      rows.set(row.id, row);
    }
    if (!isSame) {
      this.shape++;
      this.#freed.clear();
    }
    if (push.more) return false;
    if (rows !== this.tasks) this.#depth = null;
    this.tasks = rows;
    [this.version, this.seq, this.counts] = [push.version, push.seq, push.counts];
    [this.damaged, this.shared] = [push.damaged ?? null, push.shared ?? null];
    return true;
  }

  sorted() {
    return [...this.tasks.values()].sort(byPlace);
  }

  /** Return depth by id, in order. It is recomputed only after a task is added, removed or moved. */
  tree() {
    if (!this.#depth) [this.#depth, this.#ids, this.#children] = [buildTree(this.sorted()), null, null];
    return this.#depth;
  }

  /** Return the ids in order. The array stays the same until a task is added, removed or moved. */
  ids() {
    const depth = this.tree();
    return (this.#ids ??= [...depth.keys()]);
  }

  childrenOf(id) {
    const ids = this.ids();
    this.#children ??= Map.groupBy(ids, (child) => this.tasks.get(child).parent ?? null);
    return (this.#children.get(id) ?? []).map((child) => this.tasks.get(child));
  }

  /** Return whether a task is a heading or has open parts that don't wait for it. Such a task isn't ready itself. */
  hasOpenParts(task) {
    const isOpen = (child) => !isFinished(child) && !child.open_blockers?.includes(task.id);
    return isHeading(task) || this.childrenOf(task.id).some(isOpen);
  }

  /** Return the name of a task's group by state. A task with open parts is blocked, since it can't be started. */
  groupOf(task) {
    if (task.status === "failed" || task.waits_for === "yes") return "needs";
    if (task.status !== "pending") return STATUS_GROUPS[task.status];
    if (task.open_blockers?.length || this.hasOpenParts(task)) return "blocked";
    return isDeferred(task) ? "later" : "ready";
  }

  /** Return the number of unfinished tasks that wait for a task, directly or through others; at most MAX_FREED. */
  freesOf(id) {
    if (!this.tasks.get(id)?.blocks?.length) return 0;
    if (!this.#freed.has(id)) this.#freed.set(id, this.#countFreed(id));
    return this.#freed.get(id);
  }

  #countFreed(id) {
    const seen = new Set([id]);
    const stack = [id];
    let edges = MAX_EDGES;
    while (stack.length && edges > 0 && seen.size <= MAX_FREED) {
      for (const other of (this.tasks.get(stack.pop()).blocks ?? []).slice(0, edges)) {
        edges--;
        const task = this.tasks.get(other);
        if (!task || isFinished(task) || seen.has(other)) continue;
        seen.add(other);
        stack.push(other);
      }
    }
    return Math.min(seen.size - 1, MAX_FREED);
  }
}

/** Return the rows of an old version from a result of `task.list`. */
export function buildRows(result) {
  const rows = new Rows();
  const ranked = result.tasks.map((task, at) => ({ ...task, rank: String(at).padStart(9, "0") }));
  rows.take({ ...result, reset: true, rows: ranked });
  return rows;
}
