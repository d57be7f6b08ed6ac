// The page: signing in, the bar at the top, and the screen that the address names.

import { effect, html, render } from "./vendor.js";
import { Board } from "./board.js";
import { run } from "./commands.js";
import { Dialogs } from "./dialogs.js";
import { PastBanner } from "./history.js";
import { listen } from "./keys.js";
import { List } from "./list.js";
import { awaySince, session, signedOut, signIn, state } from "./link.js";
import {
  boardFilter, card, cards, filter, go, marks, mayChange, nameOf, needsYou, now, others, place, said, say,
} from "./model.js";
import { Key } from "./parts.js";
import { safe, since } from "./text.js";
import { Who } from "./who.js";

const WORDS = { opening: "opening", live: "live", away: "away", asleep: "paused" };

function Status() {
  const now_ = state.value;
  return html`<span class=${`status is-${now_}`} role="status"><i aria-hidden="true"></i>${WORDS[now_]}</span>`;
}

/** "with nvim, claude-code ×2". */
function Others() {
  const present = others.value.map((one) => safe(one.actor) + (one.connections > 1 ? ` ×${one.connections}` : ""));
  const names = present.join(", ");
  return names && html`<span class="present" title=${`Also at this list: ${names}`}>with <bdi>${names}</bdi></span>`;
}

function Top() {
  const onList = place.value.name !== null;
  const words = onList ? filter : boardFilter;
  const goHome = (event) => (event.preventDefault(), run("home"));
  const onKey = (event) => event.key === "Enter" && (event.currentTarget.blur(), run("first"));
  return html`<header class="top-bar">
    <a class="brand" href="#/" aria-label="punchlist, the board" onClick=${goHome}>
      <img src="/icon.svg" alt="" width="24" height="24" /><span>punchlist</span></a>
    ${place.value.view !== "who" && html`<label class="search">
      <span class="sr">Filter ${onList ? "tasks" : "lists"}</span>
      <input id="filter" type="text" placeholder=${onList ? "Filter tasks" : "Filter lists"} autocomplete="off"
        spellcheck="false" value=${words.value} onInput=${(event) => (words.value = event.currentTarget.value)}
        onKeyDown=${onKey} /><${Key} of="/" /></label>`}
    <span class="room"></span>
    ${session.value.scope.mode === "ro" && html`<span class="pill">read only</span>`}
    <${Others} /><${Status} />
    <button class="round" aria-label="Find a list or a command" onClick=${() => run("palette")}>⌘</button>
    <button class="round" aria-label="Keys" onClick=${() => run("help")}>?</button>
  </header>`;
}

const Away = () => state.value === "away" && html`<div class="away-banner" role="alert">
  <b>Away.</b> The server has not answered for
  ${" "}<time>${since(Math.max(1000, now.value - awaySince.value))}</time>. This is the last picture;
  it goes on by itself.
</div>`;

const FOR_MARKED = { start: "Start", done: "Done", pause: "Pause", reopen: "Reopen", delete: "Delete" };

const Marked = () => marks.value.size > 0 && html`<div class="marked-bar" role="region" aria-label="Marked tasks">
  <b>${marks.value.size} marked</b>
  ${mayChange.value && Object.entries(FOR_MARKED).map(([name, label]) =>
    html`<button key=${name} onClick=${() => run(name)}>${label}</button>`)}
  <button class="quiet" onClick=${() => (marks.value = new Set())}>Unmark</button>
</div>`;

const Toast = () => html`<div class=${`toast ${said.value?.kind ?? ""}`}
  role=${said.value?.kind === "bad" ? "alert" : "status"} hidden=${!said.value}>
  <bdi>${safe(said.value?.text)}</bdi>
</div>`;

const SignIn = () => html`<main class="door" id="main">
  <img src="/icon.svg" alt="" width="56" height="56" />
  <h1>punchlist</h1>
  <p>This page shows your task lists to you alone. To let this browser in, run</p>
  <p><code class="copy">punch web --link</code></p>
  <p>and open what it prints. A link is good once, for a minute; after that this browser stays signed in.</p>
  ${signedOut.value && html`<p class="bad" role="alert">${signedOut.value}</p>`}
  ${said.value && html`<p class="bad" role="alert">${safe(said.value.text)}</p>`}
</main>`;

/** Put the keys at the first thing of the screen that takes them. */
function skip(event) {
  event.preventDefault();
  document.querySelector("#main [tabindex], #main a, #main button")?.focus();
}

function App() {
  if (!session.value) return html`<${SignIn} />`;
  const { name, view } = place.value;
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the lists</a>
    <${Top} /><${Away} /><${PastBanner} />
    <${view === "who" ? Who : name === null ? Board : List} />
    <${Marked} /><${Toast} /><${Dialogs} />`;
}

effect(() => {
  const needed = [...cards.value.values()].filter(needsYou).length;
  const { name: list, view } = place.value;
  const name = view === "who" ? "Who is there" : list && (card.value ? nameOf(card.value) : list);
  document.title = `${needed ? `(${needed}) ` : ""}${name ? `${safe(name)} · ` : ""}punchlist`;
});

async function begin() {
  try {
    await signIn();
  } catch (error) {
    say(error.message, "bad");
  }
  const only = session.value?.scope.list;
  if (only && place.value.name !== only && place.value.view !== "who") go({ name: only });
  listen();
  render(html`<${App} />`, document.querySelector("#app"));
}
begin();
