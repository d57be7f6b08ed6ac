// The connection to the server: sign-in, calls, and this tab's event stream.

import { signal } from "./vendor.js";

const SESSION_KEY = "punchlist.session";
// Maximum number of streams per browser, since browsers open at most six connections to an origin. Other tabs poll.
const MAX_STREAMS = 4;
const POLL_MS = 2000;
const SILENCE_MS = 20_000; // The server sends a comment every 15 s.
const ANSWER_MS = 2000; // A server that takes longer for a call is reported as not answering.
const PENDING_MS = 80; // A change that takes longer is marked as pending.
const LATE_MS = 3000; // A change that takes longer is reported as still waiting.

export class Problem extends Error {
  constructor(kind, detail, facts = {}) {
    super(detail);
    this.kind = kind;
    this.facts = facts;
  }
}

export const session = signal(loadSession());
/** "opening", "live", "silent" (connected, but not answering), "away" or "asleep" (in a hidden tab). */
export const state = signal("opening");
export const awaySince = signal(0);
/** The changes that have no response yet: the ids of the tasks in their paths, and whether they take long. */
export const pending = signal([]);
/** Why this browser was signed out or couldn't be signed in; empty if neither is the case. */
export const signedOut = signal("");
const ENDED = "This browser was signed out: its session expired, or its link was revoked.";

function loadSession() {
  try {
    const stored = JSON.parse(localStorage.getItem(SESSION_KEY));
    return stored?.token && stored.expires_at > Date.now() ? stored : null;
  } catch {
    return null;
  }
}

export function signOut(why = "") {
  localStorage.removeItem(SESSION_KEY);
  signedOut.value = why;
  session.value = null;
}

// Another tab of this origin has signed in or out.
addEventListener("storage", ({ key }) => {
  if (key === SESSION_KEY || key === null) session.value = loadSession();
});

/** Redeem the ticket in the address, if any, and remove it from the address. */
export async function signIn() {
  const ticket = /^#ticket=([^&]+)$/.exec(location.hash)?.[1];
  if (!ticket) return;
  history.replaceState(null, "", location.pathname + "#/");
  await redeem({ ticket: decodeURIComponent(ticket) });
}

/** Exchange the ticket of a link, or a code, for a session. */
export async function redeem(proof) {
  const redeemed = await call("POST", "/api/session", proof, { token: null });
  localStorage.setItem(SESSION_KEY, JSON.stringify(redeemed));
  session.value = redeemed;
  signedOut.value = "";
}

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];
const DEFAULT_PORT = "8322";

/** Return the command for a link to the address in this browser, which `ssh -L` may have forwarded. */
export function buildLinkCommand(options = "") {
  const { hostname, port } = location;
  const host = LOOPBACK.includes(hostname) ? "" : ` --allow-host ${hostname}`;
  return `punch web --link${options}${host}${port === DEFAULT_PORT ? "" : ` --port ${port || 80}`}`;
}

/** Return the Problem of an error response. Sign out if the session has ended. */
export async function readProblem(response) {
  const problem = await response.json().catch(() => ({}));
  const isSignIn = response.url.endsWith("/api/session"); // A used ticket doesn't end the current session.
  if (response.status === 401 && session.value && !isSignIn) signOut(ENDED);
  const { kind = "internal_error", detail = `The server returned ${response.status}.` } = problem;
  return new Problem(kind, detail, problem);
}

/** The list that this tab changed last. */
export const lastList = signal(null);
const LIST_PATH = /^\/api\/v1\/conversations\/([^/?]+)\/./;

function markSilent(since) {
  if (["opening", "live"].includes(state.value)) [state.value, awaySince.value] = ["silent", since];
}

function markAnswering() {
  if (state.value === "silent") state.value = "live";
}

/** Send a request. Report a server that doesn't answer, and give the request up after SILENCE_MS. */
async function request(path, { signal: stop, ...options }) {
  const end = new AbortController();
  const start = Date.now();
  const timers = [setTimeout(markSilent, ANSWER_MS, start), setTimeout(() => end.abort(), SILENCE_MS)];
  if (stop?.aborted) end.abort();
  stop?.addEventListener("abort", () => end.abort(), { once: true });
  try {
    const response = await fetch(path, { ...options, signal: end.signal, cache: "no-store" });
    markAnswering();
    return response;
  } finally {
    timers.forEach(clearTimeout);
  }
}

/** Mark the tasks of a change as pending until the returned function is called. */
function trackChange(path) {
  const tasks = [...path.matchAll(/tasks[/=]([^/?&]+)/g)].map(([, id]) => decodeURIComponent(id));
  const change = { tasks, isLate: false };
  const show = () => (pending.value = [...pending.value.filter((other) => other !== change), change]);
  const timers = [setTimeout(show, PENDING_MS), setTimeout(() => ((change.isLate = true), show()), LATE_MS)];
  return () => {
    timers.forEach(clearTimeout);
    pending.value = pending.value.filter((other) => other !== change);
  };
}

/**
 * Make a call. Without a response, it is repeated with the same idempotency key, so a change is made only once. The
 * result of a change has this key as its `key`.
 */
export async function call(verb, path, body, { match, token = session.value?.token } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  if (match !== undefined) headers["If-Match"] = `"${match}"`;
  const key = verb !== "GET" && token && (crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`);
  if (key) headers["Idempotency-Key"] = key;
  const finish = key ? trackChange(path) : () => {};
  try {
    const result = await tryToCall(path, { method: verb, headers, body: body && JSON.stringify(body) });
    const [, name] = (key && !body?.preview && LIST_PATH.exec(path)) || [];
    if (name) lastList.value = decodeURIComponent(name);
    return key ? { ...result, key } : result;
  } finally {
    finish();
  }
}

async function tryToCall(path, options) {
  for (let tries = 2; ; tries--) {
    try {
      const response = await request(path, options);
      if (response.ok) return await response.json();
      const problem = await readProblem(response);
      if (response.status !== 503 || !tries) throw problem;
    } catch (error) {
      if (error instanceof Problem) throw error;
      const detail = "The server is not responding. Nothing was lost; try again when it is back.";
      if (!tries) throw new Problem("away", detail);
    }
    await sleep(500);
  }
}

/** Wait for a time, or until the signal is aborted. */
export const sleep = (ms, stop) =>
  new Promise((wake) => {
    const timer = setTimeout(wake, ms);
    stop?.addEventListener("abort", () => (clearTimeout(timer), wake()), { once: true });
  });

/** Yield the server-sent events of a response. A silent connection is closed, which ends the events. */
export async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const start = Date.now();
      const timer = setTimeout(() => (markSilent(start), reader.cancel()), SILENCE_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      markAnswering();
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const pairs = block.split("\n").map((line) => [line.indexOf(":"), line]);
        const fields = Object.fromEntries(pairs.map(([at, line]) => [line.slice(0, at), line.slice(at + 2)]));
        if (fields.event) yield { id: fields.id, event: fields.event, data: JSON.parse(fields.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Run `work` in one of the browser's stream slots and return true. Return false if all slots are taken. */
async function withSlot(work) {
  if (!navigator.locks) {
    await work();
    return true;
  }
  const runLocked = async (lock) => lock && (await work(), true);
  for (let slot = 0; slot < MAX_STREAMS; slot++) {
    if (await navigator.locks.request(`punchlist.stream.${slot}`, { ifAvailable: true }, runLocked)) return true;
  }
  return false;
}

const START = { epoch: null, board: "-", rows: "-", change: "-" };

/** The tab's stream of the board, the events of all lists, and a list's rows. It resumes after a disconnect and pauses in a hidden tab. */
export class Link {
  #positions = START;
  #stop = new AbortController();
  #rows = null;
  #happened = false;

  /**
   * @param {object} handlers
   *   `onEvent(event)` is called for each event, `onConnect()` for each connection, and `onNotFound(problem, name)` if
   *   the list doesn't exist. `isAwake()` returns whether to stream.
   */
  constructor({ onEvent, onConnect, onNotFound, isAwake }) {
    Object.assign(this, { onEvent, onConnect, onNotFound, isAwake });
    document.addEventListener("visibilitychange", () => this.restart());
    addEventListener("online", () => this.restart());
    this.#run();
  }

  /** Also stream this list's rows; null for only the board. */
  follow(name) {
    if (name === this.#rows) return;
    this.#rows = name;
    this.#positions.rows = "-";
    this.restart();
  }

  /** Also stream the events of all lists, from now on. */
  followEvents(on) {
    if (on === this.#happened) return;
    this.#happened = on;
    this.#positions = { ...this.#positions, change: "-" };
    this.restart();
  }

  restart() {
    this.#stop.abort();
  }

  async #run() {
    await null;
    for (;;) {
      this.#stop = new AbortController();
      const { signal: stop } = this.#stop;
      const board = !session.value?.scope.list;
      if (!session.value || !this.isAwake() || !(board || this.#rows)) {
        if (session.value && !this.isAwake()) state.value = "asleep";
        await sleep(3_600_000, stop);
        continue;
      }
      try {
        if (!(await withSlot(() => this.#stream(board, false, stop)))) {
          await this.#stream(board, true, stop);
          await sleep(POLL_MS, stop);
        }
      } catch (error) {
        if (stop.aborted) continue;
        const isStalePosition = error instanceof Problem && ["gap", "wrong_epoch"].includes(error.kind);
        if (isStalePosition) this.#positions = START;
        else if (error instanceof Problem && error.kind === "not_found") {
          this.onNotFound(error, this.#rows);
          await sleep(3_600_000, stop);
        } else if (error.kind === "ended") await sleep(POLL_MS, stop);
        else {
          if (this.#failures && state.value !== "away") {
            if (state.value !== "silent") awaySince.value = Date.now();
            state.value = "away";
          }
          await sleep(Math.min(200 * 2 ** this.#failures++, 4000) * (0.75 + Math.random() / 2), stop);
        }
      }
    }
  }

  #failures = 0;

  async #stream(board, once, stop) {
    const rows = this.#rows;
    const happened = board && this.#happened;
    const views = {
      ...(board && { board: 1 }), ...(happened && { happened: 1 }), ...(rows && { rows, presence: 1 }),
      ...(once && { once: 1 }),
    };
    const query = new URLSearchParams(views);
    const headers = { Authorization: `Bearer ${session.value.token}` };
    const { epoch, ...positions } = this.#positions;
    if (epoch && (positions.board !== "-" || positions.rows !== "-"))
      headers["Last-Event-ID"] = [
        epoch, board ? positions.board : "-", rows ? positions.rows : "-", ...(happened ? [positions.change] : []),
      ].join(".");
    const response = await request(`/api/v1/feed?${query}`, { headers, signal: stop });
    if (!response.ok) throw await readProblem(response);
    this.onConnect();
    for await (const event of readEvents(response)) {
      if (stop.aborted || rows !== this.#rows || happened !== (board && this.#happened)) return;
      if (event.event === "end" && event.data.error?.kind === "unauthorized") signOut(ENDED);
      if (event.event === "end") throw new Problem("ended", "The stream ended.");
      if (event.event === "bye") break;
      this.onEvent(event);
      this.#failures = 0;
      state.value = "live";
      if (!event.id || event.data.more) continue;
      const [epoch, boardSeq, rowsSeq, change] = event.id.split(".");
      const position = { rows: { rows: rowsSeq }, change: { change } }[event.event] ?? { board: boardSeq };
      this.#positions = { ...this.#positions, epoch, ...position };
    }
    if (!once && !stop.aborted) throw new Problem("away", "The stream ended.");
  }
}
