// Entry point of the page: sign-in, the frame, and the screen selected by the address.

import { effect, html, render } from "./vendor.js";
import { Board } from "./board.js";
import { run } from "./commands.js";
import { Dialogs } from "./dialogs.js";
import { Rail, Tabs } from "./frame.js";
import { PastBanner } from "./history.js";
import { listen } from "./keys.js";
import { lazy, loadWhenIdle } from "./lazy.js";
import { awaySince, session, signedOut, signIn, state } from "./link.js";
import { List } from "./list.js";
import { canChange, card, marks, nameOf, needsCount, now, showToast, toast } from "./model.js";
import Now from "./now.js";
import { place } from "./place.js";
import { safe, since } from "./text.js";

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

const SignIn = () => html`<main class="door" id="main">
  <img src="/icon.svg" alt="" width="56" height="56" />
  <h1>punchlist</h1>
  <p>This page shows your task lists to you alone. To sign this browser in, run</p>
  <p><code class="copy">punch web --link</code></p>
  <p>and open the link it prints. A link works once, within a minute; then this browser stays signed in.</p>
  ${signedOut.value && html`<p class="bad" role="alert">${signedOut.value}</p>`}
  ${toast.value && html`<p class="bad" role="alert">${safe(toast.value.text)}</p>`}
</main>`;

/** Focus the first control of the screen. */
function skipToMain(event) {
  event.preventDefault();
  document.querySelector("#main [tabindex], #main a, #main button")?.focus();
}

const SCREENS = {
  now: Now,
  inbox: lazy(() => import("./inbox.js")),
  lists: Board,
  list: List,
  timeline: lazy(() => import("./timeline.js")),
  agent: lazy(() => import("./agent.js")),
  who: lazy(() => import("./who.js")),
  chat: () => void location.assign("/chat"),
};

function App() {
  if (!session.value) return html`<${SignIn} />`;
  return html`<a class="skip" href="#main" onClick=${skipToMain}>Skip to the screen</a>
    <div class="frame"><${Rail} /><div class="page"><${Away} /><${PastBanner} />
      <${SCREENS[place.value.screen]} />
      <${Marked} /></div><${Tabs} /></div>
    <${Toast} /><${Dialogs} />`;
}

const SCREEN_TITLES = {
  now: "Now", inbox: "Inbox", lists: "Lists", timeline: "Timeline", who: "Who is there", chat: "Chat",
};
effect(() => {
  const { name: list, screen, rest } = place.value;
  const name = list ? (card.value ? nameOf(card.value) : list) : SCREEN_TITLES[screen] ?? rest[0];
  document.title = `${needsCount.value ? `(${needsCount.value}) ` : ""}${safe(name)} · punchlist`;
});

async function start() {
  try {
    await signIn();
  } catch (error) {
    showToast(error.message, "bad");
  }
  listen();
  render(html`<${App} />`, document.querySelector("#app"));
  loadWhenIdle();
}
start();
