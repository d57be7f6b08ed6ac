// Escapes untrusted text and formats numbers and times, by the same rules as punchlist/base/text.py and
// common/terminal/render.py.

import { IGNORABLE, JOINERS, MARKS, MAX_MARKS, SELECTORS } from "./characters.js";

const HARMFUL = `[\\p{C}\\p{Zl}\\p{Zp}${IGNORABLE}]`;
const ALL_HARMFUL = new RegExp(HARMFUL, "gu");
const IS_HARMFUL = new RegExp(HARMFUL, "u");
const HEAP = new RegExp(`([${MARKS}]{${MAX_MARKS}})([${MARKS}]+)`, "gu");
const IS_JOINER = new RegExp(`^[${JOINERS}]$`, "u");
const IS_SELECTOR = new RegExp(`^[${SELECTORS}]$`, "u");
const PLAIN = /^[ -~]*$/;

function escapeChar(char) {
  const code = char.codePointAt(0);
  const [sign, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${sign}${code.toString(16).padStart(width, "0")}`;
}

/** Return whether a joiner is allowed next to this character, which is true for letters, digits, marks and emoji. */
const isWriting = (char) =>
  /^[\p{L}\p{N}]$/u.test(char) || (char > "\u00ff" && !IS_HARMFUL.test(char) && !/^\p{Zs}$/u.test(char));

/** Return the character, escaped unless the surrounding text needs it. */
function escapeUnlessNeeded(char, index, text) {
  const before = [...text.slice(Math.max(index - 2, 0), index)].at(-1) ?? "";
  const after = [...text.slice(index + char.length, index + char.length + 2)][0] ?? "";
  const isNeeded = isWriting(before) && (IS_JOINER.test(char) ? isWriting(after) : IS_SELECTOR.test(char));
  return isNeeded ? char : escapeChar(char);
}

/** Return the text with control and other deceptive characters as visible escapes. */
export function safe(text) {
  text = String(text ?? "");
  if (PLAIN.test(text)) return text;
  const shortened = text.replace(HEAP, (_, marks, rest) => marks + [...rest].map(escapeChar).join(""));
  return shortened.replace(ALL_HARMFUL, escapeUnlessNeeded);
}

/** Return multiline text escaped as by `safe`, but with its newlines and tabs kept. */
export const safeBlock = (text) =>
  String(text ?? "").split(/([\n\t])/).map((part) => (part === "\n" || part === "\t" ? part : safe(part))).join("");

/** Return a duration in its largest unit, such as 40s, 12m, 3h or 2d. */
export function since(ms) {
  const seconds = Math.floor(Math.max(ms, 0) / 1000);
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]].find(([size]) => seconds >= size || size === 1);
  return `${Math.floor(seconds / size)}${unit}`;
}

export const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000], ["ms", 1]];

/** Return a duration in the largest unit that divides it evenly. */
export function formatDuration(ms) {
  if (!ms) return "";
  const [unit, size] = UNITS.find(([, size]) => ms % size === 0);
  return `${ms / size}${unit}`;
}

const DAY = { month: "short", day: "numeric" };
const TIME = { hour: "2-digit", minute: "2-digit" };

export function clock(ms) {
  const isRecent = Date.now() - ms < 64_800_000;
  return new Date(ms).toLocaleString(undefined, isRecent ? TIME : { ...DAY, ...TIME });
}

/** Return a day, with the time unless that is midnight, and with the year unless that is the current one. */
function formatMoment(ms) {
  const at = new Date(ms);
  const year = at.getFullYear() !== new Date().getFullYear() && { year: "numeric" };
  const time = (at.getHours() || at.getMinutes()) && TIME;
  return at.toLocaleString(undefined, { ...DAY, ...year, ...time });
}

/** Return a task's due or not-before time: its day, which is the same in every time zone, or else the local time. */
export const dayText = (task, member) => {
  const day = task[`${member}_day`];
  return formatMoment(day ? new Date(`${day}T00:00`).getTime() : task[member]);
};

export const plural = (count, singular, many = `${singular}s`) =>
  `${count.toLocaleString()} ${count === 1 ? singular : many}`;

/** Return the note for a shared list whose newest changes may be missing on this machine. */
export function sharedNote({ space, state, since: at }) {
  const when = at && state === "offline" ? ` since ${clock(at)}` : "";
  return `${safe(space)}: ${safe(state)}${when}${state === "behind" ? "" : ", changes are refused"}`;
}
