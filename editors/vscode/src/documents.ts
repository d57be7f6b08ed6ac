// Tasks and lists as documents: editable descriptions, and read-only details, history and past versions.

import * as vscode from "vscode";
import type { TaskList } from "./model.ts";
import { formatLabel, formatPage, safe, stateOf } from "./text.ts";
import type { Connection } from "./transport.ts";
import { CallError, type Row } from "./wire.ts";

const EDITED = "punchlist";
const READ = "punchlist-read";
const HISTORY_EVENTS = 500;
const TRIES = 5;

/** The description of a task as a file (`punchlist:/NAME/3.md`). */
export const descriptionUri = (name: string, id: string): vscode.Uri => vscode.Uri.from({ scheme: EDITED, path: `/${name}/${id}.md` });
export const detailsUri = (name: string, id: string): vscode.Uri => vscode.Uri.from({ scheme: READ, path: `/${name}/${id}.md` });
export const historyUri = (name: string): vscode.Uri => vscode.Uri.from({ scheme: READ, path: `/${name}/history.txt` });
export const pastUri = (name: string, version: number): vscode.Uri => vscode.Uri.from({ scheme: READ, path: `/${name}/version-${version}.txt` });

const partsOf = (uri: vscode.Uri): [name: string, rest: string] => {
  const [, name = "", rest = ""] = uri.path.split("/");
  return [name, rest.replace(/\.\w+$/, "")];
};

/** Returns the list with this name, and follows it while documents show it. */
export type Lists = (name: string) => TaskList;

/** Descriptions as files. A save never overwrites a description that the user hasn't seen. */
export class Descriptions implements vscode.FileSystemProvider {
  readonly #connection: Connection;
  readonly #lists: Lists;
  readonly #changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.#changed.event;
  /** Path → the text that the user saw last. */
  readonly #seen = new Map<string, string>();

  constructor(connection: Connection, lists: Lists) {
    this.#connection = connection;
    this.#lists = lists;
  }

  /** Notify editors of descriptions changed by a push. */
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
    return new vscode.Disposable(() => undefined); // Followed lists report all changes anyway.
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    if (!partsOf(uri)[1]) return { type: vscode.FileType.Directory, ctime: 0, mtime: 0, size: 0 };
    const row = await this.#readRow(uri);
    const size = Buffer.byteLength(row.description ?? "");
    return { type: vscode.FileType.File, ctime: row.created_at, mtime: row.updated_at, size };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const { description = "" } = await this.#readRow(uri);
    this.#seen.set(uri.path, description);
    return Buffer.from(description);
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    const [name, task] = partsOf(uri);
    const description = Buffer.from(content).toString();
    for (let tries = 0; tries < TRIES; tries++) {
      const version = await this.#readVersion(name);
      const { description: theirs = "" } = await this.#readRow(uri, version);
      if (theirs !== (this.#seen.get(uri.path) ?? "")) return this.#rejectSave(uri, theirs, description);
      try {
        await this.#connection.change("task.edit", { conversation: name, task, description, expect_version: version });
        this.#seen.set(uri.path, description);
        return;
      } catch (error) {
        if (error instanceof CallError && error.kind === "version_conflict") continue;
        throw vscode.FileSystemError.Unavailable(error instanceof Error ? error.message : String(error));
      }
    }
    throw vscode.FileSystemError.Unavailable("the list keeps changing; nothing was saved, try again");
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

  async #readRow(uri: vscode.Uri, at_version?: number): Promise<Row> {
    const [name, id] = partsOf(uri);
    const list = this.#lists(name);
    const row = at_version === undefined || at_version === list.version ? list.get(id) : undefined;
    if (row) return row;
    try {
      return (await this.#connection.call("task.get", { conversation: name, task: id })).task;
    } catch (error) {
      const isGone = error instanceof CallError && error.kind === "not_found";
      throw isGone ? vscode.FileSystemError.FileNotFound(uri) : vscode.FileSystemError.Unavailable((error as Error).message);
    }
  }

  async #readVersion(name: string): Promise<number> {
    return (await this.#connection.call("conversation.get", { conversation: name })).conversation.version;
  }

  /** Reject the save, and offer to compare both texts or to overwrite the daemon's text. */
  #rejectSave(uri: vscode.Uri, theirs: string, mine: string): never {
    const [name, id] = partsOf(uri);
    const offer = async (): Promise<void> => {
      const message = `The description of #${id} was changed by someone else; yours is not saved.`;
      const choice = await vscode.window.showWarningMessage(message, "Compare", "Overwrite");
      if (!choice) return;
      this.#seen.set(uri.path, theirs);
      if (choice === "Overwrite") return this.writeFile(uri, Buffer.from(mine));
      await vscode.commands.executeCommand("vscode.diff", detailsUri(name, id), uri, `#${id}: theirs and yours`);
    };
    void offer().catch((error: Error) => vscode.window.showErrorMessage(`Punchlist: ${error.message}`));
    throw vscode.FileSystemError.Unavailable(`the description of #${id} was changed by someone else; nothing was saved`);
  }
}

/** The details of a task, the history of a list and its past versions, as text that follows the list. */
export class Pages implements vscode.TextDocumentContentProvider {
  readonly #connection: Connection;
  readonly #lists: Lists;
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;

  constructor(connection: Connection, lists: Lists) {
    this.#connection = connection;
    this.#lists = lists;
  }

  /** Update open documents of changed tasks. */
  update(list: TaskList, ids: Iterable<string>): void {
    const open = new Set(vscode.workspace.textDocuments.filter((document) => document.uri.scheme === READ).map((document) => document.uri.path));
    if (!open.size) return;
    for (const uri of [historyUri(list.name), ...[...ids].map((id) => detailsUri(list.name, id))]) if (open.has(uri.path)) this.#changed.fire(uri);
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const [name, what] = partsOf(uri);
    try {
      if (what === "history") return await this.#readHistory(name);
      const version = /^version-(\d+)$/.exec(what)?.[1];
      return version ? await this.#readPast(name, Number(version)) : await this.#formatTask(name, what);
    } catch (error) {
      return `${(error as Error).message}\n`;
    }
  }

  async #formatTask(name: string, id: string): Promise<string> {
    const row = this.#lists(name).get(id) ?? (await this.#connection.call("task.get", { conversation: name, task: id })).task;
    return formatPage(row);
  }

  async #readPast(name: string, version: number): Promise<string> {
    const { tasks } = await this.#connection.call("task.list", { conversation: name, at_version: version });
    return tasks.map((row: Row) => `${formatLabel(row)}  (${stateOf(row).replace("_", " ")})${row.description ? `\n    ${safe(row.description)}` : ""}\n`).join("");
  }

  async #readHistory(name: string): Promise<string> {
    const events = await this.#readLatest(name);
    const lines = events.reverse().map(({ version, at, actor, event }) => {
      const { type, task, at: _at, ...facts } = event;
      const id = typeof task === "object" ? `#${task.id} ${safe(task.title)}` : task ? `#${task}` : "";
      const rest = typeof task === "object" || !Object.keys(facts).length ? "" : safe(JSON.stringify(facts));
      return [String(version).padStart(6), new Date(at).toLocaleString(), safe(actor), type, id, rest].filter(Boolean).join("  ");
    });
    return `${name}, newest first\n\n${lines.join("\n")}\n`;
  }

  /** Return the last events of a list. Their positions in the log are unknown, so read growing ranges from its end. */
  async #readLatest(name: string): Promise<any[]> {
    const { seq } = await this.#connection.call("daemon.status");
    for (let span = 1000; ; span *= 8) {
      let [after, latest] = [Math.max(0, seq - span), [] as any[]];
      const isWhole = after === 0;
      while (after < seq) {
        const { events, next } = await this.#connection.call("event.read", { conversation: name, after, limit: 1000 });
        latest = [...latest, ...events].slice(-HISTORY_EVENTS);
        if (next <= after) break;
        after = next;
      }
      if (isWhole || latest.length === HISTORY_EVENTS) return latest;
    }
  }
}

/** Register the documents with VS Code. */
export function registerDocuments(descriptions: Descriptions, pages: Pages): vscode.Disposable[] {
  return [
    vscode.workspace.registerFileSystemProvider(EDITED, descriptions, { isCaseSensitive: true }),
    vscode.workspace.registerTextDocumentContentProvider(READ, pages),
  ];
}
