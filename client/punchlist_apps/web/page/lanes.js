// The layout of a timeline: spans of work as blocks in two rows for each agent.

const MAX_BLOCKS = 240;
const MIN_PX = 6; // between the beginnings of two blocks
export const MAX_LANES = 20;

/** Return a span's end. One whose end was recorded before its beginning, as after a change of the clock, is a point. */
export const endOf = (span, now) => Math.max(span.from_at, span.to_at ?? now);

/** Return `{ owner, spans, busy }` for each owner: those at work first, then by name. `busy` is a share from 0 to 1. */
export function groupByOwner(spans, now) {
  const lanes = [...Map.groupBy(spans, (span) => span.owner ?? "")].map(([owner, spans]) => {
    spans.sort((a, b) => a.from_at - b.from_at);
    return { owner, spans, isRunning: spans.some((span) => span.to_at === undefined), ...measure(spans, now) };
  });
  return lanes.sort((a, b) => b.isRunning - a.isRunning || (a.owner < b.owner ? -1 : 1));
}

/** Return the busy share of the time since the first span, and the longest time between two spans. */
function measure(spans, now) {
  let [busy, end, idle] = [0, spans[0].from_at, { ms: 0 }];
  for (const span of spans) {
    if (span.from_at - end > idle.ms) idle = { ms: span.from_at - end, at: end };
    busy += Math.max(0, endOf(span, now) - Math.max(end, span.from_at));
    end = Math.max(end, endOf(span, now));
  }
  if (now - end > idle.ms) idle = { ms: now - end, at: end };
  const total = now - spans[0].from_at;
  return { busy: total > 0 ? Math.min(1, busy / total) : 1, idle };
}

/** Return the spans that share the color of a block: what happened to any of them, the most important first. */
const ORDER = ["running", "failed", "waits", "completed", "released"];

/**
 * Return the lanes with `rows`: two lists of blocks `{ x, wide, room, spans, outcome }` in pixels.
 *
 * Spans that begin closer than a few pixels share a block. The distance is doubled until there are at most MAX_BLOCKS
 * blocks, so that the number of elements does not depend on the number of spans.
 */
export function layOutLanes(lanes, x, now, wide) {
  for (let min = MIN_PX; ; min *= 2) {
    const placed = lanes.map((lane) => ({ ...lane, rows: placeSpans(lane.spans, x, now, wide, min) }));
    const count = placed.reduce((sum, { rows }) => sum + rows[0].length + rows[1].length, 0);
    if (count <= MAX_BLOCKS || min > wide) return placed;
  }
}

function placeSpans(spans, x, now, wide, min) {
  const rows = [[], []];
  for (const span of spans) {
    const [from, to] = [x(span.from_at), x(endOf(span, now))];
    if (to < 0 || from > wide) continue;
    const [first, second] = rows.map((row) => row.at(-1));
    // Rows take turns, unless the other one still has a span.
    const turn = !first || (second && second.x > first.x) ? 0 : 1;
    const row = rows[rows[turn].at(-1)?.end > from && !(rows[1 - turn].at(-1)?.end > from) ? 1 - turn : turn];
    const last = row.at(-1);
    if (last && from - last.x < min) {
      last.spans.push(span);
      last.end = Math.max(last.end, to);
    } else row.push({ x: from, end: to, spans: [span] });
  }
  for (const row of rows) {
    row.forEach((block, at) => {
      block.wide = Math.max(3, block.end - block.x);
      block.room = (row[at + 1]?.x ?? Infinity) - block.x - 4;
      block.outcome = ORDER.find((outcome) => block.spans.some((span) => span.outcome === outcome)) ?? "completed";
    });
  }
  return rows;
}

/** Return totals at all times of several lists, added up. */
export function addTotals(series) {
  const times = [...new Set(series.flatMap((totals) => totals.map(({ at }) => at)))].sort((a, b) => a - b);
  const next = series.map(() => 0);
  return times.map((at) => {
    const sum = { at, all: 0, done: 0, failed: 0 };
    series.forEach((totals, each) => {
      while (totals[next[each]]?.at <= at) next[each]++;
      const last = totals[next[each] - 1];
      for (const name of ["all", "done", "failed"]) sum[name] += last?.[name] ?? 0;
    });
    return sum;
  });
}

/** Return the figures of a time: the slowest span, the task with the most tries, and the ms that ended in a failure. */
export function findExtremes(spans, now) {
  const tries = new Map();
  let [slowest, lost] = [null, 0];
  for (const span of spans) {
    const ms = endOf(span, now) - span.from_at;
    if (!slowest || ms > slowest.ms) slowest = { span, ms };
    if (span.outcome === "failed") lost += ms;
    const key = `${span.conversation} ${span.task}`;
    const count = (tries.get(key)?.count ?? 0) + 1;
    tries.set(key, { span, count });
  }
  const most = [...tries.values()].reduce((best, each) => (each.count > (best?.count ?? 1) ? each : best), null);
  return { slowest, most, lost, asks: spans.filter((span) => span.outcome === "waits").length };
}
