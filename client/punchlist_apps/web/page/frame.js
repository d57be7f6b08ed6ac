// The frame of all screens: the rail with screens and lists, the tabs of a phone, and each screen's head.

import { html } from "./vendor.js";
import { canRun, run } from "./commands.js";
import { session, state } from "./link.js";
import { board, cards, followers, isPast, nameOf, total } from "./model.js";
import { needsCount } from "./needs.js";
import { isStripOpen } from "./past.js";
import { follow, hashOf, place } from "./place.js";
import { Badge, Key, Text } from "./parts.js";
import { safe } from "./text.js";
import { RailViews } from "./views.js";

const MAX_LISTS = 12;
const MAX_BADGES = 2;

/** The screens of the rail: name, title, and whether the tabs of a phone have it. */
const SCREENS = [
  ["now", "Now", true],
  ["inbox", "Inbox", true],
  ["lists", "Lists", true],
  ["timeline", "Timeline", false],
  ["chat", "Chat", false],
];
const STATE_WORDS = { opening: "opening", live: "live", silent: "not answering", away: "away", asleep: "paused" };

export const Icon = ({ of }) => html`<svg class="icon" aria-hidden="true"><use href=${`#i-${of}`} /></svg>`;

/** Return whether the place belongs to a screen. On a phone, a list belongs to the lists. */
const isOn = (name) => place.value.screen === name;

export function Rail() {
  const only = session.value.scope.list;
  return html`<nav class="rail" aria-label="Screens">
    <a class="brand" href="#/" aria-label="punchlist, now" onClick=${follow({ name: only })}>
      <img src="/icon.svg" alt="" width="24" height="24" /><span>punchlist</span></a>
    <button class="find" onClick=${() => run("search")}>
      <${Icon} of="search" /><span>Search ${only ? "this list" : "all lists"}</span><${Key} of="/" /></button>
    ${!only && html`<ul>${SCREENS.map(([name, title]) => html`<li key=${name}>
      <a href=${hashOf({ screen: name })} aria-current=${isOn(name) ? "page" : undefined}
        onClick=${follow({ screen: name })}><${Icon} of=${name} />${title}<${ScreenCount} of=${name} /></a></li>`)}</ul>
    <${Lists} /><${RailViews} />`}
    <div class="foot"><${Status} /><span class="room"></span>
      ${session.value.person && html`<${Badge} of=${session.value.person} /><bdi>${safe(session.value.person)}</bdi>`}
      <button class="round" aria-label="Keys" onClick=${() => run("help")}>?</button></div>
  </nav>`;
}

function ScreenCount({ of }) {
  if (of === "inbox" && needsCount.value)
    return html`<b class="count-badge">${needsCount.value}<span class="sr"> need you</span></b>`;
  return of === "lists" && html`<span class="count">${cards.value.size.toLocaleString()}</span>`;
}

/** The first lists of the board, each with its share of completed tasks, its agents, and its number of open tasks. */
function Lists() {
  const shown = board.value.flatMap((section) => section.cards).slice(0, MAX_LISTS);
  return html`<section aria-labelledby="rail-lists"><h2 id="rail-lists">Lists</h2>
    <ul>${shown.map((card) => html`<${ListLink} key=${card.conversation} card=${card} />`)}</ul>
    ${cards.value.size > shown.length && html`<a class="all" href=${hashOf({ screen: "lists" })}
      onClick=${follow({ screen: "lists" })}>all ${cards.value.size.toLocaleString()}</a>`}
  </section>`;
}

function ListLink({ card }) {
  const { counts, conversation: name } = card;
  const open = counts.pending + counts.in_progress + counts.paused;
  const owners = [...new Set((card.running ?? []).map((task) => task.owner).filter(Boolean))];
  const share = total(counts) ? Math.round((100 * counts.completed) / total(counts)) : 0;
  return html`<li><a href=${hashOf({ name })} onClick=${follow({ name })}
    aria-current=${place.value.name === name ? "page" : undefined}>
    <i class="ring" style=${{ "--share": `${share}%` }} aria-hidden="true"></i>
    <${Text} class="cut" of=${nameOf(card)} />
    ${owners.slice(0, MAX_BADGES).map((owner) => html`<${Badge} key=${owner} of=${owner} size="small" />`)}
    <span class="count">${open.toLocaleString()}<span class="sr"> open</span></span></a></li>`;
}

function Status() {
  const current = state.value;
  return html`<span class=${`status is-${current}`} role="status">
    <i aria-hidden="true"></i>${STATE_WORDS[current]}</span>
    ${session.value.scope.mode === "ro" && html`<span class="pill">read only</span>`}`;
}

/** The tabs of a phone. */
export function Tabs() {
  if (session.value.scope.list) return null;
  const onList = place.value.screen === "list";
  return html`<nav class="tabs" aria-label="Screens of a phone">
    ${SCREENS.filter(([, , isTab]) => isTab).map(([name, title]) => html`<a key=${name} href=${hashOf({ screen: name })}
      aria-current=${isOn(name) || (name === "lists" && onList) ? "page" : undefined}
      onClick=${follow({ screen: name })}>
      <${Icon} of=${name} />${title}${name === "inbox" && html`<${ScreenCount} of=${name} />`}</a>`)}
    <button onClick=${() => run("search")}><${Icon} of="search" />Search</button>
    <button onClick=${() => run("palette")}><${Icon} of="more" />More</button>
  </nav>`;
}

/** Other clients that follow the list, as in "with nvim, claude-code ×2". */
function Followers() {
  const present = followers.value.map(
    ({ actor, connections }) => safe(actor) + (connections > 1 ? ` ×${connections}` : ""));
  const names = present.join(", ");
  return names && html`<span class="present" title=${`Also at this list: ${names}`}>with <bdi>${names}</bdi></span>`;
}

/**
 * The head of a screen: its title, its facts as children, and the buttons that every screen has.
 *
 * In the past the buttons for changes are hidden, but their room stays, so that no other button moves.
 */
export const Head = ({ title, children }) => html`<header class="top-bar">
  <h1><${Text} of=${title} /></h1>
  ${children}
  <span class="room"></span>
  <${Followers} />
  ${canRun("time") && html`<button class="round" aria-label="Time machine" aria-pressed=${isStripOpen.value ? "true" : "false"}
    title="Earlier versions ([)" onClick=${() => run("time")}><${Icon} of="clock" /></button>`}
  ${session.value.scope.mode !== "ro" && html`<span class=${`changes${isPast.value ? " held" : ""}`}>
    ${(isPast.value || canRun("undo")) && html`<button class="round" aria-label="Undo your last change" title="Undo (u)"
      onClick=${() => run("undo")}><${Icon} of="undo" /></button>`}
    ${(isPast.value || canRun("add")) && html`<button class="primary" onClick=${() => run("add")}>
      <span aria-hidden="true">+</span> Add <${Key} of="a" /></button>`}</span>`}
</header>`;

/** The field of a filter, which is a signal. */
export function FilterField({ of: query, label }) {
  const onKey = (event) => event.key === "Enter" && (event.currentTarget.blur(), run("first"));
  return html`<label class="search"><span class="sr">${label}</span>
    <input id="filter" type="text" placeholder=${label} autocomplete="off" spellcheck=${false} value=${query.value}
      onInput=${(event) => (query.value = event.currentTarget.value)} onKeyDown=${onKey} /><${Key} of="F" /></label>`;
}
