// Reads a task from one line: `Fix the voucher field !high +bug @codex ←#38 ^12 due fri 17:00 ~45m ?`.
// docs/faces.md describes the signs.

const WEEKDAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const CLOCK = /^([01]?\d|2[0-3]):([0-5]\d)$/;
const pad = (number) => String(number).padStart(2, "0");
const formatDay = (at) => `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;

/** Return the day that a word names, as `2026-12-24`; null if it names none. A weekday is the next one after today. */
function readDay(word, now) {
  const at = new Date(now);
  const text = word.toLowerCase();
  const weekday = text.length >= 3 ? WEEKDAYS.findIndex((name) => name.startsWith(text)) : -1;
  if (text === "tomorrow") at.setDate(at.getDate() + 1);
  else if (weekday >= 0) at.setDate(at.getDate() + ((weekday - at.getDay() + 6) % 7) + 1);
  else if (/^\d{4}-\d\d-\d\d$/.test(text)) return Number.isNaN(Date.parse(`${text}T00:00`)) ? null : text;
  else if (text !== "today") return null;
  return formatDay(at);
}

const PRIORITIES = { low: "low", normal: "normal", high: "high", urgent: "urgent", "!": "urgent" };
const readIds = (text) => (/^#?\d{1,9}(,#?\d{1,9}){0,63}$/.test(text) ? text.replaceAll("#", "").split(",") : null);

/** Signs at the beginning of a word: what the rest of the word must start with and becomes, or why it is wrong. */
const SIGNS = {
  "!": { member: "priority", read: (rest) => PRIORITIES[rest.toLowerCase()], hint: "write !low, !high or !!" },
  "+": { member: "labels", isMany: true, read: (rest) => [rest] },
  "@": { member: "owner", read: (rest) => rest },
  "←": { member: "blocked_by", isMany: true, read: readIds, start: /^#?\d/, hint: "write ←38 or ←38,40" },
  "<": { member: "blocked_by", isMany: true, read: readIds, start: /^#?\d/, hint: "write <38 or <38,40" },
  "^": { member: "parent", read: (rest) => readIds(rest)?.[0], start: /^#?\d/, hint: "write ^12" },
  "~": { member: "estimate_ms", read: (rest) => (/^\d+(\.\d+)?[mhd]$/.test(rest) ? rest : null), start: /^\d/, hint: "write ~45m, ~2h or ~3d" },
};
const TIMES = { due: "due", from: "not_before" };

/**
 * Return the members of a task from one line, as texts of a form, and its `tokens`.
 *
 * A token is `{ text, member, problem }`. `hasTask(id)` returns whether a task exists. `due` and `from` are read as such
 * only before a day, and a sign only before what it can mean, so that ordinary words stay in the title. After a
 * backslash, a sign is text.
 */
export function readShorthand(line, { now = new Date(), hasTask = () => true } = {}) {
  const words = line.trim().split(/\s+/).filter(Boolean);
  const members = {};
  const tokens = [];
  const title = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    const day = TIMES[word.toLowerCase()] && at + 1 < words.length && readDay(words[at + 1], now);
    if (day) {
      const clock = CLOCK.exec(words[at + 2] ?? "");
      const used = words.slice(at, at + (clock ? 3 : 2));
      members[TIMES[word.toLowerCase()]] = clock ? `${day}T${pad(clock[1])}:${clock[2]}` : day;
      tokens.push({ text: used.join(" "), member: TIMES[word.toLowerCase()], problem: "" });
      at += used.length - 1;
      continue;
    }
    if (word === "?" && at === words.length - 1 && title.length) {
      members.gate = { yes: true };
      tokens.push({ text: word, member: "gate", problem: "" });
      continue;
    }
    const sign = SIGNS[word[0]];
    const rest = word.slice(1);
    if (!sign || !(sign.start ?? /^[\p{L}\p{N}]|^!$/u).test(rest)) {
      title.push(/^\\[!+@←<^~?]/.test(word) ? word.slice(1) : word);
      continue;
    }
    const value = sign.read(rest);
    const missing = ["blocked_by", "parent"].includes(sign.member) && [value ?? []].flat().find((id) => !hasTask(id));
    const problem = !value ? sign.hint : missing ? `there is no task #${missing}` : "";
    tokens.push({ text: word, member: sign.member, problem });
    if (!problem) members[sign.member] = sign.isMany ? [...(members[sign.member] ?? []), ...value] : value;
  }
  return { members: { title: title.join(" "), ...members }, tokens };
}
