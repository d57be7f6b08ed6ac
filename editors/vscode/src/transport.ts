// The connection to the daemon: one Unix socket, one JSON text per line, and reconnects.

import { randomUUID } from "node:crypto";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import { CallError } from "./wire.ts";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;
const START_EVERY_MS = 10_000;
const MAX_ADDRESS_BYTES = 107; // maximum length of a Unix socket address without the final null byte

/** Errors after which a change with a key is sent again over the next connection. */
const RETRIED_ERRORS = new Set(["shutting_down", "outcome_unknown"]);

export interface Listener {
  onConnected?(): void;
  onAway?(reason: string): void;
  onPush?(method: string, params: any): void;
}

type Done = (error: CallError | null, result?: any) => void;

interface PendingCall {
  text: string;
  keyed: boolean;
  done: Done;
}

/** Return the path of the daemon's socket, by the rules in docs/protocol.md. */
export function socketPath(env: NodeJS.ProcessEnv = process.env): string {
  if (env.PUNCHLIST_SOCKET) return env.PUNCHLIST_SOCKET;
  if (env.XDG_RUNTIME_DIR?.startsWith("/")) return path.join(env.XDG_RUNTIME_DIR, "punchlist/daemon.sock");
  const run = `/run/user/${os.userInfo().uid}`;
  if (fs.statSync(run, { throwIfNoEntry: false })?.uid === os.userInfo().uid) return path.join(run, "punchlist/daemon.sock");
  const data = env.XDG_DATA_HOME?.startsWith("/") ? env.XDG_DATA_HOME : path.join(env.HOME ?? os.homedir(), ".local/share");
  return path.join(env.PUNCHLIST_DATA_DIR || path.join(data, "punchlist"), "run/daemon.sock");
}

export interface Options {
  /** Actor of our changes in the history. */
  client: string;
  version: string;
  /** Returns the path of the socket. Called before each attempt to connect. */
  socket?: () => string;
  /** Starts a daemon if none is listening. Called at most every 10 seconds. */
  start?: () => void;
}

/** A connection that reconnects. Calls return promises. Listeners receive pushes and changes of connection state. */
export class Connection {
  connected = false;
  reason = "not connected yet";
  readonly listeners = new Set<Listener>();
  readonly #options: Options;
  #socket: net.Socket | null = null;
  #isOpen = false;
  #timer: NodeJS.Timeout | undefined;
  #pause = FIRST_PAUSE_MS;
  #startedAt = -Infinity;
  #nextId = 0;
  #calls = new Map<number, PendingCall>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Connect, and reconnect until `close`. */
  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    void this.#connect();
  }

  /** Disconnect permanently. */
  close(): void {
    this.#isOpen = false;
    this.#onDisconnect("closed");
    for (const call of this.#calls.values()) call.done(new CallError("connection", "closed"));
    this.#calls.clear();
  }

  /** Try to connect immediately, without waiting until the pause ends. */
  retry(): void {
    this.#pause = FIRST_PAUSE_MS;
    this.#startedAt = -Infinity;
    void this.#connect();
  }

  /** Make a read call. Fails with kind `connection` if there is no daemon or the connection breaks before the response. */
  call(method: string, params: object = {}): Promise<any> {
    return new Promise((resolve, reject) => {
      this.request(method, params, (error, result) => (error ? reject(error) : resolve(result)));
    });
  }

  /** Make a change. If the connection breaks before the response, the call is sent again but takes effect only once. */
  change(method: string, params: object): Promise<any> {
    return this.call(method, { ...params, key: randomUUID() });
  }

  /** Like `call`, but `done` runs synchronously when the response is read, before any push that follows it. */
  request(method: string, params: object, done: Done): void {
    if (!this.connected) return queueMicrotask(() => done(new CallError("connection", this.reason)));
    this.#send(method, params, done);
  }

  #send(method: string, params: object, done: Done): void {
    const id = ++this.#nextId;
    const text = JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n";
    this.#calls.set(id, { text, keyed: "key" in params, done });
    this.#socket?.write(text);
  }

  async #connect(): Promise<void> {
    if (this.#socket || !this.#isOpen) return;
    clearTimeout(this.#timer);
    const socket = new net.Socket();
    this.#socket = socket;
    const where = (this.#options.socket ?? socketPath)();
    let folder: fs.promises.FileHandle | undefined;
    try {
      const { uid } = await fs.promises.stat(where);
      if (uid !== os.userInfo().uid && uid !== 0) {
        return this.#onDisconnect(`${where} belongs to another user (uid ${uid}); punchlist does not use it`, socket);
      }
      const isLong = Buffer.byteLength(where) > MAX_ADDRESS_BYTES;
      if (isLong) folder = await fs.promises.open(path.dirname(where), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
      if (this.#socket !== socket) return void folder?.close();
      socket.connect(folder ? `/proc/self/fd/${folder.fd}/${path.basename(where)}` : where);
    } catch {
      this.#startDaemon();
      return this.#onDisconnect(`no daemon listens on ${where}`, socket);
    }
    let rest: string[] = [];
    socket.setEncoding("utf8"); // buffers incomplete characters
    socket.on("connect", () => {
      void folder?.close();
      this.#sendHello(socket);
    });
    socket.on("data", (data: unknown) => {
      const lines = String(data).split("\n");
      rest.push(lines[0] ?? "");
      if (lines.length === 1) return;
      lines[0] = rest.join("");
      rest = [lines.pop() ?? ""];
      for (const line of lines) if (this.#socket === socket) this.#onMessage(line);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      void folder?.close().catch(() => undefined);
      if (error.syscall !== "connect") return; // The event "close" follows.
      this.#startDaemon();
      this.#onDisconnect(`no daemon listens on ${where} (${error.code})`, socket);
    });
    socket.on("close", () => this.#onDisconnect("the daemon closed the connection", socket));
  }

  #startDaemon(): void {
    if (!this.#options.start || performance.now() - this.#startedAt < START_EVERY_MS) return;
    this.#startedAt = performance.now();
    this.#options.start();
  }

  #sendHello(socket: net.Socket): void {
    const { client: name, version } = this.#options;
    this.#send("daemon.hello", { client: { name, version } }, (error) => {
      if (this.#socket !== socket || error?.kind === "connection") return;
      [this.connected, this.reason, this.#pause] = [true, "", FIRST_PAUSE_MS];
      const unanswered = [...this.#calls.values()].filter((call) => call.keyed);
      for (const listener of this.listeners) listener.onConnected?.();
      for (const call of unanswered) socket.write(call.text);
    });
  }

  #onMessage(line: string): void {
    const message = JSON.parse(line);
    if (message.method) {
      for (const listener of this.listeners) listener.onPush?.(message.method, message.params);
      return;
    }
    const call = this.#calls.get(message.id);
    if (!call) return;
    const data = message.error?.data ?? {};
    if (call.keyed && RETRIED_ERRORS.has(data.kind)) return;
    this.#calls.delete(message.id);
    call.done(message.error ? new CallError(data.kind ?? "internal", message.error.message, data) : null, message.result);
  }

  /** Handle the loss of the connection. Reads fail, and changes are sent again over the next connection. */
  #onDisconnect(reason: string, socket = this.#socket): void {
    if (socket !== this.#socket) return;
    socket?.destroy();
    const isNews = this.connected || this.reason !== reason;
    [this.#socket, this.connected, this.reason] = [null, false, reason];
    const reads = [...this.#calls].filter(([, call]) => !call.keyed);
    for (const [id, call] of reads) {
      this.#calls.delete(id);
      call.done(new CallError("connection", reason));
    }
    if (isNews) for (const listener of this.listeners) listener.onAway?.(reason);
    clearTimeout(this.#timer);
    if (!this.#isOpen) return;
    this.#timer = setTimeout(() => void this.#connect(), this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
  }
}
