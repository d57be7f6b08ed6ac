// A real daemon in a process of its own, and a client beside the one that is tested.

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

  async start(...more: string[]): Promise<this> {
    const files = ["--socket", this.socket, "--data-dir", path.join(this.directory, "data")];
    this.#process = spawn(PYTHON, ["-m", "punchlistd", ...files, "--ready-fd", "3", ...more], { stdio: ["ignore", "ignore", "ignore", "pipe"] });
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

  /** A connection to this daemon that is closed at the end. */
  connection(name = "vscode"): Connection {
    const made = new Connection({ client: name, version: "1", socket: () => this.socket });
    this.#clients.push(made);
    return made;
  }

  /** Another client, connected. */
  async agent(): Promise<Connection> {
    const made = this.connection("agent");
    made.open();
    await until(() => made.connected);
    return made;
  }

  async end(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.kill();
    fs.rmSync(this.directory, { recursive: true });
  }
}

/** Wait until something holds. */
export async function until(holds: () => unknown): Promise<void> {
  const ends = performance.now() + PATIENCE_MS;
  while (!holds()) {
    if (performance.now() > ends) throw new Error(`it never came that ${holds}`);
    await new Promise((done) => setTimeout(done, 2));
  }
}
