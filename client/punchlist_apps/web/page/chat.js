// The chat page. Text from the server is inserted as text nodes, never as HTML.

import { call, readEvents, readProblem, session, signIn, signedOut, sleep } from "./link.js";

const API = "/api/v1/chats";
const AWAY = "The server is not responding. Nothing was lost; the answer arrives when it is back.";
const SIGN_IN = "To sign this browser in, run: punch web --link";
const byId = (id) => document.getElementById(id);
const messages = byId("said");
let thread = "";
let turnWork = null; // promise of the current delivery or turn
let unsent = null; // { text, thread, turn } of a message without a response
let sending = null; // AbortController of the current delivery
let deliveries = 0;

function createElement(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = text;
  return element;
}

function showTrouble(text = "") {
  byId("trouble").textContent = text;
  byId("trouble").hidden = !text;
}

/** Show an error. Without a session, disable the page, since nothing can be sent anymore. */
function reportError(error) {
  if (session.value) return showTrouble(error.message);
  removeAnswers();
  for (const field of document.querySelectorAll("button, input, textarea")) field.disabled = true;
  showTrouble(signedOut.value ? `${signedOut.value} ${SIGN_IN}` : error.message);
}

/** Remove the yes and no buttons of earlier questions. */
function removeAnswers() {
  for (const answers of messages.querySelectorAll(".answers")) answers.remove();
}

function getBubble(role, id) {
  const existing = id && document.getElementById(`m-${id}`);
  if (existing) return existing;
  const bubble = createElement("li", role);
  if (id) bubble.id = `m-${id}`;
  bubble.append(createElement("div", "text"));
  messages.append(bubble);
  bubble.scrollIntoView({ block: "end" });
  return bubble;
}

function showMessage(role, id, content) {
  const bubble = getBubble(role, id);
  if (role === "user") removeAnswers();
  bubble.replaceChildren(createElement("div", "text", content.text));
  if (content.about?.length) bubble.append(createElement("div", "hush", content.about.join("\n")));
  if (content.mark) bubble.append(createElement("div", "hush", content.mark));
  if (content.receipts?.length) {
    const chips = createElement("div", "chips");
    for (const { type, task, seq } of content.receipts) {
      chips.append(createElement("span", "", `${type}${task ? ` #${task}` : ""} · seq ${seq}`));
    }
    bubble.append(chips);
  }
  for (const note of content.notes ?? []) bubble.append(createElement("div", "note", note));
  if (content.asks) {
    const answers = createElement("div", "answers");
    for (const word of ["yes", "no"]) {
      const button = createElement("button", word === "yes" ? "danger" : "", word);
      button.type = "button";
      button.addEventListener("click", () => send(word));
      answers.append(button);
    }
    bubble.append(answers);
  }
  bubble.scrollIntoView({ block: "end" });
}

function showWorking(isWorking) {
  byId("stop").hidden = !isWorking;
  byId("send").hidden = isWorking;
}

/**
 * Retry until an attempt returns true. Return false if the thread changes or `stop` is aborted. `attempt(onReached)`
 * calls `onReached` when the server responds, which resets the backoff.
 */
async function retry(attempt, stop) {
  const current = thread;
  let failures = 0;
  const onReached = () => ((failures = 0), showTrouble());
  for (; thread === current && !stop?.aborted; failures++) {
    try {
      if (await attempt(onReached)) return true;
    } catch (error) {
      const status = error.facts?.status;
      if (status < 500 && status !== 429) throw error;
      if (failures > 2 || error.kind === "away") showTrouble(status ? error.message : AWAY);
    }
    await sleep(Math.min(500 * 2 ** failures, 4000), stop);
  }
  return false;
}

/** Follow a turn to its end. Each attempt reads all events again, since another process may have continued the turn. */
function followTurn(turn) {
  const current = thread;
  return retry(async (onReached) => {
    const headers = { Authorization: `Bearer ${session.value?.token}` };
    const response = await fetch(`${API}/${current}/turns/${turn}`, { headers, cache: "no-store" });
    if (!response.ok) throw await readProblem(response);
    onReached();
    for await (const { event, data } of readEvents(response)) {
      if (thread !== current || applyEvent(turn, event, data)) return true;
    }
  });
}

/** Show the stop button until the work ends, and report its error. */
function track(work) {
  showWorking(true);
  turnWork = work.catch(reportError).finally(() => {
    turnWork = null;
    showWorking(false);
  });
}

/** Show an event of a turn. Return whether it is the last one. */
function applyEvent(turn, name, data) {
  const text = () => getBubble("assistant", `${turn}.a`).querySelector(".text");
  if (name === "turn.started") document.getElementById(`m-${turn}.a`)?.querySelector(".text").replaceChildren();
  else if (name === "delta") text().append(data.text);
  else if (name === "tool.started") text().replaceChildren(`${data.tool} …`);
  else if (name === "failed") showTrouble(data.text);
  else if (name === "message") showMessage("assistant", `${turn}.a`, data);
  return name === "end";
}

function send(text) {
  if (!text.trim() || turnWork) return;
  showTrouble();
  track(deliver(text).finally(() => (sending = null)));
}

/** Send a message until it arrives or the user stops it, and follow its turn. */
async function deliver(text) {
  deliveries++;
  sending = new AbortController();
  const { signal } = sending;
  if (!thread && !(await retry(() => openThread(text), signal))) return giveUp(text, signal);
  // A message that is sent again keeps its turn id, so the server runs it only once.
  if (unsent?.text !== text || unsent.thread !== thread) {
    unsent = { text, thread, turn: `u${crypto.randomUUID?.() ?? String(Math.random()).slice(2)}` };
  }
  const { turn } = unsent;
  const current = thread;
  showMessage("user", turn, { text });
  if (!(await retry(() => call("POST", `${API}/${current}`, { text, turn }), signal))) return giveUp(text, signal);
  sending = unsent = null;
  byId("text").value = "";
  showTrouble();
  if (thread === current) await followTurn(turn);
}

function giveUp(text, signal) {
  if (!signal.aborted) return;
  byId("text").value ||= text; // The field is empty if the message came from a yes or no button.
  showTrouble("Stopped. Send it again when the server is back; it is done once.");
}

async function openThread(title) {
  const created = await call("POST", API, { list: byId("list").value, title: title.slice(0, 80) });
  thread = created.thread;
  updateAddress();
  return true;
}

/** Put the list and the thread in the address, so that a reload restores them. */
function updateAddress() {
  const query = new URLSearchParams({ list: byId("list").value, ...(thread && { thread }) });
  history.replaceState(null, "", `${location.pathname}?${query}`);
}

async function showThread(id) {
  thread = id;
  messages.replaceChildren();
  if (!id) return updateAddress();
  const page = await call("GET", `${API}/${id}`);
  showTrouble();
  byId("list").value = page.list;
  updateAddress();
  for (const message of page.messages) showMessage(message.role, message.id, message);
  const last = page.messages.at(-1);
  if (last?.role === "user") track(followTurn(last.id));
}

/** Reload the thread, to show messages sent from another tab or a terminal. */
async function refresh() {
  const isIdle = document.visibilityState === "visible" && session.value && thread && !turnWork;
  if (isIdle) await showThread(thread).catch(reportError);
}

/** Show the newest thread of the list, unless a message was sent while it was loading. */
async function showNewestThread() {
  const before = deliveries;
  const page = await call("GET", `${API}?list=${encodeURIComponent(byId("list").value)}`);
  if (deliveries === before) await showThread(page.threads[0]?.thread ?? "");
}

async function start() {
  const query = new URLSearchParams(location.search);
  const id = query.get("thread");
  try {
    await signIn();
    if (!session.value) return reportError(new Error(SIGN_IN));
    byId("list").value = query.get("list") ?? session.value.scope.list ?? "default";
    if (!id) return await showNewestThread();
    await showThread(id).catch((error) =>
      error.kind === "not_found" ? showNewestThread() : Promise.reject(error));
  } catch (error) {
    reportError(error);
  }
}

/** Stop the turn, or stop retrying a message. */
function stop() {
  if (sending) sending.abort();
  else call("POST", `${API}/${thread}/stop`, {}).catch(reportError);
}

byId("form").addEventListener("submit", (event) => (event.preventDefault(), send(byId("text").value)));
byId("text").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send(byId("text").value);
});
byId("stop").addEventListener("click", stop);
byId("new").addEventListener("click", () => (showThread(""), byId("text").focus()));
document.addEventListener("visibilitychange", refresh);
addEventListener("focus", refresh);
byId("list").addEventListener("change", () => showNewestThread().catch(reportError));
start();
