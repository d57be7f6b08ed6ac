// Converts members of a task between the API's format and form text: times, durations, labels, links.

import { Problem } from "./link.js";
import { UNITS, formatDuration } from "./text.js";

export { formatDuration };


/** Parse `90m`, `1.5h` or `3d` into milliseconds. A number without a unit is in seconds, as on the command line. */
function parseDuration(text) {
  if (!text) return null;
  const [, number, unit = "s"] = /^(\d+(?:\.\d+)?)\s*(ms|[smhd])?$/.exec(text) ?? [];
  if (!number) throw new Problem("form", `“${text}” is not a duration: write 90m, 2h or 3d.`);
  return Math.round(Number(number) * UNITS.find(([name]) => name === unit)[1]);
}

/** Members with a day or a time. */
export const TIMES = ["due", "not_before"];

/** Return a local time in the format of date and time fields; empty if it is missing or out of range. */
function formatTime(ms) {
  const at = new Date((ms ?? NaN) - new Date(ms ?? 0).getTimezoneOffset() * 60_000);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 16);
}
/** Return a task's due or not-before time, as a day such as `2026-12-24` or a local time such as `2026-12-24T18:00`. */
export const formatWhen = (task, name) => task[`${name}_day`] ?? formatTime(task[name]);

/** Return the members for such a text. A day is sent with the time at which it begins in the local zone. */
export function parseWhen(text, name) {
  if (!text) return { [name]: null };
  if (!text.includes("-")) throw new Problem("form", `“${text}” needs a day: choose one, or clear the time of day.`);
  if (text.includes("T")) return { [name]: new Date(text).getTime() };
  return { [name]: new Date(`${text}T00:00`).getTime(), [`${name}_day`]: text };
}

const formatLabels = (labels) => (labels ?? []).join(", ");
const parseLabels = (text) =>
  [...new Set(text.split(",").map((label) => label.trim().replace(/^\+/, "")).filter(Boolean))];

const formatLinks = (links) => (links ?? []).map(({ kind, to }) => `${kind}=${to}`).join("\n");
/** Parse links, one per line: `KIND=TARGET`, a URL or a path. */
const parseLinks = (text) =>
  text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const [, kind, to] = /^([a-z][a-z0-9-]*)=(.+)$/.exec(line) ?? [];
    return kind ? { kind, to } : { kind: /^https?:\/\//.test(line) ? "url" : "path", to: line };
  });

/** Members that a form shows as text, with the functions that format and parse them. */
export const CONVERTERS = {
  estimate_ms: [formatDuration, parseDuration],
  labels: [formatLabels, parseLabels],
  links: [formatLinks, parseLinks],
};

/** Return whether a target is safe to open as a link. */
export const isWebAddress = (to) => /^https?:\/\//i.test(to);
