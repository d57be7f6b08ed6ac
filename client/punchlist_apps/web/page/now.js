// The screen Now: what needs you, which agents work, and what happens.

import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "./vendor.js";
import { addCommands, run } from "./commands.js";
import { Head } from "./frame.js";
import { lazy } from "./lazy.js";
import { state } from "./link.js";
import { canChange, cards, isBoardLoaded, nameOf } from "./model.js";
import {
  ACTIONS, SIGNS, answers, countNeeds, isAnswered, isChanged, isFolded, needs, needsCount, open, retryAll, wordsOf,
} from "./needs.js";
import { follow, hashOf } from "./place.js";
import { Badge, Key, Mark, Since, Text } from "./parts.js";

const MAX_OF_LIST = 3;
const MAX_CARDS = 10;
const extraCards = signal(0);

/** The key of the card that the keys act on. */
export const selectedNeed = signal(null);
/** The cards as they are on the screen. */
export const shownNeeds = signal([]);

/** Return the first needs of each list, the number of further cards, and the number of further needs by list. */
function limitNeeds(all) {
  const byList = new Map();
  const within = all.filter(({ list }) => {
    byList.set(list, (byList.get(list) ?? 0) + 1);
    return byList.get(list) <= MAX_OF_LIST;
  });
  const shown = within.slice(0, MAX_CARDS + extraCards.value);
  const further = [...byList].map(([list, known]) => {
    const card = cards.value.get(list);
    return [card, Math.max(known, countNeeds(card)) - Math.min(known, MAX_OF_LIST)];
  });
  return { shown, left: within.length - shown.length, further: further.filter(([, count]) => count > 0) };
}

/**
 * Return the cards to show, of those shown before and those wanted. While the pointer is on the column, nothing changes,
 * so that a click hits what the person saw. While it is focused or scrolled, new cards wait.
 */
function arrange(before, wanted, hold) {
  const current = new Map(wanted.map((need) => [need.key, need]));
  const update = (need) => current.get(need.key) ?? need;
  if (before.length && hold === "pointer") return before.map((need) => (isChanged(need) ? update(need) : need));
  if (before.length && hold) return before.filter((need) => current.has(need.key) || isFolded(need)).map(update);
  const shown = wanted.filter((need) => !isAnswered(need) || isFolded(need));
  before.forEach((need, at) => current.has(need.key) || !isFolded(need) || shown.splice(at, 0, need));
  return shown;
}

/** The column of what needs you. `onOpen` opens a need. */
export function Needs({ onOpen = open }) {
  const box = useRef(null);
  const before = useRef([]);
  const [hold, setHold] = useState("");
  const [isReleased, release] = useState(false);
  const { shown: wanted, left, further } = limitNeeds(needs.value);
  answers.value;
  const shown = arrange(before.current, wanted, isReleased ? "" : hold);
  const waiting = wanted.filter(({ key }) => !shown.some((need) => need.key === key)).length;
  const failed = needs.value.filter((need) => need.kind === "failed" && !isAnswered(need));
  useLayoutEffect(() => {
    before.current = shown;
    shownNeeds.value = shown;
    release(false);
    const isThere = shown.some((need) => need.key === selectedNeed.value && !isAnswered(need));
    if (!isThere) selectedNeed.value = shown.find((need) => !isAnswered(need))?.key ?? null;
  });
  const look = ({ type, currentTarget }) => {
    const isPointed = !IS_TOUCH && type !== "pointerleave" && currentTarget.matches(":hover");
    const isUsed = currentTarget.scrollTop > 0 || currentTarget.contains(document.activeElement);
    setHold(isPointed ? "pointer" : isUsed ? "use" : "");
  };
  const showNew = () => (box.current.scrollTo(0, 0), release(true));
  return html`<section class="needs" aria-labelledby="h-needs">
    <div class="column-head"><h2 id="h-needs">Needs you</h2><span class="count">${needsCount.value}</span>
      ${waiting > 0 && html`<button class="new" onClick=${showNew}>${waiting} new ↑</button>`}
      <span class="room"></span>
      ${failed.length > 1 && canChange.value && html`<button class="quiet" onClick=${() => retryAll(failed)}>
        Retry ${failed.length} failed</button>`}</div>
    <div class="scroller" ref=${box} tabindex=${shown.length ? undefined : "0"} role="group" aria-label="What needs you"
      onPointerEnter=${look} onPointerLeave=${look} onFocusIn=${look} onFocusOut=${look} onScroll=${look}>
      <ol>${shown.map((need) => html`<${NeedCard} key=${need.key} need=${need} holds=${hold === "pointer"}
        onOpen=${onOpen} />`)}</ol>
      ${!shown.length && html`<p class="hush">Nothing needs you.</p>`}
      ${left > 0 && html`<button class="more" onClick=${() => (extraCards.value += MAX_CARDS)}>
        Show ${Math.min(left, MAX_CARDS)} more</button>`}
      ${further.map(([card, count]) => html`<p class="further" key=${card.conversation}>
        <a href=${hashOf(placeOf(card))} onClick=${follow(placeOf(card))}>
          and ${count.toLocaleString()} more in <${Text} of=${nameOf(card)} /> ▸</a></p>`)}
    </div>
    <p class="sr" role="status"><${News} /></p>
  </section>`;
}

const IS_TOUCH = matchMedia("(hover: none)").matches;
const placeOf = ({ conversation }) => ({ name: conversation, query: { q: "is:failed" } });

/** The newest need in words, for screen readers. */
function News() {
  const newest = needs.value.reduce((a, b) => (a && a.since > b.since ? a : b), null);
  const first = useRef(newest?.key);
  if (!newest || newest.key === first.current) return null;
  return html`New: <${Text} of=${newest.title} />, ${wordsOf(newest)}`;
}

function NeedCard({ need, holds, onOpen }) {
  const article = useRef(null);
  const [height, setHeight] = useState(0);
  const isSelected = selectedNeed.value === need.key;
  const answer = isAnswered(need) && answers.value.get(need.key);
  useEffect(() => {
    if (!answer) setHeight(article.current.offsetHeight);
  });
  const select = () => (selectedNeed.value = need.key);
  const { kind, list, listTitle, id, title, text, owner, frees } = need;
  return html`<li data-need=${need.key}><article ref=${article} onFocusIn=${select} onClick=${select}
    class=${`need k-${kind}${isSelected ? " here" : ""}${answer ? " folded" : ""}`} tabindex=${isSelected ? "0" : "-1"}
    aria-label=${`${title}, ${wordsOf(need)}`} style=${answer && holds ? { height: `${height}px` } : {}}>
    ${answer
      ? html`<p class="answer"><${Mark} state="completed" /><span>${answer.text}</span>
          <${Text} class="cut" of=${title} />${answer.undo && html`
            <button class="text" onClick=${answer.undo}>Undo</button>`}</p>`
      : html`<p class="kind"><${Mark} state=${SIGNS[kind]} /><b>${isChanged(need) ? "Changed: read it again" : wordsOf(need)}</b>
            <span class="room"></span><${Text} class="cut" of=${listTitle} /><${Since} at=${need.since} /></p>
          <h3><${Text} of=${title} />${id && html` <span class="id">#${id}</span>`}</h3>
          ${text && html`<p class="text"><${Text} of=${text} /></p>`}
          ${(owner || frees > 0) && html`<p class="facts">
            ${owner && html`<${Badge} of=${owner} size="small" /><${Text} class="cut" of=${owner} />`}
            ${frees > 0 && html`<span class="frees">frees ${frees < 99 ? frees : "99 or more"}</span>`}</p>`}
          <${Buttons} need=${need} onOpen=${onOpen} />`}
  </article></li>`;
}

/** The buttons of a need. They wait while the server is away, and for a moment after its task has changed. */
export function Buttons({ need, onOpen }) {
  const isAway = state.value === "away";
  const actions = canChange.value ? ACTIONS.filter(([, , , , kinds]) => kinds.includes(need.kind)) : [];
  return html`<div class="answers">
    ${actions.map(([name, label, key, act]) => html`<button key=${name}
      class=${name === "approve" ? "primary" : ""} disabled=${isAway || isChanged(need)}
      title=${isAway ? "The server is away." : undefined}
      onClick=${() => act(need)}>${label} <${Key} of=${key} /></button>`)}
    ${onOpen && html`<button class="quiet" onClick=${() => onOpen(need)}>Open <${Key} of="enter" /></button>`}
  </div>`;
}

// Keys.

const getSelected = () => shownNeeds.value.find(({ key }) => key === selectedNeed.value);

function select(need) {
  if (!need) return;
  selectedNeed.value = need.key;
  queueMicrotask(() => {
    const article = document.querySelector(`[data-need="${CSS.escape(need.key)}"] article`);
    article?.focus();
    article?.scrollIntoView({ block: "nearest" });
  });
}

function step(by) {
  const open = shownNeeds.value.filter((need) => !isAnswered(need));
  const at = open.findIndex(({ key }) => key === selectedNeed.value);
  select(open[Math.min(open.length - 1, Math.max(0, at + by))]);
}

/** Move the focus to another column: the selected card, the agents, or what happens. */
const buildColumnStep = (by) => () => {
  const columns = [...document.querySelectorAll(".now .scroller")];
  const at = columns.findIndex((column) => column.contains(document.activeElement));
  const next = Math.min(columns.length - 1, Math.max(0, Math.max(0, at) + by));
  if (next) columns[next].focus();
  else select(getSelected());
};

/** Run an action on the selected card, then select the next one. */
const buildAction = ([, , , act, kinds]) => async () => {
  const need = getSelected();
  if (!need || !kinds.includes(need.kind) || isChanged(need)) return;
  const all = shownNeeds.value;
  const at = all.indexOf(need);
  if (await act(need))
    select([...all.slice(at + 1), ...all.slice(0, at)].find((other) => !isAnswered(other) && other.key !== need.key));
};

/** Return the commands of a screen that has the column. */
export const buildCommands = (onOpen = open) => ({
  down: { run: () => step(1) },
  up: { run: () => step(-1) },
  first: { run: () => step(-Infinity) },
  last: { run: () => step(Infinity) },
  left: { run: buildColumnStep(-1) },
  right: { run: buildColumnStep(1) },
  open: { run: () => getSelected() && onOpen(getSelected()) },
  ...Object.fromEntries(ACTIONS.map((action) => [action[0], { run: buildAction(action), change: true }])),
});
addCommands("now", buildCommands());

const Agents = lazy(() => import("./agents.js"), "inbox");

export const NoLists = () => html`<div class="teach">
  <h2>No lists yet</h2>
  <p>Each agent and each project gets a list here as soon as it plans something. No need to reload.</p>
  <ol>
    <li>Connect your agent: <code>punch setup claude-code</code></li>
    <li>Or start a list yourself: <code>punch add "Write the parser"</code>, or press <${Key} of="a" />.</li>
  </ol>
  ${canChange.value && html`<p><button class="primary" onClick=${() => run("add")}>Begin a list</button></p>`}
</div>`;

export default function Now() {
  const isEmpty = isBoardLoaded.value && !cards.value.size;
  return html`<${Head} title="Now"><${Facts} /><//>
    ${isEmpty
      ? html`<main class="board" id="main"><${NoLists} /></main>`
      : html`<main class="now" id="main">
          ${isBoardLoaded.value ? html`<${Needs} />` : html`<p class="hush" role="status">Opening…</p>`}
          <${Agents} /></main>`}`;
}

function Facts() {
  const running = [...cards.value.values()].flatMap((card) => card.running ?? []);
  const agents = new Set(running.map(({ owner }) => owner).filter(Boolean)).size;
  return html`<p class="figures"><span><b>${agents}</b> ${agents === 1 ? "agent" : "agents"} at work</span>
    <span><b>${needsCount.value}</b> ${needsCount.value === 1 ? "needs" : "need"} you</span></p>`;
}
