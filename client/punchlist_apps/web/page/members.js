// What stands in the fields of a form, and what it is on the wire: times, durations, labels, links.

import { Problem } from "./link.js";

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000], ["ms", 1]];

/** A duration as it is written: the largest unit that loses nothing. */
export function durationText(ms) {
  if (!ms) return "";
  const [unit, size] = UNITS.find(([, size]) => ms % size === 0);
  return `${ms / size}${unit}`;
}

/** `90m`, `1.5h`, `3d` in milliseconds; a bare number is seconds, as on the command line. */
function durationIn(text) {
  if (!text) return null;
  const [, number, unit = "s"] = /^(\d+(?:\.\d+)?)\s*(ms|[smhd])?$/.exec(text) ?? [];
  if (!number) throw new Problem("form", `“${text}” is not a duration: write 90m, 2h or 3d.`);
  return Math.round(Number(number) * UNITS.find(([one]) => one === unit)[1]);
}

/** Members that are a day or a time. */
export const TIMES = ["due", "not_before"];

/** A time in the form of fields for dates, in local time; empty: there is none, or no calendar has it. */
function timeText(ms) {
  const at = new Date((ms ?? NaN) - new Date(ms ?? 0).getTimezoneOffset() * 60_000);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 16);
}
/** When a task is due or put off until: `2026-12-24` is that day everywhere, `2026-12-24T18:00` a local time. */
export const whenText = (one, name) => one[`${name}_day`] ?? timeText(one[name]);
/** The members of the wire that such a text means: of a day also when it begins here. */
export function whenIn(text, name) {
  if (!text) return { [name]: null };
  if (!text.includes("-")) throw new Problem("form", `“${text}” needs a day: choose one, or clear the time of day.`);
  if (text.includes("T")) return { [name]: new Date(text).getTime() };
  return { [name]: new Date(`${text}T00:00`).getTime(), [`${name}_day`]: text };
}

const labelsText = (labels) => (labels ?? []).join(", ");
const labelsIn = (text) => [...new Set(text.split(",").map((one) => one.trim().replace(/^\+/, "")).filter(Boolean))];

const linksText = (links) => (links ?? []).map(({ kind, to }) => `${kind}=${to}`).join("\n");
/** A line is `KIND=TARGET`; an address or a path alone is known by its looks. */
const linksIn = (text) =>
  text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const [, kind, to] = /^([a-z][a-z0-9-]*)=(.+)$/.exec(line) ?? [];
    return kind ? { kind, to } : { kind: /^https?:\/\//.test(line) ? "url" : "path", to: line };
  });

/** Members with a text of their own in a form: how they are shown, and what the text means. */
export const AS_TEXT = {
  estimate_ms: [durationText, durationIn],
  labels: [labelsText, labelsIn],
  links: [linksText, linksIn],
};

/** An address that a browser may be led to. */
export const isWeb = (to) => /^https?:\/\//i.test(to);
