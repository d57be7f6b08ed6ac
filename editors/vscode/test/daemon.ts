// A real daemon in a separate process, and additional clients for it.

import { type ChildProcess, spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { once } from "node:events";
import { Connection } from "../src/transport.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const PYTHON = process.env.PYTHON ?? path.join(ROOT, ".venv/bin/python");
const PATIENCE_MS = 20_000;

export class Daemon {
  readonly directory = fs.mkdtempSync(path.join(os.tmpdir(), "punchlist-"));
  readonly socket = path.join(this.directory, "run/daemon.sock");
  #process: ChildProcess | null = null;
  #clients: Connection[] = [];

  async start(...options: string[]): Promise<this> {
    const files = ["--socket", this.socket, "--data-dir", path.join(this.directory, "data")];
    this.#process = spawn(PYTHON, ["-m", "punchlistd", ...files, "--ready-fd", "3", ...options], { stdio: ["ignore", "ignore", "ignore", "pipe"] });
    const ready = this.#process.stdio[3];
    if (!ready) throw new Error("no pipe");
    await once(ready, "data");
    return this;
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (!this.#process || this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, "exit");
    this.#process.kill(signal);
    await gone;
  }

  pause(): void {
    this.#process?.kill("SIGSTOP");
  }

  /** Return a connection to this daemon, closed by `end`. */
  connection(name = "vscode"): Connection {
    const connection = new Connection({ client: name, version: "1", socket: () => this.socket });
    this.#clients.push(connection);
    return connection;
  }

  /** Return another client, connected. */
  async agent(): Promise<Connection> {
    const connection = this.connection("agent");
    connection.open();
    await until(() => connection.connected);
    return connection;
  }

  async end(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.kill();
    fs.rmSync(this.directory, { recursive: true });
  }
}

/** Wait until a condition is true. */
export async function until(condition: () => unknown): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`timed out: ${condition}`);
    await new Promise((done) => setTimeout(done, 2));
  }
}
