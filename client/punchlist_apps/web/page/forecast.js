// When a list will be done, from how fast its tasks were completed and added in the last hours.

const HOUR_MS = 3_600_000;
/** How far back the speed is measured. */
export const LOOKBACK_MS = 2 * HOUR_MS;
const WINDOW_MS = HOUR_MS / 2;
const MIN_RESULTS = 5;
const WINDOWS = 16; // that slide over the time looked back at

/** Return the last totals at or before a time, or the first ones. */
const totalsAt = (totals, at) => totals.findLast((each) => each.at <= at) ?? totals[0];

/** Return the tasks completed in a time, less those added in it. */
function gain(totals, from, to) {
  const [before, after] = [totalsAt(totals, from), totalsAt(totals, to)];
  return after.done - before.done - (after.all - before.all);
}

const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

/**
 * Return when all tasks will be done; null if too few were completed, or if more are added than done.
 *
 * @param {{at: number, all: number, done: number, failed: number}[]} totals  in order of time
 * @param {number} now  the end of the time looked back at
 * @returns {{at: number, early: number, late: number, perHour: number} | null}
 *   `early` and `late` follow from the best and the worst quarter of half hours. `late` is Infinity if the list grew
 *   in them. `perHour` counts the completed tasks alone.
 */
export function forecast(totals, now) {
  const begun = totals.find((each) => each.all > 0);
  if (!begun) return null;
  const start = Math.max(now - LOOKBACK_MS, begun.at);
  const [first, last] = [totalsAt(totals, start), totalsAt(totals, now)];
  const left = last.all - last.done - last.failed;
  const done = last.done - first.done;
  const gained = gain(totals, start, now);
  if (done < MIN_RESULTS || gained <= 0 || left <= 0 || now <= start) return null;
  const wide = Math.min(WINDOW_MS, (now - start) / 4);
  const step = (now - start - wide) / (WINDOWS - 1);
  const gains = Array.from({ length: WINDOWS }, (_, at) => gain(totals, start + at * step, start + at * step + wide));
  gains.sort((a, b) => b - a);
  const timeFor = (tasks, ms) => (tasks > 0 ? now + (left * ms) / tasks : Infinity);
  const at = timeFor(gained, now - start);
  return {
    at,
    early: Math.min(at, timeFor(mean(gains.slice(0, WINDOWS / 4)), wide)),
    late: Math.max(at, timeFor(mean(gains.slice(-WINDOWS / 4)), wide)),
    perHour: (done * HOUR_MS) / (now - start),
  };
}

/** Return a time to come, as `18:10`, and with the day if that is not today. It is rounded to five minutes. */
export function formatAhead(ms) {
  const at = new Date(Math.round(ms / 300_000) * 300_000);
  const day = at.toDateString() !== new Date().toDateString() && { weekday: "short", day: "numeric", month: "short" };
  return at.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit" });
}

export const formatRange = ({ early, late }) =>
  `${formatAhead(early)} ${late === Infinity ? "or much later" : `to ${formatAhead(late)}`}`;
