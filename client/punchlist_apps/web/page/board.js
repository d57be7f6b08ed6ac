// The screen of all lists, in sections by the attention they need.

import { html, signal } from "./vendor.js";
import { board, boardFilter, cards, hashOf, isBoardLoaded, nameOf, now, total } from "./model.js";
import { FilterField, Head } from "./frame.js";
import { follow } from "./place.js";
import { Bar, Key, Mark, Since, Text } from "./parts.js";
import { ownerOf } from "./rows.js";
import { plural, sharedNote, since } from "./text.js";
import { state } from "./link.js";

const INITIAL_CARDS = { needs: 48, working: 48, waiting: 24, done: 12, quiet: 0 };
const PAGE_SIZE = 96;
const extraCards = signal({}); // by section key
export const selectedCard = signal(null); // conversation of the card that the keys act on

/** Return the cards in screen order. */
export const listVisibleCards = () => board.value.flatMap((section) => section.cards.slice(0, getLimit(section)));
const getLimit = (section) =>
  (boardFilter.value ? PAGE_SIZE : INITIAL_CARDS[section.key]) + (extraCards.value[section.key] ?? 0);

export function Board() {
  if (!isBoardLoaded.value)
    return html`<${Head} title="Lists" /><main class="board">
      <p class="hush" role="status">${state.value === "away" ? "" : "Opening…"}</p></main>`;
  return html`<${Head} title="Lists"><${FilterField} of=${boardFilter} label="Filter lists" /><//>
    <main class="board" id="main">
    ${board.value.map((section) => html`<${Section} key=${section.key} section=${section} />`)}
    ${!board.value.length && (cards.value.size ? html`<${NoMatches} />` : html`<${NoLists} />`)}
  </main>`;
}

const NoMatches = () => html`<div class="teach">
  <h2>No matching lists</h2>
  <p>${plural(cards.value.size, "list is", "lists are")} hidden by the filter. <${Key} of="escape" /> clears it.</p>
</div>`;

export const NoLists = () => html`<div class="teach">
  <h2>No lists yet</h2>
  <p>Each agent and each project gets a list here as soon as it plans something. No need to reload.</p>
  <ol>
    <li>Connect your agent: <code>punch setup claude-code</code></li>
    <li>Or start a list yourself: <code>punch add "Write the parser"</code>, or press <${Key} of="a" />.</li>
  </ol>
</div>`;

function Section({ section }) {
  const shown = section.cards.slice(0, getLimit(section));
  const left = section.cards.length - shown.length;
  const showMore = () => {
    const count = (extraCards.value[section.key] ?? 0) + PAGE_SIZE;
    extraCards.value = { ...extraCards.value, [section.key]: count };
  };
  const next = shown.length ? plural(Math.min(left, PAGE_SIZE), "more list", "more lists") : plural(left, "quiet list");
  return html`<section class=${`sec-${section.key}`} aria-labelledby=${`h-${section.key}`}>
    <h2 id=${`h-${section.key}`}>${section.title}${" "}
      <span class="count">${section.cards.length.toLocaleString()}</span></h2>
    ${shown.length > 0 && html`<ul class="cards">
      ${shown.map((card) => html`<${Card} key=${card.conversation} card=${card} />`)}</ul>`}
    ${left > 0 && html`<button class="more" onClick=${showMore}>Show ${next}</button>`}
  </section>`;
}

const MAX_RUNNING = 3;

function Card({ card }) {
  const { counts, running = [] } = card;
  const all = total(counts);
  const left = counts.in_progress - Math.min(running.length, MAX_RUNNING);
  const notes = [
    card.damaged && ["bad", "damaged"],
    card.shared && ["warn", sharedNote(card.shared)],
    counts.failed && card.settings?.on_failure === "stop" && ["bad", "stopped"],
    counts.failed && ["bad", `${counts.failed} failed`],
    card.waiting && ["warn", plural(card.waiting, "waits for a yes", "wait for a yes")],
    counts.paused > (card.waiting ?? 0) && ["warn", `${counts.paused - (card.waiting ?? 0)} paused`],
    counts.blocked && ["dim", `${counts.blocked} blocked`],
  ].filter(Boolean);
  const isSelected = selectedCard.value === card.conversation;
  return html`<li class=${`card${isSelected ? " picked" : ""}`} data-list=${card.conversation}>
    <a href=${hashOf({ name: card.conversation })} onClick=${follow({ name: card.conversation })}>
      <h3><${Text} of=${nameOf(card)} /></h3>
      <p class="facts">
        <span class="done">${all ? `${counts.completed} of ${all}` : "empty"}</span>
        ${notes.map(([kind, text]) => html`<span key=${text} class=${kind}>${text}</span>`)}
        <span class="when">${since(now.value - card.updated_at)} ago</span>
      </p>
      <${Bar} counts=${counts} />
      ${running.length > 0 && html`<ul class="running">
        ${running.slice(0, MAX_RUNNING).map((task) => html`<${Running} key=${task.id} task=${task} />`)}</ul>`}
      ${left > 0 && html`<p class="rest">and ${left} more</p>`}
    </a>
  </li>`;
}

const Running = ({ task }) => html`<li>
  <${Mark} state="in_progress" /><${Text} class="what" of=${task.active_form || task.title} />
  ${task.owner && html`<${Text} class="owner" of=${ownerOf(task)} />`}<${Since} at=${task.since} />
</li>`;
