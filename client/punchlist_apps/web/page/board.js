// All lists: what needs somebody, what is being worked on, what waits.

import { html, signal } from "./vendor.js";
import { board, boardFilter, cards, go, hashOf, known, nameOf, now, total } from "./model.js";
import { Bar, Key, Mark, Since, Text } from "./parts.js";
import { ownerOf } from "./rows.js";
import { plural, sharedNote, since } from "./text.js";
import { state } from "./link.js";

const FEW = { needs: 48, working: 48, waiting: 24, done: 12, quiet: 0 };
const MORE = 96;
const extra = signal({});
export const picked = signal(null); // the card that the keys are at

/** The cards as they stand on the screen, for the keys. */
export const onScreen = () => board.value.flatMap((section) => section.cards.slice(0, room(section)));
const room = (section) => (boardFilter.value ? MORE : FEW[section.key]) + (extra.value[section.key] ?? 0);

export function Board() {
  if (!known.value)
    return html`<main class="board"><h1 class="sr">Board</h1>
      <p class="hush" role="status">${state.value === "away" ? "" : "Opening…"}</p></main>`;
  return html`<main class="board" id="main">
    <h1 class="sr">Board</h1>
    ${board.value.map((section) => html`<${Section} key=${section.key} section=${section} />`)}
    ${!board.value.length && (cards.value.size ? html`<${Hidden} />` : html`<${Nothing} />`)}
  </main>`;
}

const Hidden = () => html`<div class="teach">
  <h2>No list fits</h2>
  <p>${plural(cards.value.size, "list is", "lists are")} hidden by the filter. <${Key} of="escape" /> clears it.</p>
</div>`;

const Nothing = () => html`<div class="teach">
  <h2>No lists yet</h2>
  <p>Every agent and every project gets a list here as soon as it plans something. Nothing has to be reloaded.</p>
  <ol>
    <li>Give the list to your agent: <code>punch setup claude-code</code></li>
    <li>Or begin one yourself: <code>punch add "Write the parser"</code>, or press <${Key} of="a" />.</li>
  </ol>
</div>`;

function Section({ section }) {
  const shown = section.cards.slice(0, room(section));
  const left = section.cards.length - shown.length;
  const more = () => (extra.value = { ...extra.value, [section.key]: (extra.value[section.key] ?? 0) + MORE });
  const next = shown.length ? plural(Math.min(left, MORE), "more list", "more lists") : plural(left, "quiet list");
  return html`<section class=${`sec-${section.key}`} aria-labelledby=${`h-${section.key}`}>
    <h2 id=${`h-${section.key}`}>${section.title}${" "}
      <span class="count">${section.cards.length.toLocaleString()}</span></h2>
    ${shown.length > 0 && html`<ul class="cards">
      ${shown.map((card) => html`<${Card} key=${card.conversation} card=${card} />`)}</ul>`}
    ${left > 0 && html`<button class="more" onClick=${more}>Show ${next}</button>`}
  </section>`;
}

const SHOWN = 3;

function Card({ card }) {
  const { counts, running = [] } = card;
  const all = total(counts);
  const left = counts.in_progress - Math.min(running.length, SHOWN);
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go({ name: card.conversation });
  };
  const notes = [
    card.damaged && ["bad", "damaged"],
    card.shared && ["warn", sharedNote(card.shared)],
    counts.failed && card.settings?.on_failure === "stop" && ["bad", "stopped"],
    counts.failed && ["bad", `${counts.failed} failed`],
    card.waiting && ["warn", plural(card.waiting, "waits for a yes", "wait for a yes")],
    counts.paused > (card.waiting ?? 0) && ["warn", `${counts.paused - (card.waiting ?? 0)} paused`],
    counts.blocked && ["dim", `${counts.blocked} blocked`],
  ].filter(Boolean);
  return html`<li class=${`card${picked.value === card.conversation ? " picked" : ""}`} data-list=${card.conversation}>
    <a href=${hashOf({ name: card.conversation })} onClick=${open}>
      <h3><${Text} of=${nameOf(card)} /></h3>
      <p class="facts">
        <span class="done">${all ? `${counts.completed} of ${all}` : "empty"}</span>
        ${notes.map(([kind, text]) => html`<span key=${text} class=${kind}>${text}</span>`)}
        <span class="when">${since(now.value - card.updated_at)} ago</span>
      </p>
      <${Bar} counts=${counts} />
      ${running.length > 0 && html`<ul class="running">
        ${running.slice(0, SHOWN).map((one) => html`<${Running} key=${one.id} one=${one} />`)}</ul>`}
      ${left > 0 && html`<p class="rest">and ${left} more</p>`}
    </a>
  </li>`;
}

const Running = ({ one }) => html`<li>
  <${Mark} state="in_progress" /><${Text} class="what" of=${one.active_form || one.title} />
  ${one.owner && html`<${Text} class="owner" of=${ownerOf(one)} />`}<${Since} at=${one.since} />
</li>`;
