// Entry point of the page: sign-in, the frame, and the screen selected by the address.

import { effect, html, render } from "./vendor.js";
import { run } from "./commands.js";
import { Rail, Tabs } from "./frame.js";
import { listen } from "./keys.js";
import { lazy, loadLater, loadWhenIdle } from "./lazy.js";
import { canChange, card, dialog, marks, nameOf, now, showToast } from "./model.js";
import { needsCount } from "./needs.js";
import { awaySince, pending, session, signedOut, signIn, state } from "./link.js";
import Now from "./now.js";
import { place } from "./place.js";
import { safe, since } from "./text.js";
import { Toast } from "./toast.js";

const AWAY = {
  away: ["Away.", "The server has not responded for"],
  silent: ["Not answering.", "The server is there, but has not answered for"],
};

function Away() {
  const words = AWAY[state.value];
  return words && html`<div class="away-banner" role="alert"><span><b>${words[0]}</b> ${words[1]}
    ${" "}<time>${since(Math.max(1000, now.value - awaySince.value))}</time>. This is the last known state;
    it updates when the server is back.</span></div>`;
}

/** The changes without a response. */
function Pending() {
  const late = pending.value.some((change) => change.isLate);
  const text = late ? "Still waiting for the server…" : "Saving…";
  return html`<div class="pending" role="status" hidden=${!pending.value.length}>${pending.value.length > 0 && text}</div>`;
}

const MARKED_ACTIONS = { start: "Start", done: "Done", pause: "Pause", reopen: "Reopen", delete: "Delete" };

const Marked = () => marks.value.size > 0 && html`<div class="marked-bar" role="region" aria-label="Marked tasks">
  <b>${marks.value.size} marked</b>
  ${canChange.value && Object.entries(MARKED_ACTIONS).map(([name, label]) =>
    html`<button key=${name} onClick=${() => run(name)}>${label}</button>`)}
  <button class="quiet" onClick=${() => (marks.value = new Set())}>Unmark</button>
</div>`;

/** Focus the first control of the screen. */
function skipToMain(event) {
  event.preventDefault();
  document.querySelector("#main [tabindex], #main a, #main button")?.focus();
}

const Door = lazy(() => import("./door.js"), "late");
const Dialog = lazy(() => import("./dialogs.js"), "late");
const Dialogs = () => dialog.value &&
  html`<${Dialog} key=${dialog.value.kind + (dialog.value.title ?? "")} open=${dialog.value} />`;

const SCREENS = {
  now: Now,
  inbox: lazy(() => import("./inbox.js"), "inbox"),
  lists: lazy(() => import("./board.js"), "late"),
  list: lazy(() => import("./list.js"), "late"),
  timeline: lazy(() => import("./timeline.js"), "timeline"),
  agent: lazy(() => import("./agent.js"), "inbox"),
  who: lazy(() => import("./who.js")),
  chat: lazy(() => import("./chat.js"), "late"),
};

function App() {
  if (!session.value) return html`<${Door} />`;
  return html`<a class="skip" href="#main" onClick=${skipToMain}>Skip to the screen</a>
    <div class="frame"><${Rail} /><div class="page"><${Away} />
      <${SCREENS[place.value.screen]} />
      <${Marked} /></div><${Tabs} /></div>
    <${Pending} /><${Toast} /><${Dialogs} />`;
}

const SCREEN_TITLES = {
  now: "Now", inbox: "Inbox", lists: "Lists", timeline: "Timeline", who: "Who is there", chat: "Chat",
};
effect(() => {
  const { name: list, screen, rest } = place.value;
  const name = list ? (card.value ? nameOf(card.value) : list) : SCREEN_TITLES[screen] ?? rest[0];
  document.title = `${needsCount.value ? `(${needsCount.value}) ` : ""}${safe(name)} · punchlist`;
});

/** Sign in by a link, at the start or when it is opened in this tab. */
async function openLink() {
  try {
    await signIn();
  } catch (error) {
    if (session.value) showToast(error.message, "bad");
    else signedOut.value = error.message;
  }
}

async function start() {
  await openLink();
  addEventListener("hashchange", openLink);
  listen();
  render(html`<${App} />`, document.querySelector("#app"));
  loadLater(() => import("./notify.js"));
  loadWhenIdle();
}
start();
