// What of a push is worth telling a person who looks elsewhere.

import type { Change, TaskList } from "./model.ts";
import { label } from "./text.ts";
import { type Counts, openCount } from "./wire.ts";

/** Which news a person wants: `mine` are those of tasks that they own. */
export type Level = "off" | "mine" | "all";

interface Reader {
  /** The counts before the push. */
  counts: Counts;
  /** Tasks that the reader changed, with the version that this made. */
  own: Map<string, number>;
  owner: string;
  level: Level;
}

/** What a push is worth telling: tasks that failed or can start now, and that all is done. */
export function news(list: TaskList, change: Change, { counts, own, owner, level }: Reader): string[] {
  if (level === "off" || change.reset) return [];
  const told: string[] = [];
  for (const [id, before] of change.before) {
    const row = list.get(id);
    if (!row || !before || own.get(id) === row.version || (level === "mine" && row.owner !== owner)) continue;
    if (row.status === "failed" && before.status !== "failed") told.push(`${label(row)} failed${row.fail_reason ? `: ${row.fail_reason}` : ""}`);
    const canStart = row.status === "pending" && before.open_blockers?.length && !row.open_blockers?.length;
    if (canStart) told.push(`${label(row)} can start now`);
  }
  const isOwn = [...change.before.keys()].some((id) => own.get(id) === list.get(id)?.version);
  if (openCount(counts) && !list.open && list.size && !isOwn) told.push(`all tasks of ${list.name} are finished`);
  return told;
}
