// Entry point of the page: sign-in, the top bar, and the screen selected by the address.

import { effect, html, render } from "./vendor.js";
import { Board } from "./board.js";
import { run } from "./commands.js";
import { Dialogs } from "./dialogs.js";
import { Door } from "./door.js";
import { PastBanner } from "./history.js";
import { listen } from "./keys.js";
import { List } from "./list.js";
import { awaySince, session, signIn, signedOut, state } from "./link.js";
import {
  boardFilter, canChange, card, cards, filter, followers, go, marks, nameOf, needsAttention, now, place, showToast,
  toast,
} from "./model.js";
import { Key } from "./parts.js";
import { safe, since } from "./text.js";
import { Who } from "./who.js";

const STATE_WORDS = { opening: "opening", live: "live", away: "away", asleep: "paused" };

function Status() {
  const current = state.value;
  return html`<span class=${`status is-${current}`} role="status">
    <i aria-hidden="true"></i>${STATE_WORDS[current]}</span>`;
}

/** Other clients that follow the list, as in "with nvim, claude-code ×2". */
function Followers() {
  const present = followers.value.map(
    ({ actor, connections }) => safe(actor) + (connections > 1 ? ` ×${connections}` : ""));
  const names = present.join(", ");
  return names && html`<span class="present" title=${`Also at this list: ${names}`}>with <bdi>${names}</bdi></span>`;
}

function Top() {
  const onList = place.value.name !== null;
  const query = onList ? filter : boardFilter;
  const goHome = (event) => (event.preventDefault(), run("home"));
  const onKey = (event) => event.key === "Enter" && (event.currentTarget.blur(), run("first"));
  return html`<header class="top-bar">
    <a class="brand" href="#/" aria-label="punchlist, the board" onClick=${goHome}>
      <img src="/icon.svg" alt="" width="24" height="24" /><span>punchlist</span></a>
    ${place.value.view !== "who" && html`<label class="search">
      <span class="sr">Filter ${onList ? "tasks" : "lists"}</span>
      <input id="filter" type="text" placeholder=${onList ? "Filter tasks" : "Filter lists"} autocomplete="off"
        spellcheck="false" value=${query.value} onInput=${(event) => (query.value = event.currentTarget.value)}
        onKeyDown=${onKey} /><${Key} of="/" /></label>`}
    <span class="room"></span>
    ${session.value.scope.mode === "ro" && html`<span class="pill">read only</span>`}
    <${Followers} /><${Status} />
    <button class="round" aria-label="Find a list or a command" onClick=${() => run("palette")}>⌘</button>
    <button class="round" aria-label="Keys" onClick=${() => run("help")}>?</button>
  </header>`;
}

const Away = () => state.value === "away" && html`<div class="away-banner" role="alert">
  <b>Away.</b> The server has not responded for
  ${" "}<time>${since(Math.max(1000, now.value - awaySince.value))}</time>. This is the last known state;
  it updates when the server is back.
</div>`;

const MARKED_ACTIONS = { start: "Start", done: "Done", pause: "Pause", reopen: "Reopen", delete: "Delete" };

const Marked = () => marks.value.size > 0 && html`<div class="marked-bar" role="region" aria-label="Marked tasks">
  <b>${marks.value.size} marked</b>
  ${canChange.value && Object.entries(MARKED_ACTIONS).map(([name, label]) =>
    html`<button key=${name} onClick=${() => run(name)}>${label}</button>`)}
  <button class="quiet" onClick=${() => (marks.value = new Set())}>Unmark</button>
</div>`;

const Toast = () => html`<div class=${`toast ${toast.value?.kind ?? ""}`}
  role=${toast.value?.kind === "bad" ? "alert" : "status"} hidden=${!toast.value}>
  <bdi>${safe(toast.value?.text)}</bdi>
</div>`;

/** Focus the first control of the screen. */
function skipToMain(event) {
  event.preventDefault();
  document.querySelector("#main [tabindex], #main a, #main button")?.focus();
}

function App() {
  if (!session.value) return html`<${Door} />`;
  const { name, view } = place.value;
  return html`<a class="skip" href="#main" onClick=${skipToMain}>Skip to the lists</a>
    <${Top} /><${Away} /><${PastBanner} />
    <${view === "who" ? Who : name === null ? Board : List} />
    <${Marked} /><${Toast} /><${Dialogs} />`;
}

effect(() => {
  const needing = [...cards.value.values()].filter(needsAttention).length;
  const { name: list, view } = place.value;
  const name = view === "who" ? "Who is there" : list && (card.value ? nameOf(card.value) : list);
  document.title = `${needing ? `(${needing}) ` : ""}${name ? `${safe(name)} · ` : ""}punchlist`;
});

async function start() {
  try {
    await signIn();
  } catch (error) {
    if (session.value) showToast(error.message, "bad");
    else signedOut.value = error.message;
  }
  // Another tab may sign this one in.
  effect(() => {
    const only = session.value?.scope.list;
    const { name, view } = place.peek();
    if (only && name !== only && view !== "who") go({ name: only });
  });
  listen();
  render(html`<${App} />`, document.querySelector("#app"));
}
start();
