// The screen of all lists: a table in sections by the attention they need, or in one order.

import { html } from "./vendor.js";
import { FilterField, Head } from "./frame.js";
import { NoLists } from "./now.js";
import { boardFilter, cards, hashOf, isBoardLoaded, nameOf, now, total } from "./model.js";
import { SORTS, held, hold, isFolded, listShownSections, release, selectedCard, toggleFold } from "./lists.js";
import { follow, place, setQuery } from "./place.js";
import { Badge, Bar, Key, Mark, Since, Text, Windowed } from "./parts.js";
import { ownerOf } from "./rows.js";
import { plural, sharedNote, since } from "./text.js";
import { state } from "./link.js";

const ROW_HEIGHT = matchMedia("(pointer: coarse)").matches ? 56 : 42;
const MAX_RUNNING = 3;

/** Return the rows of the table: heads of sections, lists, and the tasks in progress below each list. */
function listRows() {
  const rows = [];
  for (const section of listShownSections()) {
    rows.push({ section });
    if (isFolded(section.key)) continue;
    for (const card of section.cards) {
      const running = (card.running ?? []).slice(0, MAX_RUNNING);
      const more = card.counts.in_progress - running.length;
      rows.push({ card, moved: section.moved?.has(card.conversation), more });
      for (const task of running) rows.push({ card, task });
    }
  }
  return rows;
}

export default function Board() {
  if (!isBoardLoaded.value)
    return html`<${Head} title="Lists" /><main class="board">
      <p class="hush" role="status">${state.value === "away" ? "" : "Opening…"}</p></main>`;
  const rows = listRows();
  const open = [...cards.value.values()].reduce(
    (sum, { counts }) => sum + counts.pending + counts.in_progress + counts.paused, 0);
  const active = rows.findIndex(({ card, task }) => card && !task && card.conversation === selectedCard.value);
  return html`<${Head} title="Lists">
      <span class="facts">${cards.value.size.toLocaleString()}, with ${plural(open, "open task")}</span>
      <${FilterField} of=${boardFilter} label="Filter lists" /><${Sorts} /><//>
    <main class="lists" id="main">
      ${rows.length > 0 && html`<${Windowed} items=${rows} size=${ROW_HEIGHT} active=${active} class="table" role="group"
        aria-label="Lists" onPointerEnter=${hold} onPointerLeave=${() => (held.value = null)}
        onFocusIn=${hold} onFocusOut=${release}>
        ${(row) => html`<${Row} key=${keyOf(row)} ...${row} />`}<//>`}
      ${!rows.length && (cards.value.size ? html`<${NoMatches} />` : html`<${NoLists} />`)}
    </main>`;
}

const keyOf = ({ section, card, task }) =>
  section ? `section ${section.key}` : `${card.conversation} ${task?.id ?? ""}`;

const Sorts = () => html`<div class="segments" role="group" aria-label="Order of the lists">
  ${Object.keys(SORTS).map((sort) => html`<button key=${sort} class="quiet"
    aria-pressed=${(place.value.query.sort ?? "need") === sort ? "true" : "false"}
    onClick=${() => setQuery({ sort: sort === "need" ? "" : sort })}>by ${sort}</button>`)}</div>`;

const NoMatches = () => html`<div class="teach">
  <h2>No matching lists</h2>
  <p>${plural(cards.value.size, "list is", "lists are")} hidden by the filter. <${Key} of="escape" /> clears it.</p>
</div>`;

function Row({ section, card, task, moved, more }) {
  const style = { height: `${ROW_HEIGHT}px` };
  if (section) {
    const isShut = isFolded(section.key);
    return html`<h2 class=${`group-head sec-${section.key}`} style=${style}>
      <button class="text" aria-expanded=${isShut ? "false" : "true"} onClick=${() => toggleFold(section.key)}>
        <span aria-hidden="true">${isShut ? "▸" : "▾"}</span> ${section.title}</button>${" "}
      <span class="count">${section.cards.length.toLocaleString()}</span></h2>`;
  }
  return task
    ? html`<${Running} card=${card} task=${task} style=${style} />`
    : html`<${Card} card=${card} moved=${moved} more=${more} style=${style} />`;
}

/** Return what a list needs, as pairs of a kind and a text. */
function listNotes({ counts, damaged, settings, shared, waiting = 0 }) {
  return [
    damaged && ["bad", "damaged"],
    shared && ["warn", sharedNote(shared)],
    waiting > 0 && ["asks", plural(waiting, "waits for a yes", "wait for a yes")],
    counts.failed && settings?.on_failure === "stop" && ["bad", "stopped"],
    counts.failed && ["bad", `${counts.failed} failed`],
    counts.paused > waiting && ["warn", `${counts.paused - waiting} paused`],
    counts.blocked && ["dim", `${counts.blocked} blocked`],
  ].filter(Boolean);
}

function Card({ card, moved, more, style }) {
  const { counts, conversation: name } = card;
  const all = total(counts);
  const owners = [...new Set((card.running ?? []).map((task) => task.owner).filter(Boolean))];
  return html`<a class=${`card${selectedCard.value === name ? " picked" : ""}`} data-list=${name} style=${style}
    href=${hashOf({ name })} onClick=${follow({ name })}>
    <span class="moved" title=${moved ? "Sorts in when you leave the table" : undefined}>${moved ? "•" : ""}</span>
    <b><${Text} class="cut" of=${nameOf(card)} /></b>
    <${Bar} counts=${counts} />
    <span class="done">${all ? `${counts.completed} of ${all}` : "empty"}</span>
    <span class="notes">${listNotes(card).map(([kind, text]) =>
      html`<span key=${text} class=${kind}>${text}</span>`)}</span>
    <span class="agents">${owners.map((owner) => html`<${Badge} key=${owner} of=${owner} />`)}
      ${more > 0 && html`<span class="hush">${more} more at work</span>`}</span>
    <span class="when">${since(now.value - card.updated_at)}<span class="sr"> ago</span></span>
  </a>`;
}

function Running({ card, task, style }) {
  const target = { name: card.conversation, task: task.id };
  return html`<a class="running" style=${style} href=${hashOf(target)} onClick=${follow(target)}>
    <${Mark} state="in_progress" /><span class="what cut"><${Text} of=${task.title} />${" "}
      <span class="id">#${task.id}</span></span>
    <${Text} class="doing cut" of=${task.active_form} />
    ${task.owner && html`<${Text} class="owner" of=${ownerOf(task)} />`}<${Since} at=${task.since} /></a>`;
}
