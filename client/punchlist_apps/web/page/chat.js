// The screen Chat: a thread of messages about one list, and the turns that answer them.

import { batch, effect, html, signal, useEffect, useLayoutEffect, useRef } from "./vendor.js";
import { call, readEvents, readProblem, session, sleep } from "./link.js";
import { cards, isBoardLoaded, lastList, nameOf, reportAbsent } from "./model.js";
import { Text } from "./parts.js";
import { follow, go, hashOf, place } from "./place.js";
import { safe, safeBlock } from "./text.js";

const API = "/api/v1/chats";
const LIST_KEY = "punchlist.chat";
const AWAY = "The server is not responding. Nothing was lost; the answer arrives when it is back.";
const SENTENCES = ["what is left?", "what failed?", "what is waiting for me?", "add buy milk"];

const about = signal(""); // the id of the list
const thread = signal("");
const messages = signal([]); // { id, role, …content }, oldest first
const trouble = signal("");
const isWorking = signal(false);
const draft = signal("");
let turnWork = null; // promise of the current delivery or turn
let unsent = null; // { text, thread, turn } of a message without a response
let sending = null; // AbortController of the current delivery
let generation = 0; // counts what changes the messages; the response to an earlier request is dropped
let shownAddress = null; // the address whose thread is shown

// Another session may not see this one's messages.
effect(() => {
  if (session.value) return;
  localStorage.removeItem(LIST_KEY);
  unsent = shownAddress = null;
  batch(() => [thread.value, messages.value, trouble.value] = ["", [], ""]);
});

/** Return the list to chat about: the link's, the address's, the one last seen here, or the first one. */
function chooseList(name) {
  const first = isBoardLoaded.value ? cards.value.keys().next().value ?? "default" : "";
  return session.value?.scope.list ?? name ?? (lastList.value || localStorage.getItem(LIST_KEY) || first);
}

function setList(name) {
  about.value = lastList.value = name;
  localStorage.setItem(LIST_KEY, name);
}

/** Put the thread, or else the list, in the address, so that a reload restores them. */
function updateAddress() {
  const isNew = !thread.value;
  const target = { screen: "chat", rest: isNew ? [] : [thread.value], query: isNew ? { list: about.value } : {} };
  shownAddress = hashOf(target);
  if (place.value.screen === "chat") go(target, { trail: false });
}

/** Add a message, or replace the content of the one with the same id. */
function showMessage(role, id, content) {
  const shown = { role, ...content, id };
  const isKnown = messages.value.some((message) => message.id === id);
  messages.value = isKnown
    ? messages.value.map((message) => (message.id === id ? shown : message))
    : [...messages.value, shown];
}

/** Set the text of an answer that isn't finished. `write` returns it from the text so far. */
function writeAnswer(turn, write) {
  const id = `${turn}.a`;
  const { text = "" } = messages.value.find((message) => message.id === id) ?? {};
  showMessage("assistant", id, { text: write(text) });
}

const reportError = (error) => (trouble.value = error.message);

/**
 * Retry until an attempt returns true. Return false if the thread changes or `stop` is aborted. `attempt(onReached)`
 * calls `onReached` when the server responds, which resets the backoff.
 */
async function retry(attempt, stop) {
  const current = thread.value;
  let failures = 0;
  const onReached = () => ((failures = 0), (trouble.value = ""));
  for (; thread.value === current && !stop?.aborted; failures++) {
    try {
      if (await attempt(onReached)) return true;
    } catch (error) {
      const status = error.facts?.status;
      if (status < 500 && status !== 429) throw error;
      if (failures > 2 || error.kind === "away") trouble.value = status ? error.message : AWAY;
    }
    await sleep(Math.min(500 * 2 ** failures, 4000), stop);
  }
  return false;
}

/** Follow a turn to its end. Each attempt reads all events again, since another process may have continued the turn. */
function followTurn(turn) {
  const current = thread.value;
  return retry(async (onReached) => {
    const headers = { Authorization: `Bearer ${session.value?.token}` };
    const response = await fetch(`${API}/${current}/turns/${turn}`, { headers, cache: "no-store" });
    if (!response.ok) throw await readProblem(response);
    onReached();
    for await (const { event, data } of readEvents(response)) {
      if (thread.value !== current || applyEvent(turn, event, data)) return true;
    }
  });
}

/** Show the stop button until the work ends, and report its error. */
function track(work) {
  isWorking.value = true;
  turnWork = work.catch(reportError).finally(() => {
    turnWork = null;
    isWorking.value = false;
  });
}

/** Show an event of a turn. Return whether it is the last one. */
function applyEvent(turn, name, data) {
  if (name === "turn.started") writeAnswer(turn, () => "");
  else if (name === "delta") writeAnswer(turn, (text) => text + data.text);
  else if (name === "tool.started") writeAnswer(turn, () => "Working…");
  else if (name === "failed") trouble.value = data.text;
  else if (name === "message") showMessage("assistant", `${turn}.a`, data);
  return name === "end";
}

function send(text) {
  if (!text.trim() || turnWork) return;
  trouble.value = "";
  track(deliver(text).finally(() => (sending = null)));
}

/** Send a message until it arrives or the user stops it, and follow its turn. */
async function deliver(text) {
  generation++;
  sending = new AbortController();
  const { signal } = sending;
  if (!thread.value && !(await retry(() => openThread(text), signal))) return giveUp(text, signal);
  // A message that is sent again keeps its turn id, so the server runs it only once.
  if (unsent?.text !== text || unsent.thread !== thread.value) {
    unsent = { text, thread: thread.value, turn: `u${crypto.randomUUID?.() ?? String(Math.random()).slice(2)}` };
  }
  const { turn } = unsent;
  const current = thread.value;
  showMessage("user", turn, { text });
  if (!(await retry(() => call("POST", `${API}/${current}`, { text, turn }), signal))) return giveUp(text, signal);
  sending = unsent = null;
  if (draft.value === text) draft.value = "";
  trouble.value = "";
  if (thread.value === current) await followTurn(turn);
}

function giveUp(text, signal) {
  if (!signal.aborted) return;
  draft.value ||= text; // The field is empty if the message came from a button.
  trouble.value = "Stopped. Send it again when the server is back; it is done once.";
}

async function openThread(title) {
  const created = await call("POST", API, { list: about.value, title: title.slice(0, 80) });
  thread.value = created.thread;
  updateAddress();
  return true;
}

async function showThread(id) {
  const current = ++generation;
  const page = id ? await call("GET", `${API}/${encodeURIComponent(id)}`) : { list: about.value, messages: [] };
  if (current !== generation) return;
  batch(() => {
    thread.value = id;
    setList(page.list);
    messages.value = page.messages;
    trouble.value = "";
  });
  updateAddress();
  const last = page.messages.at(-1);
  if (last?.role === "user") track(followTurn(last.id));
}

/** Reload the thread, to show messages sent from another tab or a terminal. */
async function refresh() {
  const isShown = document.visibilityState === "visible" && place.value.screen === "chat";
  if (isShown && session.value && thread.value && !turnWork) await showThread(thread.value).catch(reportError);
}
document.addEventListener("visibilitychange", refresh);
addEventListener("focus", refresh);

/** Show the newest thread of a list. */
async function showNewestThread(name) {
  const current = ++generation;
  batch(() => [thread.value, messages.value] = ["", []]);
  setList(name);
  updateAddress();
  const page = await call("GET", `${API}?list=${encodeURIComponent(name)}`);
  if (current === generation) await showThread(page.threads[0]?.thread ?? "");
}

/** Show the thread of the address, or the newest one of the list. */
async function openPlace(id, name) {
  if (hashOf(place.value) === shownAddress || !(id || name)) return;
  try {
    if (id) return await showThread(id);
  } catch (error) {
    if (error.kind !== "not_found") return reportError(error);
    reportAbsent("chat", id);
  }
  await showNewestThread(name).catch(reportError);
}

function startThread() {
  showThread("");
  focusField();
}

/** Stop the turn, or stop retrying a message. */
function stop() {
  if (sending) sending.abort();
  else call("POST", `${API}/${thread.value}/stop`, {}).catch(reportError);
}

/** Ask the question of a message in a chat about another list. */
async function askElsewhere(name, id) {
  const question = messages.value.find((message) => `${message.id}.a` === id)?.text;
  await showNewestThread(name).catch(reportError);
  if (about.value === name && question) send(question);
}

const focusField = () => document.querySelector("#text")?.focus();

/** Send a question, which changes nothing. Another sentence goes into the field, to be adapted first. */
function say(sentence) {
  if (sentence.endsWith("?")) return send(sentence);
  draft.value = sentence;
  focusField();
}

export default function Chat() {
  const { rest: [id = ""], query } = place.value;
  const name = chooseList(query.list);
  useEffect(() => void openPlace(id, name), [id, name, query.list]);
  const log = useRef(null);
  useLayoutEffect(() => void (log.current.scrollTop = log.current.scrollHeight), [messages.value]);
  return html`<${ChatHead} />
    <main class="chat" id="main">
      <div id="log" ref=${log} role="log" aria-live="polite" aria-label="Messages" tabindex="0">
        ${messages.value.length
          ? html`<ol id="said">${messages.value.map((message, at) => html`<${Message} key=${message.id}
              message=${message} isLast=${at === messages.value.length - 1} />`)}</ol>`
          : html`<${Empty} />`}
      </div>
      <${Composer} />
      ${trouble.value && html`<p class="trouble bad" role="alert">${safe(trouble.value)}</p>`}
    </main>`;
}

function ChatHead() {
  const names = new Map([...cards.value.values()].map((card) => [card.conversation, nameOf(card)]));
  if (about.value && !names.has(about.value)) names.set(about.value, about.value);
  const options = [...names].sort(([, a], [, b]) => a.localeCompare(b));
  const pick = (event) => showNewestThread(event.currentTarget.value).catch(reportError);
  return html`<header class="top-bar chat-head"><h1>Chat</h1>
    <label class="about"><span>about</span><select id="list" aria-label="The list" onChange=${pick}>
      ${options.map(([id, name]) => html`<option key=${id} value=${id} selected=${id === about.value}>
        ${safe(name)}</option>`)}</select></label>
    <span class="room"></span><button type="button" onClick=${startThread}>New thread</button></header>`;
}

const Empty = () => html`<div class="empty-chat">
  <h2>Ask about your list, or change it</h2>
  <p class="hush">In plain sentences. Say “help” for all of them.</p>
  <${Sentences} of=${SENTENCES} />
</div>`;

const Sentences = ({ of }) => isReadOnly() || html`<div class="sentences">${of.map((sentence) =>
  html`<button key=${sentence} type="button" onClick=${() => say(sentence)}>${safe(sentence)}</button>`)}</div>`;

const isReadOnly = () => session.value?.scope.mode === "ro";

function Message({ message, isLast }) {
  const { role, text, about: tasks = [], mark, notes = [] } = message;
  return html`<li class=${role}>
    ${message.help ? html`<${HelpText} of=${message.help} />` : html`<div class="text">${safeBlock(text)}</div>`}
    ${tasks.length > 0 && html`<div class="hush">${tasks.map(safe).join("\n")}</div>`}
    ${mark && html`<div class="hush">${safe(mark)}</div>`}
    <${Receipts} of=${message} isLast=${isLast} />
    ${notes.map((note) => html`<div key=${note} class="note">${safe(note)}</div>`)}
    ${isLast && html`<${Choices} of=${message} />`}
  </li>`;
}

/** The changes of a turn, each as a link to its task. */
function Receipts({ of: { receipts = [], undos }, isLast }) {
  const shown = receipts.filter(({ text, task }) => text || task);
  if (!shown.length) return null;
  return html`<div class="chips">
    ${shown.map(({ text, task, title, type, seq }) => {
      const words = html`<${Text} of=${text || `#${task} ${title ?? ""}`} />`;
      const target = { name: about.value, task };
      return task && type !== "Deleted"
        ? html`<a key=${seq} href=${hashOf(target)} onClick=${follow(target)}>${words}</a>`
        : html`<span key=${seq}>${words}</span>`;
    })}
    ${isLast && !undos && !isReadOnly() && html`<button type="button" onClick=${() => send("undo that")}>Undo</button>`}
  </div>`;
}

/** The buttons below the newest message: yes and no, similar sentences, or a chat about another list. */
function Choices({ of: { id, asks, offers, elsewhere } }) {
  if (isReadOnly()) return null;
  if (asks) return html`<div class="answers">
    <button type="button" class="danger" onClick=${() => send("yes")}>yes</button>
    <button type="button" onClick=${() => send("no")}>no</button></div>`;
  if (offers) return html`<${Sentences} of=${offers} />`;
  const wanted = elsewhere?.toLowerCase();
  const other = wanted && [...cards.value.values()].find((card) =>
    [card.conversation, nameOf(card)].some((name) => name.toLowerCase() === wanted));
  return other && html`<div class="answers"><button type="button"
    onClick=${() => askElsewhere(other.conversation, id)}>Ask in <${Text} of=${nameOf(other)} /></button></div>`;
}

const HelpText = ({ of }) => html`<div class="text">You can say, for example:</div>
  <dl>${of.map(([sentence, meaning]) => html`<div key=${sentence}>
    <dt><button type="button" class="text" onClick=${() => say(sentence)}>${sentence}</button></dt>
    <dd>${meaning}</dd></div>`)}</dl>`;

function Composer() {
  if (isReadOnly()) return html`<p class="hush">This link is read-only: it shows the chat, and sends nothing.</p>`;
  const submit = (event) => (event.preventDefault(), send(draft.value));
  const onKey = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
  };
  return html`<form onSubmit=${submit}><label class="sr" for="text">Say what you want</label>
    <textarea id="text" rows="1" placeholder="add buy milk" autocomplete="off" value=${draft.value}
      onInput=${(event) => (draft.value = event.currentTarget.value)} onKeyDown=${onKey}></textarea>
    ${isWorking.value
      ? html`<button type="button" key="stop" onClick=${stop}>Stop</button>`
      : html`<button type="submit" key="send" class="primary">Send</button>`}</form>`;
}
