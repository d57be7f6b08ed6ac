// Text of others made fit to show, and numbers as words, by the rules of punchlist/base/text.py and
// common/terminal/render.py.

import { IGNORABLE, JOINERS, MARKS, MAX_MARKS, SELECTORS } from "./characters.js";

const HARMFUL = `[\\p{C}\\p{Zl}\\p{Zp}${IGNORABLE}]`;
const ALL_HARMFUL = new RegExp(HARMFUL, "gu");
const IS_HARMFUL = new RegExp(HARMFUL, "u");
const HEAP = new RegExp(`([${MARKS}]{${MAX_MARKS}})([${MARKS}]+)`, "gu");
const IS_JOINER = new RegExp(`^[${JOINERS}]$`, "u");
const IS_SELECTOR = new RegExp(`^[${SELECTORS}]$`, "u");
const PLAIN = /^[ -~]*$/;

function escaped(char) {
  const code = char.codePointAt(0);
  const [sign, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${sign}${code.toString(16).padStart(width, "0")}`;
}

/** Whether a joiner may stand beside this character: a letter, a digit, a mark or a picture. */
const isWriting = (char) =>
  /^[\p{L}\p{N}]$/u.test(char) || (char > "\u00ff" && !IS_HARMFUL.test(char) && !/^\p{Zs}$/u.test(char));

/** The character as it is where writing needs it, else as an escape. */
function shown(char, place, text) {
  const before = [...text.slice(Math.max(place - 2, 0), place)].at(-1) ?? "";
  const after = [...text.slice(place + char.length, place + char.length + 2)][0] ?? "";
  const needed = isWriting(before) && (IS_JOINER.test(char) ? isWriting(after) : IS_SELECTOR.test(char));
  return needed ? char : escaped(char);
}

/** The text with everything that could steer or deceive a reader as a visible escape. */
export function safe(text) {
  text = String(text ?? "");
  if (PLAIN.test(text)) return text;
  return text.replace(HEAP, (_, kept, rest) => kept + [...rest].map(escaped).join("")).replace(ALL_HARMFUL, shown);
}

/** As `safe`, for text of several lines: newline and tab stay. */
export const safeBlock = (text) =>
  String(text ?? "").split(/([\n\t])/).map((part) => (part === "\n" || part === "\t" ? part : safe(part))).join("");

/** A duration in its largest unit: 40s, 12m, 3h, 2d. */
export function since(ms) {
  const seconds = Math.floor(Math.max(ms, 0) / 1000);
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]].find(([size]) => seconds >= size || size === 1);
  return `${Math.floor(seconds / size)}${unit}`;
}

const DAY = { month: "short", day: "numeric" };
const TIME = { hour: "2-digit", minute: "2-digit" };

export function clock(ms) {
  const isRecent = Date.now() - ms < 64_800_000;
  return new Date(ms).toLocaleString(undefined, isRecent ? TIME : { ...DAY, ...TIME });
}
/** A day, with the time of day where there is one, and the year where it is another one. */
function moment(ms) {
  const at = new Date(ms);
  const year = at.getFullYear() !== new Date().getFullYear() && { year: "numeric" };
  const time = (at.getHours() || at.getMinutes()) && TIME;
  return at.toLocaleString(undefined, { ...DAY, ...year, ...time });
}
/** When a task is due or put off until: its day where it has one, wherever it is read, else the local time. */
export const dayText = (one, member) => {
  const day = one[`${member}_day`];
  return day ? moment(new Date(`${day}T00:00`).getTime()) : moment(one[member]);
};
export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString()} ${count === 1 ? one : many}`;

/** What is said of a list of a space while its newest changes may be missing here. */
export function sharedNote({ space, state, since: at }) {
  const when = at && state === "offline" ? ` since ${clock(at)}` : "";
  return `${safe(space)}: ${safe(state)}${when}${state === "behind" ? "" : ", changes are refused"}`;
}
