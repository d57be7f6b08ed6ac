// Colors of rows, links to places in documents, and code actions on TODO comments.

import * as path from "node:path";
import * as vscode from "vscode";
import type { Desk } from "./desk.ts";
import type { Change, TaskList } from "./model.ts";
import { findPlaces, findTodo } from "./places.ts";
import { rowUri } from "./tree.ts";

/** Colors of rows. All rows are dimmed while disconnected. */
export class RowColors implements vscode.FileDecorationProvider {
  readonly #desk: Desk;
  readonly #changed = new vscode.EventEmitter<vscode.Uri[] | undefined>();
  readonly onDidChangeFileDecorations = this.#changed.event;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  /** Refresh all rows after the connection's state has changed. */
  refresh(): void {
    this.#changed.fire(undefined);
  }

  /** Refresh rows whose status was changed by a push. */
  update(list: TaskList, { before }: Change): void {
    const ids = [...before].flatMap(([id, old]) => (old && old.status !== list.get(id)?.status ? [id] : []));
    if (ids.length) this.#changed.fire(ids.map((id) => rowUri(list, id)));
  }

  provideFileDecoration(uri: vscode.Uri): vscode.FileDecoration | undefined {
    if (uri.scheme !== "punchlist-row") return undefined;
    const status = this.#desk.list?.get(path.basename(uri.path))?.status;
    if (!this.#desk.connection.connected || status === "completed") return { color: new vscode.ThemeColor("disabledForeground") };
    return status === "failed" ? { color: new vscode.ThemeColor("errorForeground") } : undefined;
  }
}

/** Links to places in code, in the documents of tasks. */
class PlaceLinks implements vscode.DocumentLinkProvider {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    return findPlaces(document.getText(), this.#desk.list?.root ?? null).map(({ file, line, start, end }) => {
      const range = new vscode.Range(document.positionAt(start), document.positionAt(end));
      return new vscode.DocumentLink(range, vscode.Uri.file(file).with({ fragment: `L${line}` }));
    });
  }
}

/** Links on the versions in the current list's history, which take the change back after a question. */
class HistoryLinks implements vscode.DocumentLinkProvider {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    if (document.uri.path !== `/${this.#desk.list?.name}/history.txt`) return [];
    return [...document.getText().matchAll(/^ *(\d+)  (.+?)  (.+?)  /gm)].map(({ index, 0: line, 1: version = "", 2: when, 3: actor }) => {
      const from = index + line.indexOf(version);
      const parameters = encodeURIComponent(JSON.stringify([version, `, by ${actor} at ${when}`]));
      const range = new vscode.Range(document.positionAt(from), document.positionAt(from + version.length));
      const link = new vscode.DocumentLink(range, vscode.Uri.parse(`command:punchlist.undoVersion?${parameters}`));
      link.tooltip = "Take back this change…";
      return link;
    });
  }
}

/** The code action "Add to LIST" on a TODO comment. */
class Todos implements vscode.CodeActionProvider {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  provideCodeActions(document: vscode.TextDocument, range: vscode.Range): vscode.CodeAction[] {
    if (!this.#desk.list || !findTodo(document.lineAt(range.start.line).text)) return [];
    const action = new vscode.CodeAction(`Add to ${this.#desk.list.name}`, vscode.CodeActionKind.QuickFix);
    action.command = { command: "punchlist.addHere", title: action.title };
    return [action];
  }
}

/** Register the providers with VS Code. */
export function registerMarks(desk: Desk, colors: RowColors): vscode.Disposable[] {
  return [
    vscode.window.registerFileDecorationProvider(colors),
    vscode.languages.registerDocumentLinkProvider([{ scheme: "punchlist" }, { scheme: "punchlist-read" }], new PlaceLinks(desk)),
    vscode.languages.registerDocumentLinkProvider({ scheme: "punchlist-read", pattern: "**/history.txt" }, new HistoryLinks(desk)),
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, new Todos(desk), { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
  ];
}
