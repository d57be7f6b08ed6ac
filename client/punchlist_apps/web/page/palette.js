// The palette: finds tasks of all lists, lists, agents and commands by words.

import { effect, html, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { listCommands, run } from "./commands.js";
import { call, session, state } from "./link.js";
import {
  attempt, canChange, cards, closeDialog, filter, listPath, nameOf, place, showToast, visibleRows,
} from "./model.js";
import { hashOf } from "./place.js";
import { Badge, Key, Mark, Text } from "./parts.js";
import { isFinished, stateOf } from "./rows.js";
import { plural, safe } from "./text.js";

const RECENT_KEY = "punchlist.recent";
const MAX_RECENT = 5;
const MAX_TYPED = 500; // the limit of `task.search`
const PAUSE_MS = 120;
const MAX_HITS = 30;
const MAX_LINES = { Tasks: MAX_HITS, Lists: 8, Agents: 8, Do: 12 };
const FIRST_COMMANDS = 6;
const PREFIXES = { ">": "Do", "@": "Agents", "#": "Tasks" };

const keyOf = (hit) => `${hit.conversation} ${hit.task.id}`;
const readRecent = () => JSON.parse(localStorage.getItem(RECENT_KEY) ?? "[]");

// Remember the tasks looked at last, which an empty palette offers.
effect(() => {
  const { name, task } = place.value;
  const row = task && visibleRows.value?.tasks.get(task);
  if (!row) return;
  const seen = { conversation: name, task: { id: row.id, title: row.title, status: row.status } };
  const others = readRecent().filter((hit) => keyOf(hit) !== keyOf(seen));
  localStorage.setItem(RECENT_KEY, JSON.stringify([seen, ...others].slice(0, MAX_RECENT)));
});

/** Return the distance of a text from the typed letters, in order: 0 for a prefix, null if a letter is missing. */
function scoreMatch(text, typed) {
  let end = 0, score = 0;
  for (const letter of typed) {
    const index = text.indexOf(letter, end);
    if (index < 0) return null;
    score += index === end ? 0 : /[\s·./-]/.test(text[index - 1] ?? " ") ? 1 : index - end + 2;
    end = index + 1;
  }
  return score;
}

/** Return the entries whose text matches, best first. Without typed letters, all of them in their order. */
function findMatches(entries, typed, textOf) {
  const scored = entries.map((entry) => [scoreMatch(textOf(entry).toLowerCase(), typed), entry]);
  return scored.filter(([score]) => score !== null).sort((a, b) => typed && a[0] - b[0]).map(([, entry]) => entry);
}

/** Return the tasks of the open list that contain all words, or have the number. */
function findHere(words) {
  const hits = [];
  for (const task of visibleRows.value?.tasks.values() ?? []) {
    const text = `#${task.id} ${task.title} ${(task.labels ?? []).map((label) => `+${label}`).join(" ")}`.toLowerCase();
    if (words.every((word) => text.includes(word))) hits.push({ conversation: place.value.name, task });
    if (hits.length === MAX_HITS) break;
  }
  return hits;
}

/** Return hits without duplicates, unfinished tasks first, and among those the tasks of the open list. */
function sortHits(hits) {
  const rank = ({ conversation, task }) => (isFinished(task) ? 2 : 0) + (conversation === place.value.name ? 0 : 1);
  return [...new Map(hits.map((hit) => [keyOf(hit), hit])).values()].sort((a, b) => rank(a) - rank(b)).slice(0, MAX_HITS);
}

function listAgents() {
  const names = new Set();
  for (const card of cards.value.values()) for (const { owner } of card.running ?? []) if (owner) names.add(owner);
  for (const { owner } of visibleRows.value?.tasks.values() ?? []) if (owner) names.add(owner);
  return [...names].sort();
}

/** Return the tasks that the server finds. The answer for an older text is dropped. */
function useFound(typed, only) {
  const [found, setFound] = useState({ typed: "", hits: [], total: 0 });
  useEffect(() => {
    let isCurrent = true;
    const search = async () => {
      const query = new URLSearchParams({ query: typed, limit: MAX_HITS, ...(only && { conversation: only }) });
      const result = await attempt(() => call("GET", `/api/v1/search?${query}`));
      if (isCurrent && result) setFound({ typed, ...result });
    };
    const timer = typed && state.value === "live" ? setTimeout(search, PAUSE_MS) : 0;
    return () => (isCurrent = false, clearTimeout(timer));
  }, [typed, only]);
  if (!typed || found.typed === typed) return typed ? found : { hits: [], total: 0 };
  // Until the answer comes, show those of the former hits that fit.
  const words = typed.toLowerCase().split(/\s+/);
  const fits = ({ conversation, task, excerpt }) => (!only || conversation === only) &&
    words.every((word) => `#${task.id} ${task.title} ${excerpt}`.toLowerCase().includes(word));
  return { hits: found.hits.filter(fits), total: 0 };
}

async function addTask(title) {
  const added = await attempt(() => call("POST", listPath("/tasks"), { title }));
  if (added) showToast(`Added #${added.task.id}`);
}

/** Return the lines of the palette, each with its group, what it shows, and its address or what it runs. */
function buildLines(typed, hits) {
  const prefix = PREFIXES[typed[0]];
  const word = (prefix && prefix !== "Tasks" ? typed.slice(1) : typed).trim().toLowerCase();
  const { name } = place.value;
  const groups = {
    Tasks: hits.map((hit) => ({ hit, hash: hashOf({ name: hit.conversation, task: hit.task.id }) })),
    Lists: findMatches([...cards.value.values()].sort((a, b) => b.updated_at - a.updated_at), word,
      (card) => `${nameOf(card)} ${card.conversation}`)
      .map((card) => ({ text: nameOf(card), icon: "lists", hash: hashOf({ name: card.conversation }) })),
    Agents: findMatches(typed ? listAgents() : [], word, (agent) => agent)
      .map((agent) => ({ text: agent, agent, hash: hashOf({ screen: "agent", rest: [agent] }) })),
    Do: findMatches(listCommands(), word, (command) => command.title)
      .slice(0, typed ? undefined : FIRST_COMMANDS)
      .map(({ title, key, name: command }) => ({ text: title, key, run: () => run(command) })),
  };
  if (typed && !prefix && name) {
    // They follow the matching commands: Enter after the name of a command must not add a task with this name.
    groups.Do.splice(MAX_LINES.Do - 2);
    if (canChange.value) groups.Do.push({ text: `Add “${typed}” to this list`, run: () => addTask(typed) });
    groups.Do.push({ text: `Filter this list by “${typed}”`, key: "tab", run: () => (filter.value = typed) });
  }
  return Object.entries(groups).filter(([title]) => !prefix || title === prefix)
    .flatMap(([title, lines]) => lines.slice(0, MAX_LINES[title]).map((line) => ({ ...line, title })));
}

export default function Palette() {
  const [typed, setTyped] = useState("");
  const [cursor, setCursor] = useState(0);
  const [isHere, setHere] = useState(false);
  const box = useRef(null);
  useLayoutEffect(() => box.current.focus({ preventScroll: true }), []);
  const text = typed.trim();
  const only = session.value.scope.list ?? (isHere ? place.value.name : null);
  const isSearch = text && ![">", "@"].includes(text[0]);
  const found = useFound(isSearch ? text : "", only);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = isSearch ? sortHits([...findHere(words), ...found.hits]) : text ? [] : readRecent();
  const lines = buildLines(text, hits);
  const at = Math.min(cursor, lines.length - 1);
  const choose = (line) => {
    if (!line) return;
    closeDialog();
    if (line.run) return line.run();
    location.hash = line.hash;
  };
  useEffect(() => document.getElementById(`found-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const actions = {
    ArrowDown: () => setCursor(Math.min(lines.length - 1, at + 1)),
    ArrowUp: () => setCursor(Math.max(0, at - 1)),
    Enter: (isBeside) => {
      if (isBeside && lines[at]?.hash) return window.open(location.pathname + lines[at].hash, "_blank", "noopener");
      choose(isBeside ? lines.find((line) => line.text?.startsWith("Add “")) : lines[at]);
    },
    Tab: () => choose(lines.find((line) => line.key === "tab")),
    "/": () => setHere(!isHere),
  };
  const onKey = (event) => {
    const isOurs = event.key === "/" ? event.altKey && place.value.name : event.key !== "Tab" || (!event.shiftKey && text);
    if (!actions[event.key] || !isOurs || event.isComposing) return;
    event.preventDefault();
    actions[event.key](event.ctrlKey || event.metaKey);
  };
  return html`<h2 id="dialog-title" class="sr">Find a task, a list or a command</h2>
    <div class="ask"><input ref=${box} type="text" role="combobox" aria-expanded="true" aria-controls="found"
      aria-label="Find a task, a list or a command" aria-activedescendant=${lines.length ? `found-${at}` : undefined}
      placeholder="Search all lists" autocomplete="off" spellcheck=${false} maxlength=${MAX_TYPED} value=${typed}
      onInput=${(event) => (setTyped(event.currentTarget.value), setCursor(0))} onKeyDown=${onKey} />
      ${place.value.name && !session.value.scope.list && html`<button aria-pressed=${isHere ? "true" : "false"}
        title="Alt+/" onClick=${() => (setHere(!isHere), box.current.focus())}>This list</button>`}</div>
    <div id="found" role="listbox" aria-label="Matches">
      ${lines.map((line, index) => html`
        ${line.title !== lines[index - 1]?.title && html`<h3 key=${line.title} role="presentation">${line.title}</h3>`}
        <${Line} key=${`${line.title} ${line.hash ?? line.text}`} line=${line} index=${index} isHere=${index === at}
          words=${words} onClick=${() => choose(line)} />`)}</div>
    <p class="hush" role="status">${sayCount(text, lines, found)}</p>`;
}

function sayCount(text, lines, found) {
  if (state.value !== "live") return "The server is away: only the open list and the names of lists are searched.";
  const more = found.total - found.hits.length;
  if (more > 0) return `${plural(more, "more task")} found: type another word.`;
  if (text && !lines.some((line) => line.hash)) return `Nothing fits “${safe(text)}”.`;
  return "> commands · @ agents · #7 a number · Ctrl+Enter opens in a new tab";
}

const Line = ({ line: { hit, text, icon, agent, key }, index, isHere, words, onClick }) => html`<div
  id=${`found-${index}`} role="option" aria-selected=${isHere ? "true" : "false"} onClick=${onClick}>
  ${hit
    ? html`<${Hit} hit=${hit} words=${words} />`
    : html`${agent ? html`<${Badge} of=${agent} />` : icon
        ? html`<svg class="icon" aria-hidden="true"><use href=${`#i-${icon}`} /></svg>`
        : html`<i class="icon"></i>`}
      <${Text} class="what" of=${text} />${key && html`<${Key} of=${key} />`}`}</div>`;

function Hit({ hit: { conversation, title, task, excerpt }, words }) {
  const card = cards.value.get(conversation);
  const isElsewhere = excerpt && !excerpt.toLowerCase().startsWith(task.title.toLowerCase().slice(0, 40));
  return html`<${Mark} state=${stateOf(task)} /><span class="id">#${task.id}</span>
    <span class="what"><${Marked} of=${task.title} words=${words} />
      ${isElsewhere && html`<small><${Marked} of=${excerpt} words=${words} /></small>`}</span>
    ${task.owner && html`<${Badge} of=${task.owner} size="small" /><span class="sr">${safe(task.owner)}, </span>`}
    <${Text} class="list" of=${card ? nameOf(card) : title || conversation} />`;
}

/** A text with the words that were searched for highlighted. */
function Marked({ of, words }) {
  const shown = safe(of);
  const lower = shown.toLowerCase();
  const parts = [];
  let end = 0;
  while (end < shown.length) {
    const next = words.map((word) => [lower.indexOf(word, end), word.length]).filter(([index]) => index >= 0)
      .sort((a, b) => a[0] - b[0] || b[1] - a[1])[0];
    if (!next || lower.length !== shown.length) break;
    parts.push(shown.slice(end, next[0]), html`<mark>${shown.slice(next[0], next[0] + next[1])}</mark>`);
    end = next[0] + next[1];
  }
  return html`<bdi>${parts}${shown.slice(end)}</bdi>`;
}
