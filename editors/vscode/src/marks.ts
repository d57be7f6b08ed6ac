// Marks in code and on rows: which files have open tasks, where a document names a place, and what a TODO can become.

import * as path from "node:path";
import * as vscode from "vscode";
import { todoIn } from "./actions.ts";
import type { Desk } from "./desk.ts";
import type { Change, TaskList } from "./model.ts";
import { mentions, placesOf } from "./places.ts";
import { isFinished, label } from "./text.ts";
import type { Row } from "./wire.ts";

/** Colours of rows, and a number on each file that open tasks name. */
export class Decorations implements vscode.FileDecorationProvider {
  readonly #desk: Desk;
  readonly #changed = new vscode.EventEmitter<vscode.Uri[] | undefined>();
  readonly onDidChangeFileDecorations = this.#changed.event;
  /** File → ids of the open tasks that name it. */
  readonly #tasks = new Map<string, Set<string>>();
  /** Id → the files that it names. */
  readonly #files = new Map<string, string[]>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** The ids of the open tasks that name a file. */
  tasksOf(file: string): string[] {
    return [...(this.#tasks.get(file) ?? [])];
  }

  /** Everything may look different: another list, or the daemon went or came. */
  refresh(): void {
    this.#changed.fire(undefined);
  }

  update(list: TaskList, change: Change): void {
    if (change.reset) {
      this.#tasks.clear();
      this.#files.clear();
      for (const id of list.ids()) this.#index(list, id);
      return this.refresh();
    }
    const touched = new Set<string>();
    for (const id of change.before.keys()) {
      for (const file of this.#files.get(id) ?? []) touched.add(file);
      for (const file of this.#index(list, id)) touched.add(file);
    }
    if (touched.size) this.#changed.fire([...touched].map((file) => vscode.Uri.file(file)));
  }

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    if (uri.scheme === "punchlist-row") return this.#row(path.basename(uri.path));
    const ids = uri.scheme === "file" ? this.tasksOf(uri.fsPath) : [];
    const rows = ids.flatMap((id) => this.#desk.list?.get(id) ?? []);
    if (!rows.length) return undefined;
    return { badge: rows.length > 9 ? "9+" : String(rows.length), tooltip: rows.map(label).join("\n"), propagate: false };
  }

  #row(id: string): vscode.FileDecoration | undefined {
    const row = this.#desk.list?.get(id);
    if (!this.#desk.connection.connected || (row && row.status === "completed")) return { color: new vscode.ThemeColor("disabledForeground") };
    return row?.status === "failed" ? { color: new vscode.ThemeColor("errorForeground") } : undefined;
  }

  #index(list: TaskList, id: string): string[] {
    for (const file of this.#files.get(id) ?? []) {
      const ids = this.#tasks.get(file);
      ids?.delete(id);
      if (!ids?.size) this.#tasks.delete(file);
    }
    const row = list.get(id);
    const files = row && !isFinished(row) ? [...new Set(filesOf(row, list))] : [];
    if (files.length) this.#files.set(id, files);
    else this.#files.delete(id);
    for (const file of files) this.#tasks.set(file, (this.#tasks.get(file) ?? new Set()).add(id));
    return files;
  }
}

const filesOf = (row: Row, list: TaskList): string[] => placesOf(row, list.root).map((place) => place.file);

/** Places that a task's documents name, as links. */
class PlaceLinks implements vscode.DocumentLinkProvider {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    return mentions(document.getText(), this.#desk.list?.root ?? null).map(({ file, line, start, end }) => {
      const range = new vscode.Range(document.positionAt(start), document.positionAt(end));
      return new vscode.DocumentLink(range, vscode.Uri.file(file).with({ fragment: `L${line}` }));
    });
  }
}

/** "Add to punchlist" on a comment that says TODO. */
class Todos implements vscode.CodeActionProvider {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  provideCodeActions(document: vscode.TextDocument, range: vscode.Range): vscode.CodeAction[] {
    if (!this.#desk.list || !todoIn(document.lineAt(range.start.line).text)) return [];
    const action = new vscode.CodeAction(`Add to ${this.#desk.list.name}`, vscode.CodeActionKind.QuickFix);
    action.command = { command: "punchlist.addHere", title: action.title };
    return [action];
  }
}

/** Have VS Code show these marks. */
export function registerMarks(desk: Desk, decorations: Decorations): vscode.Disposable[] {
  return [
    vscode.window.registerFileDecorationProvider(decorations),
    vscode.languages.registerDocumentLinkProvider([{ scheme: "punchlist" }, { scheme: "punchlist-read" }], new PlaceLinks(desk)),
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, new Todos(desk), { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
  ];
}
