// Reads Markdown into elements: paragraphs, headings, lists, quotes, fences, rules and tables; code, emphasis and links.
//
// Text from others decides the time, so every pattern and every search has a bound. There is no HTML and there are no
// images: an image would tell its server who reads.

import { isWebAddress, safe } from "./text.js";

const MAX_DEPTH = 6; // of quotes and lists
const MAX_OPEN = 20; // nested emphasis
const MAX_REACH = 1000; // characters between the two ends of a piece of inline text
const MAX_ROWS = 200;

const FENCE = /^ {0,3}(`{3,20}(?![^`]{0,200}`)|~{3,20}) {0,9}([\w+#.-]{0,30})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]{0,9}\1){2,99}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,12})([-*+]|\d{1,9}[.)])( {1,4}|\t|$)/;
const BOX = /^\[([ xX])\] /;
const TABLE_RULE = /^ {0,3}\|? {0,99}:?-{1,99}:? {0,99}(?:\| {0,99}:?-{1,99}:? {0,99}){0,99}\|? *$/;

/** Pieces that begin at a letter, digit or `#`: their pattern and their element; null for an address. */
const WORDS = [
  [/(?:https?:\/\/|mailto:)[^\s<>"`|]{1,2000}/y, null],
  [/[\w.@-]{1,100}(?:\/[\w.@-]{1,100}){0,20}\.[A-Za-z]\w{0,9}:\d{1,7}/y, "path"],
  [/#\d{1,9}(?!\w)/y, "task"],
  [/(?=[a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40}(?!\w)/y, "commit"],
];
const WORD_START = /[\w#]/;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const MARK = /[\p{P}\p{S}]/u;
const EMPHASES = { "*": ["em", "strong"], "_": ["em", "strong"], "~": ["", "del"] }; // by length

/** Return an element: its tag, its attributes, and its children, which are elements and escaped strings. */
const build = (tag, attributes = null, children = []) => ({ tag, attributes, children: [children].flat(2).filter((child) => child) });

/**
 * Return the elements of a text. Beside those of HTML there are `path` ("src/a.py:7"), `task` ("#7") and `commit`, each
 * with its text as its child.
 */
export const readMarkdown = (text) => readBlocks(text.replaceAll("\t", "    ").split("\n"), 0);

function readBlocks(lines, depth) {
  const blocks = [];
  for (let at = 0; at < lines.length;) {
    const [end, block] = readBlock(lines, at, depth);
    if (block) blocks.push(block);
    at = end;
  }
  return blocks;
}

/** Return the line after a block, and its element. */
function readBlock(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [at + 1, null];
  const fence = FENCE.exec(line);
  if (fence) return readFence(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    const text = line.slice(heading[0].length).trim().replace(/(?:^|[ \t])#{1,99}$/, "").trim();
    return [at + 1, build(`h${Math.min(6, heading[1].length + 3)}`, null, readInline(text))];
  }
  if (RULE.test(line)) return [at + 1, build("hr")];
  if (depth < MAX_DEPTH && QUOTE.test(line)) {
    let end = at;
    while (end < lines.length && (QUOTE.test(lines[end]) || isContinued(lines, end))) end++;
    const inner = lines.slice(at, end).map((each) => each.replace(QUOTE, ""));
    return [end, build("blockquote", null, readBlocks(inner, depth + 1))];
  }
  if (depth < MAX_DEPTH && ITEM.test(line)) return readList(lines, at, depth);
  if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "")) return readTable(lines, at);
  let end = at + 1;
  while (end < lines.length && isContinued(lines, end)) end++;
  const text = lines.slice(at, end).map((each) => each.trim()).join("\n");
  return [end, build("p", null, readInline(text))];
}

/** Return whether a line continues the paragraph before it. */
const isContinued = (lines, at) =>
  lines[at].trim() !== "" && ![FENCE, HEADING, RULE, QUOTE, ITEM].some((start) => start.test(lines[at]));

function readFence(lines, at, [, marker, language]) {
  let end = at + 1;
  while (end < lines.length && !(lines[end].trim().startsWith(marker) && /^(`+|~+)$/.test(lines[end].trim()))) end++;
  const text = lines.slice(at + 1, end).map(safe).join("\n");
  return [end + 1, build("pre", null, build("code", language ? { "data-lang": language } : null, text))];
}

function readList(lines, at, depth) {
  const [, { length: indent }, marker] = ITEM.exec(lines[at]);
  const isOrdered = /\d/.test(marker);
  const isSibling = (line) => {
    const item = ITEM.exec(line);
    return item && item[1].length <= indent + 1 && /\d/.test(item[2]) === isOrdered && !RULE.test(line);
  };
  const isInside = (line) => /^ */.exec(line)[0].length >= indent + 2;
  const items = [];
  let width = 0; // of the current item's marker, which its further lines are indented by
  let end = at;
  for (; end < lines.length; end++) {
    const line = lines[end];
    if (isSibling(line)) {
      width = ITEM.exec(line)[0].length;
      items.push([line.slice(width)]);
    } else if (!line.trim()) {
      const next = lines.slice(end, end + 5).find((each) => each.trim()) ?? "";
      if (!isSibling(next) && !isInside(next)) break;
      items.at(-1).push("");
    } else if (isInside(line)) items.at(-1).push(line.slice(Math.min(width, /^ */.exec(line)[0].length)));
    else if (lines[end - 1].trim() && isContinued(lines, end)) items.at(-1).push(line);
    else break;
  }
  const number = isOrdered && parseInt(marker, 10);
  return [end, build(isOrdered ? "ol" : "ul", isOrdered && number !== 1 ? { start: number } : null,
    items.map((item) => readItem(item, depth)))];
}

function readItem(lines, depth) {
  const box = BOX.exec(lines[0]);
  if (box) lines[0] = lines[0].slice(box[0].length);
  const content = lines.length > 1 || ITEM.test(lines[0])
    ? unwrapFirst(readBlocks(lines, depth + 1))
    : readInline(lines[0]);
  const check = box && build("input", { type: "checkbox", disabled: true, checked: box[1] !== " " });
  return build("li", null, [check, content]);
}

/** Return the blocks of an item with its first paragraph as plain content, since items are not set apart. */
const unwrapFirst = ([first, ...rest]) => [...(first?.tag === "p" ? first.children : [first]), ...rest];

function readTable(lines, at) {
  const split = (line) => line.trim().replace(/^\||\|$/g, "").split("|").slice(0, 100);
  const row = (tag, line) =>
    build("tr", null, split(line).map((cell) => build(tag, null, readInline(cell.trim()))));
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end++;
  const shown = lines.slice(at + 2, Math.min(end, at + 2 + MAX_ROWS));
  return [end, build("table", null, [row("th", lines[at]), ...shown.map((line) => row("td", line))])];
}

/** Return inline text as strings and elements. The text of a link contains no further links. */
function readInline(text, hasLinks = true) {
  const parts = []; // strings, elements, and runs of emphasis
  const missing = new Set(); // delimiters that don't occur again
  let plain = 0;
  let at = 0;
  const push = (part, next) => {
    parts.push(safeText(text.slice(plain, at)), part);
    plain = at = next;
  };
  while (at < text.length) {
    const char = text[at];
    const isEscaped = char === "\\" && ESCAPABLE.test(text[at + 1] ?? "");
    const found = isEscaped ? [text[at + 1], at + 2]
      : char === "`" ? readCode(text, at, missing)
      : char === "[" && hasLinks ? readLink(text, at, missing)
      : EMPHASES[char] ? readRun(text, at)
      : WORD_START.test(char) && hasLinks ? readWord(text, at)
      : null;
    if (found) push(...found);
    else at = WORD_START.test(char) ? skipWord(text, at) : at + 1;
  }
  parts.push(safeText(text.slice(plain)));
  return pairRuns(parts).filter((part) => part !== "");
}

/** Return a run of `*`, `_` or `~` and where it ends, with whether it can open and close by CommonMark's rules. */
function readRun(text, at) {
  const char = text[at];
  let end = at;
  while (text[end] === char) end++;
  const before = text[at - 1] ?? " ", after = text[end] ?? " ";
  const isOpening = !/\s/.test(after) && (!MARK.test(after) || /\s/.test(before) || MARK.test(before));
  const isClosing = !/\s/.test(before) && (!MARK.test(before) || /\s/.test(after) || MARK.test(after));
  const canOpen = isOpening && (char !== "_" || !isClosing || MARK.test(before));
  const canClose = isClosing && (char !== "_" || !isOpening || MARK.test(after));
  return [{ char, count: end - at, canOpen, canClose }, end];
}

/** Replace pairs of runs by elements, as CommonMark does, and the other runs by their text. */
function pairRuns(parts) {
  const stack = [{ content: [] }]; // openers, each with the parts after it
  const barren = {}; // by kind of a run: the height of the stack below which no opener fits it
  const top = () => stack.at(-1).content;
  const flatten = (height) => {
    const { content } = stack[height - 1];
    for (const { char, count, content: inner } of stack.splice(height)) {
      content.push(char.repeat(count));
      for (const part of inner) content.push(part);
    }
  };
  for (const part of parts) {
    const run = part?.char ? part : null;
    if (!run) {
      top().push(part);
      continue;
    }
    while (run.canClose && run.count) {
      const kind = `${run.char}${run.canOpen}${run.count % 3}`;
      const opener = stack.findLastIndex((each, at) => at >= (barren[kind] ?? 1) && isPair(each, run));
      if (opener < 0) {
        barren[kind] = stack.length;
        break;
      }
      flatten(opener + 1);
      const { count, content } = stack[opener];
      const width = run.char === "~" ? 2 : Math.min(2, count, run.count);
      const element = build(EMPHASES[run.char][width - 1], null, content);
      if (count === width) stack.pop();
      else Object.assign(stack[opener], { count: count - width, content: [] });
      top().push(element);
      run.count -= width;
      for (const key of Object.keys(barren)) barren[key] = Math.min(barren[key], stack.length);
    }
    if (run.count && run.canOpen && stack.length <= MAX_OPEN) stack.push({ ...run, content: [] });
    else top().push(run.char.repeat(run.count));
  }
  flatten(1);
  return stack[0].content;
}

/** Return whether two runs make a pair. A run that could both open and close fits one only by the rule of three. */
function isPair(opener, closer) {
  if (opener.char !== closer.char) return false;
  if (opener.char === "~") return opener.count >= 2 && closer.count >= 2;
  const isEither = opener.canClose || closer.canOpen;
  return !isEither || (opener.count + closer.count) % 3 !== 0 || (opener.count % 3 === 0 && closer.count % 3 === 0);
}

/** Return plain text, escaped but with its line breaks. */
const safeText = (text) => text.split("\n").map(safe).join("\n");

function skipWord(text, at) {
  let end = at + 1;
  while (end < text.length && /[\w/.@:-]/.test(text[end]) && text[end] !== "_") end++;
  return end;
}

/** Return the next place of a delimiter within reach; -1 if there is none. */
function findNext(text, delimiter, from, missing) {
  if (missing.has(delimiter)) return -1;
  const at = text.indexOf(delimiter, from);
  if (at < 0) missing.add(delimiter);
  return at - from <= MAX_REACH ? at : -1;
}

function readCode(text, at, missing) {
  const marker = /^`{1,20}/.exec(text.slice(at, at + 20))[0];
  const from = at + marker.length;
  let end = findNext(text, marker, from, missing);
  while (end >= 0 && (text[end + marker.length] === "`" || text[end - 1] === "`"))
    end = findNext(text, marker, skipRun(text, end), missing);
  if (end < 0 || end - from > MAX_REACH) return [marker, from];
  const code = text.slice(from, end).replaceAll("\n", " ");
  const isPadded = code[0] === " " && code.at(-1) === " " && code.trim();
  return [build("code", null, safe(isPadded ? code.slice(1, -1) : code)), end + marker.length];
}

function skipRun(text, at) {
  while (text[at] === "`") at++;
  return at;
}

/** Read `[text](address)`. Any other address than http, https and mailto leaves the text as it is. */
function readLink(text, at, missing) {
  let close = findNext(text, "](", at + 1, missing);
  for (let tries = 0; close >= 0 && tries < 5 && !isBalanced(text.slice(at + 1, close)); tries++)
    close = findNext(text, "](", close + 2, missing);
  if (close < 0 || close - at > MAX_REACH) return null;
  const rest = text.slice(close + 2, close + 2 + MAX_REACH);
  const [whole, address] = /^\s{0,9}<?([^\s<>()]{1,900})>?(?:\s{1,9}"[^"]{0,300}")?\s{0,9}\)/.exec(rest) ?? [];
  const label = text.slice(at + 1, close);
  if (!whole || !(isWebAddress(address) || /^mailto:/i.test(address)) || !isBalanced(label)) return null;
  const link = buildLink(address, readInline(label, false));
  const host = label === address ? "" : build("small", null, ` (${safe(hostOf(address))})`);
  return [build("span", null, [link, host]), close + 2 + whole.length];
}

function isBalanced(text) {
  let depth = 0;
  for (const char of text) {
    depth += char === "[" ? 1 : char === "]" ? -1 : 0;
    if (depth < 0) return false;
  }
  return depth === 0;
}

const buildLink = (address, label) =>
  build("a", { href: address, rel: "noreferrer noopener", target: "_blank" }, label);

function hostOf(address) {
  try {
    return new URL(address).host || address.slice("mailto:".length);
  } catch {
    return address;
  }
}

/** Read an address, `path:line`, `#7` or a commit that begins at a word. */
function readWord(text, at) {
  if (at > 0 && /[\w/.@&-]/.test(text[at - 1])) return null;
  for (const [pattern, tag] of WORDS) {
    pattern.lastIndex = at;
    const [found] = pattern.exec(text) ?? [];
    if (!found) continue;
    const word = tag ? found : found.replace(/[.,;:!?'*_~)\]]{1,20}$/, "");
    return [tag ? build(tag, null, safe(word)) : buildLink(word, safe(word)), at + word.length];
  }
  return null;
}
