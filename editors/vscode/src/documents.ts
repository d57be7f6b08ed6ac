// Tasks and lists as documents: a description to edit, and details, history and past versions to read.

import * as vscode from "vscode";
import type { TaskList } from "./model.ts";
import { details, label, safe, stateOf } from "./text.ts";
import type { Connection } from "./transport.ts";
import { CallError, type Row } from "./wire.ts";

const EDITED = "punchlist";
const READ = "punchlist-read";
const HISTORY_EVENTS = 500;
const TRIES = 5;

/** The description of a task as a file: `punchlist:/NAME/3.md`. */
export const descriptionUri = (name: string, id: string): vscode.Uri => vscode.Uri.from({ scheme: EDITED, path: `/${name}/${id}.md` });
export const detailsUri = (name: string, id: string): vscode.Uri => vscode.Uri.from({ scheme: READ, path: `/${name}/${id}.txt` });
export const historyUri = (name: string): vscode.Uri => vscode.Uri.from({ scheme: READ, path: `/${name}/history.txt` });
export const pastUri = (name: string, version: number): vscode.Uri => vscode.Uri.from({ scheme: READ, path: `/${name}/version-${version}.txt` });

const partsOf = (uri: vscode.Uri): [name: string, rest: string] => {
  const [, name = "", rest = ""] = uri.path.split("/");
  return [name, rest.replace(/\.\w+$/, "")];
};

/** The list of this name, followed; the window keeps those that its documents show. */
export type Lists = (name: string) => TaskList;

/** Descriptions as files. What somebody else wrote meanwhile is never written over unseen. */
export class Descriptions implements vscode.FileSystemProvider {
  readonly #connection: Connection;
  readonly #lists: Lists;
  readonly #changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.#changed.event;
  /** What the person has last seen of each description. */
  readonly #seen = new Map<string, string>();

  constructor(connection: Connection, lists: Lists) {
    this.#connection = connection;
    this.#lists = lists;
  }

  /** Tell editors which descriptions a push changed. */
  update(list: TaskList, before: Map<string, Row | undefined>): void {
    const events: vscode.FileChangeEvent[] = [];
    for (const [id, old] of before) {
      const row = list.get(id);
      const uri = descriptionUri(list.name, id);
      if (!row) events.push({ type: vscode.FileChangeType.Deleted, uri });
      else if (old?.description !== row.description) events.push({ type: vscode.FileChangeType.Changed, uri });
    }
    if (events.length) this.#changed.fire(events);
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined); // whoever has a list is told its changes anyway
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    if (!partsOf(uri)[1]) return { type: vscode.FileType.Directory, ctime: 0, mtime: 0, size: 0 };
    const row = await this.#row(uri);
    const size = Buffer.byteLength(row.description ?? "");
    return { type: vscode.FileType.File, ctime: row.created_at, mtime: row.updated_at, size };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const { description = "" } = await this.#row(uri);
    this.#seen.set(uri.path, description);
    return Buffer.from(description);
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    const [name, task] = partsOf(uri);
    const description = Buffer.from(content).toString();
    for (let tries = 0; tries < TRIES; tries++) {
      const version = await this.#version(name);
      const { description: theirs = "" } = await this.#row(uri, version);
      if (theirs !== (this.#seen.get(uri.path) ?? "")) return this.#refuse(uri, theirs, description);
      try {
        await this.#connection.change("task.edit", { conversation: name, task, description, expect_version: version });
        this.#seen.set(uri.path, description);
        return;
      } catch (error) {
        if (error instanceof CallError && error.kind === "version_conflict") continue;
        throw vscode.FileSystemError.Unavailable(error instanceof Error ? error.message : String(error));
      }
    }
    throw vscode.FileSystemError.Unavailable("the list changes all the time; nothing was saved, try again");
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  async #row(uri: vscode.Uri, at_version?: number): Promise<Row> {
    const [name, id] = partsOf(uri);
    const list = this.#lists(name);
    const known = at_version === undefined || at_version === list.version ? list.get(id) : undefined;
    if (known) return known;
    try {
      return (await this.#connection.call("task.get", { conversation: name, task: id })).task;
    } catch (error) {
      const isGone = error instanceof CallError && error.kind === "not_found";
      throw isGone ? vscode.FileSystemError.FileNotFound(uri) : vscode.FileSystemError.Unavailable((error as Error).message);
    }
  }

  async #version(name: string): Promise<number> {
    return (await this.#connection.call("conversation.get", { conversation: name })).conversation.version;
  }

  /** Leave the choice to the person: both texts side by side, and theirs stays until they say otherwise. */
  #refuse(uri: vscode.Uri, theirs: string, mine: string): never {
    const [name, id] = partsOf(uri);
    const offer = async (): Promise<void> => {
      const said = `The description of #${id} was changed meanwhile; yours is not saved.`;
      const choice = await vscode.window.showWarningMessage(said, "Compare", "Overwrite");
      if (!choice) return;
      this.#seen.set(uri.path, theirs); // from here on the person knows it
      if (choice === "Overwrite") return this.writeFile(uri, Buffer.from(mine));
      await vscode.commands.executeCommand("vscode.diff", detailsUri(name, id), uri, `#${id}: theirs and yours`);
    };
    void offer().catch((error: Error) => vscode.window.showErrorMessage(`Punchlist: ${error.message}`));
    throw vscode.FileSystemError.Unavailable(`the description of #${id} was changed meanwhile; nothing was saved`);
  }
}

/** Details of a task, the history of a list and its past versions, as text that follows the list. */
export class Pages implements vscode.TextDocumentContentProvider {
  readonly #connection: Connection;
  readonly #lists: Lists;
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;

  constructor(connection: Connection, lists: Lists) {
    this.#connection = connection;
    this.#lists = lists;
  }

  /** Show anew what a push changed, of what is open. */
  update(list: TaskList, ids: Iterable<string>): void {
    const open = new Set(vscode.workspace.textDocuments.filter((one) => one.uri.scheme === READ).map((one) => one.uri.path));
    if (!open.size) return;
    for (const uri of [historyUri(list.name), ...[...ids].map((id) => detailsUri(list.name, id))]) if (open.has(uri.path)) this.#changed.fire(uri);
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const [name, what] = partsOf(uri);
    try {
      if (what === "history") return await this.#history(name);
      const version = /^version-(\d+)$/.exec(what)?.[1];
      return version ? await this.#past(name, Number(version)) : await this.#details(name, what);
    } catch (error) {
      return `${(error as Error).message}\n`;
    }
  }

  async #details(name: string, id: string): Promise<string> {
    const row = this.#lists(name).get(id) ?? (await this.#connection.call("task.get", { conversation: name, task: id })).task;
    return details(row);
  }

  async #past(name: string, version: number): Promise<string> {
    const { tasks } = await this.#connection.call("task.list", { conversation: name, at_version: version });
    return tasks.map((row: Row) => `${label(row)}  (${stateOf(row).replace("_", " ")})${row.description ? `\n    ${safe(row.description)}` : ""}\n`).join("");
  }

  async #history(name: string): Promise<string> {
    const found = await this.#latest(name);
    const lines = found.reverse().map(({ version, at, actor, event }) => {
      const { type, task, at: _at, ...facts } = event;
      const id = typeof task === "object" ? `#${task.id} ${safe(task.title)}` : task ? `#${task}` : "";
      const rest = typeof task === "object" || !Object.keys(facts).length ? "" : safe(JSON.stringify(facts));
      return [String(version).padStart(6), new Date(at).toLocaleString(), safe(actor), type, id, rest].filter(Boolean).join("  ");
    });
    return `${name}, the newest first\n\n${lines.join("\n")}\n`;
  }

  /** The last events of a list; how far back in the log they are, nobody knows before looking. */
  async #latest(name: string): Promise<any[]> {
    const { seq } = await this.#connection.call("daemon.status");
    for (let span = 1000; ; span *= 8) {
      let [after, found] = [Math.max(0, seq - span), [] as any[]];
      const isWhole = after === 0;
      while (after < seq) {
        const { events, next } = await this.#connection.call("event.read", { conversation: name, after, limit: 1000 });
        found = [...found, ...events].slice(-HISTORY_EVENTS);
        if (next <= after) break;
        after = next;
      }
      if (isWhole || found.length === HISTORY_EVENTS) return found;
    }
  }
}

/** Have VS Code open these documents. */
export function registerDocuments(descriptions: Descriptions, pages: Pages): vscode.Disposable[] {
  return [
    vscode.workspace.registerFileSystemProvider(EDITED, descriptions, { isCaseSensitive: true }),
    vscode.workspace.registerTextDocumentContentProvider(READ, pages),
  ];
}
