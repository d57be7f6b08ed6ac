// The view of all lists, with open tasks, tasks in progress and their owners.

import * as vscode from "vscode";
import type { Board } from "./model.ts";
import { formatSummary, safe } from "./text.ts";
import { openCount } from "./wire.ts";

export class BoardTree implements vscode.TreeDataProvider<string> {
  readonly #board: Board;
  readonly #changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.#changed.event;

  constructor(board: Board) {
    this.#board = board;
    board.changed.listen(() => this.#changed.fire(undefined));
  }

  getChildren(name?: string): string[] {
    return name ? [] : this.#board.cards().map((card) => card.conversation);
  }

  getTreeItem(name: string): vscode.TreeItem {
    const card = this.#board.get(name);
    const item = new vscode.TreeItem(name);
    if (!card) return item;
    item.id = name;
    item.description = formatSummary(card);
    item.tooltip = [name, safe(card.title ?? ""), formatSummary(card)].filter(Boolean).join("\n");
    item.iconPath = new vscode.ThemeIcon(card.running?.length ? "play-circle" : openCount(card.counts) ? "checklist" : "pass-filled");
    item.contextValue = "list";
    item.command = { command: "punchlist.openList", title: "Open", arguments: [name] };
    return item;
  }
}
