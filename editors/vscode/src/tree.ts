// The list as a tree: rows that look different are drawn anew, and groups in which a task came, went or moved.

import * as vscode from "vscode";
import type { Change, TaskList } from "./model.ts";
import { description, details, iconOf, isFinished, label, stateOf } from "./text.ts";
import type { Row } from "./wire.ts";

const MIME = "application/vnd.code.tree.punchlist.tasks";
const MORE = "more:";

/** How many tasks of one group are shown at once; a row asks for the next ones. */
export const PAGE = 1000;

interface Drawn {
  row: Row;
  parts: boolean;
  item: vscode.TreeItem;
}

/** What each row's colour is looked up by. */
export const rowUri = (list: TaskList, id: string): vscode.Uri => vscode.Uri.from({ scheme: "punchlist-row", path: `/${list.name}/${id}` });

export class Tree implements vscode.TreeDataProvider<string>, vscode.TreeDragAndDropController<string> {
  readonly dragMimeTypes = [MIME];
  readonly dropMimeTypes = [MIME];
  /** How many rows were drawn so far. */
  drawn = 0;
  list: TaskList | null = null;
  readonly #owner: string;
  readonly #dropped: (ids: string[], target: string | undefined) => void;
  readonly #changed = new vscode.EventEmitter<string[] | undefined>();
  readonly onDidChangeTreeData = this.#changed.event;
  #items = new Map<string, Drawn>();
  #shown = new Map<string, number>();
  #hidesFinished = false;

  constructor(owner: string, dropped: (ids: string[], target: string | undefined) => void) {
    this.#owner = owner;
    this.#dropped = dropped;
  }

  /**
   * Show another list, or none. One whose tasks are on their way is shown when they come: VS Code would gather a second
   * change for 200 ms, and until then the rows of the old list are no tasks of the new one.
   */
  show(list: TaskList | null): void {
    this.list = list;
    this.#items.clear();
    this.#shown.clear();
    if (!list || list.ready || !list.connection.connected) this.#changed.fire(undefined);
  }

  /** Leave finished tasks out, or show them. */
  hideFinished(hidden: boolean): void {
    this.#hidesFinished = hidden;
    this.#changed.fire(undefined);
  }

  /** Show what a push changed. */
  update(change: Change): void {
    const list = this.list;
    if (!list) return;
    const ids = new Set<string>();
    let whole = change.reset || change.groups.has(undefined);
    for (const [id, before] of change.before) {
      const row = list.get(id);
      if (!row) this.#items.delete(id);
      else if (before) ids.add(id);
      whole ||= this.#hidesFinished && (!row || !before || isFinished(row) !== isFinished(before));
    }
    for (const parent of change.groups) {
      if (!parent) continue;
      // A row that gets its first part or loses its last one is another one to VS Code: its whole group is asked for.
      const isOther = this.#items.get(parent)?.parts !== this.#group(parent).length > 0;
      const above = isOther ? list.parent(parent) : parent;
      if (above) ids.add(above);
      else whole = true;
    }
    if (whole) this.#changed.fire(undefined);
    else if (ids.size) this.#changed.fire([...ids]);
  }

  /** Draw rows anew that VS Code shows otherwise than they are, such as a box that was ticked in vain. */
  redraw(ids: string[]): void {
    for (const id of ids) this.#items.delete(id);
    this.#changed.fire(ids);
  }

  /** Show the next tasks of a group. */
  showMore(node: string): void {
    const parent = node.slice(MORE.length);
    this.#shown.set(parent, (this.#shown.get(parent) ?? PAGE) + PAGE);
    this.#changed.fire(parent ? [parent] : undefined);
  }

  getChildren(id?: string): string[] {
    const group = this.#group(id);
    const most = this.#shown.get(id ?? "") ?? PAGE;
    const ids = group.slice(0, most).map((row) => row.id);
    return group.length > most ? [...ids, MORE + (id ?? "")] : ids;
  }

  getParent(id: string): string | undefined {
    return this.list?.parent(id);
  }

  getTreeItem(id: string): vscode.TreeItem {
    if (id.startsWith(MORE)) return this.#more(id);
    const row = this.list?.get(id);
    if (!row) return new vscode.TreeItem(`#${id}`); // it went between two questions of VS Code
    const parts = this.#group(id).length > 0;
    const known = this.#items.get(id);
    if (known?.row === row && known.parts === parts) return known.item;
    const item = this.#draw(row, parts);
    this.#items.set(id, { row, parts, item });
    return item;
  }

  resolveTreeItem(item: vscode.TreeItem, id: string): vscode.TreeItem {
    const row = this.list?.get(id);
    if (row) item.tooltip = new vscode.MarkdownString().appendText(details(row));
    return item;
  }

  handleDrag(ids: readonly string[], data: vscode.DataTransfer): void {
    data.set(MIME, new vscode.DataTransferItem(ids));
  }

  handleDrop(target: string | undefined, data: vscode.DataTransfer): void {
    const ids: string[] = data.get(MIME)?.value ?? [];
    this.#dropped(ids.filter((id) => id !== target && !id.startsWith(MORE)), target?.startsWith(MORE) ? undefined : target);
  }

  #group(id?: string): Row[] {
    const rows = this.list?.children(id) ?? [];
    return this.#hidesFinished ? rows.filter((row) => !isFinished(row) || this.#group(row.id).length > 0) : rows;
  }

  #more(node: string): vscode.TreeItem {
    const parent = node.slice(MORE.length) || undefined;
    const hidden = this.#group(parent).length - (this.#shown.get(parent ?? "") ?? PAGE);
    const item = new vscode.TreeItem(`${hidden.toLocaleString()} more…`);
    item.iconPath = new vscode.ThemeIcon("ellipsis");
    item.command = { command: "punchlist.more", title: "Show more", arguments: [node] };
    return item;
  }

  #draw(row: Row, parts: boolean): vscode.TreeItem {
    this.drawn++;
    const state = stateOf(row);
    const [icon, color] = iconOf(state);
    const { Checked, Unchecked } = vscode.TreeItemCheckboxState;
    const { Expanded, None } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(label(row), parts ? Expanded : None);
    item.id = `${this.list?.name}/${row.id}${parts ? "/" : ""}`; // VS Code keeps a leaf closed under its old id
    item.description = description(row);
    item.iconPath = new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);
    item.resourceUri = this.list ? rowUri(this.list, row.id) : undefined;
    item.checkboxState = { state: row.status === "completed" ? Checked : Unchecked, tooltip: row.status === "completed" ? "Reopen" : "Done" };
    item.contextValue = ["task", row.waits_for === "yes" ? "waiting" : state, row.owner ? (row.owner === this.#owner ? "mine" : "taken") : "free"].join(" ");
    item.accessibilityInformation = { label: `${label(row)}, ${state.replace("_", " ")}, ${description(row)}` };
    item.command = { command: "punchlist.details", title: "Show details", arguments: [row.id] };
    return item;
  }
}
