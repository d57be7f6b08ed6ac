// The panel of punch chat. Everything that others wrote becomes a text node, never HTML.

import { call, eventsOf, problemOf, session, signIn, signedOut, sleep } from "./link.js";

const API = "/api/v1/chats";
const AWAY = "The server does not answer. Nothing was lost; the answer comes when it is back.";
const LET_IN = "To let this browser in, run: punch web --link";
const at = (id) => document.getElementById(id);
const said = at("said");
let thread = "";
let following = null;
let unsent = null;
let sending = null;
let deliveries = 0;

function make(tag, name, text) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text) made.textContent = text;
  return made;
}

function trouble(text = "") {
  at("trouble").textContent = text;
  at("trouble").hidden = !text;
}

/** Show what failed. Without a sign-in nothing can be sent any more. */
function report(error) {
  if (session.value) return trouble(error.message);
  for (const old of said.querySelectorAll(".answers")) old.remove();
  for (const field of document.querySelectorAll("button, input, textarea")) field.disabled = true;
  trouble(signedOut.value ? `${signedOut.value} ${LET_IN}` : error.message);
}

function bubble(role, id) {
  const there = id && document.getElementById(`m-${id}`);
  if (there) return there;
  const made = make("li", role);
  if (id) made.id = `m-${id}`;
  made.append(make("div", "text"));
  said.append(made);
  made.scrollIntoView({ block: "end" });
  return made;
}

function show(role, id, content) {
  const made = bubble(role, id);
  if (role === "user") for (const old of said.querySelectorAll(".answers")) old.remove();
  made.replaceChildren(make("div", "text", content.text));
  if (content.about?.length) made.append(make("div", "hush", content.about.join("\n")));
  if (content.mark) made.append(make("div", "hush", content.mark));
  if (content.receipts?.length) {
    const chips = make("div", "chips");
    for (const { type, task, seq } of content.receipts) {
      chips.append(make("span", "", `${type}${task ? ` #${task}` : ""} · seq ${seq}`));
    }
    made.append(chips);
  }
  for (const note of content.notes ?? []) made.append(make("div", "note", note));
  if (content.asks) {
    const answers = make("div", "answers");
    for (const word of ["yes", "no"]) {
      const button = make("button", word === "yes" ? "danger" : "", word);
      button.type = "button";
      button.addEventListener("click", () => send(word));
      answers.append(button);
    }
    made.append(answers);
  }
  made.scrollIntoView({ block: "end" });
}

function working(on) {
  at("stop").hidden = !on;
  at("send").hidden = on;
}

/**
 * Make attempts until one returns true, however long the server is away. `attempt(reached)` calls `reached` when the
 * server answers.
 */
async function insist(attempt, stop) {
  const mine = thread;
  let failures = 0;
  const reached = () => ((failures = 0), trouble());
  for (; thread === mine && !stop?.aborted; failures++) {
    try {
      if (await attempt(reached)) return true;
    } catch (error) {
      const status = error.facts?.status;
      if (status < 500 && status !== 429) throw error;
      if (failures > 2 || error.kind === "away") trouble(status ? error.message : AWAY);
    }
    await sleep(Math.min(500 * 2 ** failures, 4000), stop);
  }
  return false;
}

/** Follow a turn to its end. Another process may go on with it, so each try hears all. */
function follow(turn) {
  const mine = thread;
  return insist(async (reached) => {
    const headers = { Authorization: `Bearer ${session.value?.token}` };
    const response = await fetch(`${API}/${mine}/turns/${turn}`, { headers, cache: "no-store" });
    if (!response.ok) throw await problemOf(response);
    reached();
    for await (const { event, data } of eventsOf(response)) {
      if (thread !== mine || heard(turn, event, data)) return true;
    }
  });
}

/** Show that work is under way until it ends, and what failed. */
function during(work) {
  working(true);
  following = work.catch(report).finally(() => {
    following = null;
    working(false);
  });
}

function heard(turn, name, data) {
  const text = () => bubble("assistant", `${turn}.a`).querySelector(".text");
  if (name === "turn.started") document.getElementById(`m-${turn}.a`)?.querySelector(".text").replaceChildren();
  else if (name === "delta") text().append(data.text);
  else if (name === "tool.started") text().replaceChildren(`${data.tool} …`);
  else if (name === "failed") trouble(data.text);
  else if (name === "message") show("assistant", `${turn}.a`, data);
  return name === "end";
}

function send(text) {
  if (!text.trim() || following) return;
  trouble();
  during(deliver(text).finally(() => (sending = null)));
}

/** Send a message until it arrives or the person gives up, and follow its turn. */
async function deliver(text) {
  deliveries++;
  sending = new AbortController();
  const until = sending.signal;
  if (!thread && !(await insist(() => begin(text), until))) return giveUp(text, until);
  // What is sent again because no answer came is the same turn, which is worked on once.
  if (unsent?.text !== text || unsent.thread !== thread) {
    unsent = { text, thread, turn: `u${crypto.randomUUID?.() ?? String(Math.random()).slice(2)}` };
  }
  const { turn } = unsent;
  const mine = thread;
  show("user", turn, { text });
  if (!(await insist(() => call("POST", `${API}/${mine}`, { text, turn }), until))) return giveUp(text, until);
  sending = unsent = null;
  at("text").value = "";
  trouble();
  if (thread === mine) await follow(turn);
}

function giveUp(text, until) {
  if (!until.aborted) return;
  at("text").value ||= text; // a press of a button
  trouble("Stopped. Send it again when the server is back; it is done once.");
}

async function begin(title) {
  const made = await call("POST", API, { list: at("list").value, title: title.slice(0, 80) });
  thread = made.thread;
  keep();
  return true;
}

/** Write into the address what is shown, for a reload. */
function keep() {
  const shown = new URLSearchParams({ list: at("list").value, ...(thread && { thread }) });
  history.replaceState(null, "", `${location.pathname}?${shown}`);
}

async function open(id) {
  thread = id;
  said.replaceChildren();
  if (!id) return keep();
  const told = await call("GET", `${API}/${id}`);
  trouble();
  at("list").value = told.list;
  keep();
  for (const one of told.messages) show(one.role, one.id, one);
  const last = told.messages.at(-1);
  if (last?.role === "user") during(follow(last.id));
}

/** What was said in another tab or terminal meanwhile. */
async function look() {
  if (document.visibilityState === "visible" && session.value && thread && !following) await open(thread).catch(report);
}

/** Open the newest thread of the list, unless something was said before it was known. */
async function newest() {
  const before = deliveries;
  const told = await call("GET", `${API}?list=${encodeURIComponent(at("list").value)}`);
  if (deliveries === before) await open(told.threads[0]?.thread ?? "");
}

async function start() {
  const asked = new URLSearchParams(location.search);
  try {
    await signIn();
    if (!session.value) return report(new Error(LET_IN));
    at("list").value = asked.get("list") ?? session.value.scope.list ?? "default";
    if (!asked.get("thread")) return await newest();
    await open(asked.get("thread")).catch((error) => (error.kind === "not_found" ? newest() : Promise.reject(error)));
  } catch (error) {
    report(error);
  }
}

/** Stop the turn, or the attempts to send a message. */
function stop() {
  if (sending) sending.abort();
  else call("POST", `${API}/${thread}/stop`, {}).catch(report);
}

at("form").addEventListener("submit", (event) => (event.preventDefault(), send(at("text").value)));
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) (event.preventDefault(), send(at("text").value));
});
at("stop").addEventListener("click", stop);
at("new").addEventListener("click", () => (open(""), at("text").focus()));
document.addEventListener("visibilitychange", look);
addEventListener("focus", look);
at("list").addEventListener("change", () => newest().catch(report));
start();
