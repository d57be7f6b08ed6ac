// Text of others made fit to show, and numbers as words: the twin of punchlist/base/text.py and common/terminal/render.py.

const IGNORABLE = "\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2800\\u3164\\ufe00-\\ufe0d\\uffa0\\u{e0000}-\\u{e0fff}";
const HARMFUL = new RegExp(`[\\p{C}\\p{Zl}\\p{Zp}${IGNORABLE}]`, "gu");
const MARK = "[\\u0300-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f]";
const HEAP = new RegExp(`(${MARK}{4})(${MARK}+)`, "gu");
const JOINERS = "\u00ad\u200c\u200d";
const SELECTOR = /^[\ufe00-\ufe0d\u{e0100}-\u{e01ef}]$/u;
const PLAIN = /^[ -~]*$/;

function escaped(char) {
  const code = char.codePointAt(0);
  const [sign, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${sign}${code.toString(16).padStart(width, "0")}`;
}

/** Whether a joiner may stand beside this character: a letter, a digit, a mark or a picture. */
const isWriting = (char) => /^[\p{L}\p{N}]$/u.test(char) || (char > "\u00ff" && !new RegExp(HARMFUL.source, "u").test(char) && !/^\p{Zs}$/u.test(char));

/** The character as it is where writing needs it, else as an escape. */
function shown(char, place, text) {
  const before = [...text.slice(Math.max(place - 2, 0), place)].at(-1) ?? "";
  const after = [...text.slice(place + char.length, place + char.length + 2)][0] ?? "";
  const needed = isWriting(before) && (JOINERS.includes(char) ? isWriting(after) : SELECTOR.test(char));
  return needed ? char : escaped(char);
}

/** The text with everything that could steer or deceive a reader as a visible escape. */
export function safe(text) {
  text = String(text ?? "");
  if (PLAIN.test(text)) return text;
  return text.replace(HEAP, (_, kept, rest) => kept + [...rest].map(escaped).join("")).replace(HARMFUL, shown);
}

/** As `safe`, for text of several lines: newline and tab stay. */
export const safeBlock = (text) => String(text ?? "").split(/([\n\t])/).map((part) => (part === "\n" || part === "\t" ? part : safe(part))).join("");

/** A duration in its largest unit: 40s, 12m, 3h, 2d. */
export function since(ms) {
  const seconds = Math.floor(Math.max(ms, 0) / 1000);
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  return `${seconds}s`;
}

export const clock = (ms) => new Date(ms).toLocaleString(undefined, Date.now() - ms < 64_800_000 ? { hour: "2-digit", minute: "2-digit" } : { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
/** A day, with the time of day where there is one, and the year where it is another one. */
export function moment(ms) {
  const at = new Date(ms);
  const timed = at.getHours() || at.getMinutes();
  return at.toLocaleString(undefined, { month: "short", day: "numeric", ...(at.getFullYear() !== new Date().getFullYear() && { year: "numeric" }), ...(timed && { hour: "2-digit", minute: "2-digit" }) });
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
