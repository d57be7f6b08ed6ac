// The connection to the daemon: one Unix socket, one JSON text a line, and a new connection where one broke.

import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import { CallError } from "./wire.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;
const START_EVERY_MS = 10_000;
const MAX_ADDRESS_BYTES = 107; // what a Unix address holds besides its closing zero

/** These say that a change with a key is to be sent again once a daemon answers. */
const ASK_AGAIN = new Set(["shutting_down", "outcome_unknown"]);

export interface Listener {
  connected?(): void;
  away?(reason: string): void;
  pushed?(method: string, params: any): void;
}

type Done = (error: CallError | null, result?: any) => void;

interface Waiting {
  text: string;
  keyed: boolean;
  done: Done;
}

/** Where the daemon listens, by the rules of docs/protocol.md. */
export function socketPath(env: NodeJS.ProcessEnv = process.env): string {
  if (env.PUNCHLIST_SOCKET) return env.PUNCHLIST_SOCKET;
  if (env.XDG_RUNTIME_DIR?.startsWith("/")) return path.join(env.XDG_RUNTIME_DIR, "punchlist/daemon.sock");
  const run = `/run/user/${os.userInfo().uid}`;
  if (fs.statSync(run, { throwIfNoEntry: false })?.uid === os.userInfo().uid) return path.join(run, "punchlist/daemon.sock");
  const data = env.XDG_DATA_HOME?.startsWith("/") ? env.XDG_DATA_HOME : path.join(env.HOME ?? os.homedir(), ".local/share");
  return path.join(env.PUNCHLIST_DATA_DIR || path.join(data, "punchlist"), "run/daemon.sock");
}

export interface Options {
  /** Who the history says made a change. */
  client: string;
  version: string;
  /** Where the daemon listens; it is asked before each attempt. */
  socket?: () => string;
  /** Starts a daemon where none listens; it is called at most every 10 seconds. */
  start?: () => void;
}

/** A connection that is kept: calls are answered by promises, pushes and news of the connection go to listeners. */
export class Connection {
  connected = false;
  reason = "not connected yet";
  readonly listeners = new Set<Listener>();
  readonly #options: Options;
  #socket: net.Socket | null = null;
  #wanted = false;
  #timer: NodeJS.Timeout | undefined;
  #pause = FIRST_PAUSE_MS;
  #startedAt = -Infinity;
  #nextId = 0;
  #waiting = new Map<number, Waiting>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Connect, and stay connected from now on. */
  open(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    void this.#connect();
  }

  /** Hang up for good. */
  close(): void {
    this.#wanted = false;
    this.#lost("closed");
    for (const one of this.#waiting.values()) one.done(new CallError("connection", "closed"));
    this.#waiting.clear();
  }

  /** Try now, and not only when the pause is over. */
  retry(): void {
    this.#pause = FIRST_PAUSE_MS;
    this.#startedAt = -Infinity;
    void this.#connect();
  }

  /** Read something. It fails with kind `connection` where no daemon is, or it goes away before its answer. */
  call(method: string, params: object = {}): Promise<any> {
    return new Promise((resolve, reject) => {
      this.request(method, params, (error, result) => (error ? reject(error) : resolve(result)));
    });
  }

  /** Change something. If the connection breaks before the answer, the call is sent again and happens once. */
  change(method: string, params: object): Promise<any> {
    return this.call(method, { ...params, key: randomUUID() });
  }

  /** As `call`, with the answer at once where it is read: before the push that may stand behind it. */
  request(method: string, params: object, done: Done): void {
    if (!this.connected) return queueMicrotask(() => done(new CallError("connection", this.reason)));
    this.#send(method, params, done);
  }

  #send(method: string, params: object, done: Done): void {
    const id = ++this.#nextId;
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
    this.#waiting.set(id, { text, keyed: "key" in params, done });
    this.#socket?.write(text);
  }

  async #connect(): Promise<void> {
    if (this.#socket || !this.#wanted) return;
    clearTimeout(this.#timer);
    const socket = new net.Socket();
    this.#socket = socket;
    const where = (this.#options.socket ?? socketPath)();
    let folder: fs.promises.FileHandle | undefined;
    try {
      const found = await fs.promises.stat(where);
      if (found.uid !== os.userInfo().uid && found.uid !== 0) {
        return this.#lost(`${where} belongs to another user (uid ${found.uid}); punchlist does not talk to it`, socket);
      }
      const isLong = Buffer.byteLength(where) > MAX_ADDRESS_BYTES;
      if (isLong) folder = await fs.promises.open(path.dirname(where), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
      if (this.#socket !== socket) return void folder?.close();
      socket.connect(folder ? `/proc/self/fd/${folder.fd}/${path.basename(where)}` : where);
    } catch {
      this.#startDaemon();
      return this.#lost(`no daemon listens on ${where}`, socket);
    }
    let rest: string[] = [];
    socket.setEncoding("utf8"); // holds back half a character
    socket.on("connect", () => {
      void folder?.close();
      this.#greet(socket);
    });
    socket.on("data", (data: unknown) => {
      const lines = String(data).split("\n");
      rest.push(lines[0] ?? "");
      if (lines.length === 1) return;
      lines[0] = rest.join("");
      rest = [lines.pop() ?? ""];
      for (const line of lines) if (this.#socket === socket) this.#received(line);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      void folder?.close().catch(() => undefined);
      if (error.syscall !== "connect") return; // "close" follows
      this.#startDaemon();
      this.#lost(`no daemon listens on ${where} (${error.code})`, socket);
    });
    socket.on("close", () => this.#lost("the daemon closed the connection", socket));
  }

  #startDaemon(): void {
    if (!this.#options.start || performance.now() - this.#startedAt < START_EVERY_MS) return;
    this.#startedAt = performance.now();
    this.#options.start();
  }

  #greet(socket: net.Socket): void {
    const { client: name, version } = this.#options;
    this.#send("daemon.hello", { client: { name, version } }, (error) => {
      if (this.#socket !== socket || error?.kind === "connection") return;
      [this.connected, this.reason, this.#pause] = [true, "", FIRST_PAUSE_MS];
      const again = [...this.#waiting.values()].filter((one) => one.keyed);
      for (const listener of this.listeners) listener.connected?.();
      for (const one of again) socket.write(one.text);
    });
  }

  #received(line: string): void {
    const message = JSON.parse(line);
    if (message.method) {
      for (const listener of this.listeners) listener.pushed?.(message.method, message.params);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    const data = message.error?.data ?? {};
    if (waiting.keyed && ASK_AGAIN.has(data.kind)) return; // it stays, and is sent again on the next connection
    this.#waiting.delete(message.id);
    waiting.done(message.error ? new CallError(data.kind ?? "internal", message.error.message, data) : null, message.result);
  }

  /** The connection is gone: changes wait for the next one, where they are sent again; reads fail. */
  #lost(reason: string, socket = this.#socket): void {
    if (socket !== this.#socket) return;
    socket?.destroy();
    const isNews = this.connected || this.reason !== reason;
    [this.#socket, this.connected, this.reason] = [null, false, reason];
    const unread = [...this.#waiting].filter(([, one]) => !one.keyed);
    for (const [id, one] of unread) {
      this.#waiting.delete(id);
      one.done(new CallError("connection", reason));
    }
    if (isNews) for (const listener of this.listeners) listener.away?.(reason);
    clearTimeout(this.#timer);
    if (!this.#wanted) return;
    this.#timer = setTimeout(() => void this.#connect(), this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }
}
