// The road to the server: signing in, calls, and the one stream of this tab.

import { signal } from "./vendor.js";

const KEPT = "punchlist.session";
const STREAMS = 4; // so many tabs of a browser hold a stream, others ask; an origin has six connections
const ASK_MS = 2000;
const LATE_MS = 40_000; // the server says something every 15 s

export class Problem extends Error {
  constructor(kind, detail, facts = {}) {
    super(detail);
    this.kind = kind;
    this.facts = facts;
  }
}

export const session = signal(read());
/** "opening", "live", "away" or "asleep" (a hidden tab). */
export const state = signal("opening");
export const awaySince = signal(0);
/** Why this browser is not signed in any more. */
export const signedOut = signal("");
const ENDED = "This browser was signed out: its time is over, or its link was revoked.";

function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT));
    return kept?.token && kept.expires_at > Date.now() ? kept : null;
  } catch {
    return null;
  }
}

export function signOut(why = "") {
  localStorage.removeItem(KEPT);
  signedOut.value = why;
  session.value = null;
}

/** Redeem the ticket of the address, if there is one, and take it out of the address. */
export async function signIn() {
  const ticket = /^#ticket=([^&]+)$/.exec(location.hash)?.[1];
  if (!ticket) return;
  history.replaceState(null, "", location.pathname + "#/");
  const made = await call("POST", "/api/session", { ticket: decodeURIComponent(ticket) }, { token: null });
  localStorage.setItem(KEPT, JSON.stringify(made));
  session.value = made;
  signedOut.value = "";
}

export async function problemOf(response) {
  const told = await response.json().catch(() => ({}));
  const isSignIn = response.url.endsWith("/api/session"); // a used link signs nobody out
  if (response.status === 401 && session.value && !isSignIn) signOut(ENDED);
  return new Problem(told.kind ?? "internal_error", told.detail ?? `The server answers ${response.status}.`, told);
}

/** One call. A change that is answered by silence is sent again under the same key, so it happens once. */
export async function call(verb, path, body, { match, token = session.value?.token } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  if (match !== undefined) headers["If-Match"] = `"${match}"`;
  if (verb !== "GET" && token) headers["Idempotency-Key"] = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  for (let tries = 2; ; tries--) {
    try {
      const sent = body && JSON.stringify(body);
      const response = await fetch(path, { method: verb, headers, body: sent, cache: "no-store" });
      if (response.ok) return await response.json();
      const problem = await problemOf(response);
      if (response.status !== 503 || !tries) throw problem;
    } catch (error) {
      if (error instanceof Problem) throw error;
      const said = "The server does not answer. Nothing was lost; try again when it is back.";
      if (!tries) throw new Problem("away", said);
    }
    await sleep(500);
  }
}

export const sleep = (ms, until) =>
  new Promise((wake) => {
    const timer = setTimeout(wake, ms);
    until?.addEventListener("abort", () => (clearTimeout(timer), wake()), { once: true });
  });

/** Server-sent events of a response, one by one. */
export async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const late = setTimeout(() => reader.cancel(), LATE_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(late));
      if (done) return;
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

/** Hold one of the few streams of this browser while `work` runs; at once false if all are taken. */
async function withSlot(work) {
  if (!navigator.locks) {
    await work();
    return true;
  }
  const inside = async (lock) => lock && (await work(), true);
  for (let slot = 0; slot < STREAMS; slot++) {
    if (await navigator.locks.request(`punchlist.stream.${slot}`, { ifAvailable: true }, inside)) return true;
  }
  return false;
}

/** The tab's stream: the board, one list's rows, or both. It resumes after every cut and is closed in a hidden tab. */
export class Link {
  #positions = { epoch: null, board: "-", rows: "-" };
  #stop = new AbortController();
  #rows = null;

  /** `take(event)` gets each event, `begin()` is called when a connection begins, `awake()` says whether to stream. */
  constructor({ take, begin, refused, awake }) {
    Object.assign(this, { take, begin, refused, awake });
    document.addEventListener("visibilitychange", () => this.restart());
    addEventListener("online", () => this.restart());
    this.#run();
  }

  /** Follow this list too; null: the board alone. */
  follow(name) {
    if (name === this.#rows) return;
    this.#rows = name;
    this.#positions.rows = "-";
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
      if (!session.value || !this.awake() || !(board || this.#rows)) {
        if (session.value && !this.awake()) state.value = "asleep";
        await sleep(3_600_000, stop);
        continue;
      }
      try {
        if (!(await withSlot(() => this.#stream(board, false, stop)))) {
          await this.#stream(board, true, stop);
          await sleep(ASK_MS, stop);
        }
      } catch (error) {
        if (stop.aborted) continue;
        const isOtherLog = error instanceof Problem && ["gap", "wrong_epoch"].includes(error.kind);
        if (isOtherLog) this.#positions = { epoch: null, board: "-", rows: "-" };
        else if (error instanceof Problem && error.kind === "not_found") {
          this.refused(error, this.#rows);
          await sleep(3_600_000, stop);
        } else if (error.kind === "ended") await sleep(ASK_MS, stop);
        else {
          if (this.#failures && state.value !== "away") [state.value, awaySince.value] = ["away", Date.now()];
          await sleep(Math.min(200 * 2 ** this.#failures++, 4000) * (0.75 + Math.random() / 2), stop);
        }
      }
    }
  }

  #failures = 0;

  async #stream(board, once, stop) {
    const rows = this.#rows;
    const shown = { ...(board && { board: 1 }), ...(rows && { rows, presence: 1 }), ...(once && { once: 1 }) };
    const query = new URLSearchParams(shown);
    const headers = { Authorization: `Bearer ${session.value.token}` };
    const { epoch, ...at } = this.#positions;
    if (epoch && (at.board !== "-" || at.rows !== "-"))
      headers["Last-Event-ID"] = `${epoch}.${board ? at.board : "-"}.${rows ? at.rows : "-"}`;
    const response = await fetch(`/api/v1/feed?${query}`, { headers, signal: stop, cache: "no-store" });
    if (!response.ok) throw await problemOf(response);
    this.begin();
    for await (const event of eventsOf(response)) {
      if (stop.aborted || rows !== this.#rows) return;
      if (event.event === "end" && event.data.error?.kind === "unauthorized") signOut(ENDED);
      if (event.event === "end") throw new Problem("ended", "The stream ended.");
      if (event.event === "bye") break;
      this.take(event);
      this.#failures = 0;
      state.value = "live";
      if (!event.id || event.data.more) continue;
      const [name, board, at] = event.id.split(".");
      this.#positions = { ...this.#positions, epoch: name, ...(event.event === "rows" ? { rows: at } : { board }) };
    }
    if (!once && !stop.aborted) throw new Problem("away", "The stream ended.");
  }
}
