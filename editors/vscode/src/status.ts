// The status bar, and notifications about changes by others.

import * as vscode from "vscode";
import { type Desk, OWNER } from "./desk.ts";
import type { Change, TaskList } from "./model.ts";
import { type Level, findNews } from "./news.ts";
import { escapeLinks } from "./text.ts";
import type { Counts } from "./wire.ts";

/** Shows "website 2/5" at the bottom of the window. */
export class StatusBar {
  readonly item = vscode.window.createStatusBarItem("punchlist.status", vscode.StatusBarAlignment.Left, 0);

  constructor() {
    this.item.name = "Punchlist";
    this.item.command = "punchlist.tasks.focus";
  }

  show(list: TaskList | null, away: string | null): void {
    if (!list) return this.item.hide();
    const isAway = away !== null;
    this.item.text = `$(${isAway ? "debug-disconnect" : "checklist"}) ${list.name} ${list.open}/${list.size}`;
    this.item.tooltip = isAway ? `Punchlist is not connected: ${away}` : `${list.name}: ${list.open} of ${list.size} tasks open`;
    this.item.show();
  }
}

/** Shows notifications about a list, depending on the setting `punchlist.notify`. */
export class Notifier {
  readonly #desk: Desk;
  #counts: Counts = {};

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  update(list: TaskList, change: Change): void {
    const level = vscode.workspace.getConfiguration("punchlist").get<Level>("notify", "mine");
    const [first, ...more] = findNews(list, change, { counts: this.#counts, own: this.#desk.own, owner: OWNER, level });
    this.#counts = list.counts;
    for (const [id, version] of this.#desk.own) if (version <= list.version) this.#desk.own.delete(id);
    if (first) void vscode.window.showInformationMessage(escapeLinks(more.length ? `${first} (and ${more.length} more)` : first));
  }
}
