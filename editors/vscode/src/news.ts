// Notifications about changes by others.

import type { Change, TaskList } from "./model.ts";
import { formatLabel } from "./text.ts";
import { type Counts, openCount } from "./wire.ts";

/** Tasks to notify about. `mine` means those that the user owns. */
export type Level = "off" | "mine" | "all";

interface Reader {
  /** The counts before the push. */
  counts: Counts;
  /** Ids of tasks changed by the user → their versions after the change. */
  own: Map<string, number>;
  owner: string;
  level: Level;
}

/** Return notifications about a push: tasks that failed or became ready, and a finished list. */
export function findNews(list: TaskList, change: Change, { counts, own, owner, level }: Reader): string[] {
  if (level === "off" || change.reset) return [];
  const texts: string[] = [];
  for (const [id, before] of change.before) {
    const row = list.get(id);
    if (!row || !before || own.get(id) === row.version || (level === "mine" && row.owner !== owner)) continue;
    if (row.status === "failed" && before.status !== "failed") texts.push(`${formatLabel(row)} failed${row.fail_reason ? `: ${row.fail_reason}` : ""}`);
    const canStart = row.status === "pending" && before.open_blockers?.length && !row.open_blockers?.length;
    if (canStart) texts.push(`${formatLabel(row)} can start now`);
  }
  const isOwn = [...change.before.keys()].some((id) => own.get(id) === list.get(id)?.version);
  if (openCount(counts) && !list.open && list.size && !isOwn) texts.push(`all tasks of ${list.name} are finished`);
  return texts;
}
