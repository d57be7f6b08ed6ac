// The list as a tree. A change redraws changed rows, and the groups in which tasks were added, removed or moved.

import * as vscode from "vscode";
import type { Change, TaskList } from "./model.ts";
import { formatDescription, formatDetails, formatLabel, iconOf, isFinished, stateOf } from "./text.ts";
import type { Row } from "./wire.ts";

const MIME = "application/vnd.code.tree.punchlist.tasks";
const MORE = "more:";

/** Number of a group's tasks that are shown at first, and added by each later request. */
export const PAGE = 1000;

interface Drawn {
  row: Row;
  hasChildren: boolean;
  item: vscode.TreeItem;
}

/** Return the URI that VS Code uses to request a row's color. */
export const rowUri = (list: TaskList, id: string): vscode.Uri => vscode.Uri.from({ scheme: "punchlist-row", path: `/${list.name}/${id}` });

export class Tree implements vscode.TreeDataProvider<string>, vscode.TreeDragAndDropController<string> {
  readonly dragMimeTypes = [MIME];
  readonly dropMimeTypes = [MIME];
  /** Number of rows drawn so far. */
  drawn = 0;
  list: TaskList | null = null;
  readonly #owner: string;
  readonly #onDrop: (ids: string[], target: string | undefined) => void;
  readonly #changed = new vscode.EventEmitter<string[] | undefined>();
  readonly onDidChangeTreeData = this.#changed.event;
  #items = new Map<string, Drawn>();
  #limits = new Map<string, number>();
  #hidesFinished = false;
  #filter: ((row: Row) => boolean) | null = null;

  constructor(owner: string, onDrop: (ids: string[], target: string | undefined) => void) {
    this.#owner = owner;
    this.#onDrop = onDrop;
  }

  /**
   * Show another list, or none. A list that is still loading is shown only when its tasks arrive. Otherwise VS Code would
   * delay that second change by 200 ms, and show rows of the old list until then.
   */
  show(list: TaskList | null): void {
    this.list = list;
    this.#items.clear();
    this.#limits.clear();
    if (!list || list.ready || !list.connection.connected) this.#changed.fire(undefined);
  }

  /** Hide or show finished tasks. */
  hideFinished(hidden: boolean): void {
    this.#hidesFinished = hidden;
    this.#changed.fire(undefined);
  }

  /** Show only tasks that match, and those above them; null shows all. */
  filter(matches: ((row: Row) => boolean) | null): void {
    this.#filter = matches;
    this.#changed.fire(undefined);
  }

  /** Redraw after a push. */
  update(change: Change): void {
    const list = this.list;
    if (!list) return;
    const ids = new Set<string>();
    let whole = change.reset || change.groups.has(undefined);
    for (const [id, before] of change.before) {
      const row = list.get(id);
      if (!row) this.#items.delete(id);
      else if (before) ids.add(id);
      whole ||= (this.#hidesFinished || this.#filter !== null) && (!row || !before || this.#fits(row) !== this.#fits(before));
    }
    for (const parent of change.groups) {
      if (!parent) continue;
      // A row that gets its first child or loses its last one has a new id in VS Code, so redraw its whole group.
      const isOther = this.#items.get(parent)?.hasChildren !== this.#group(parent).length > 0;
      const above = isOther ? list.parent(parent) : parent;
      if (above) ids.add(above);
      else whole = true;
    }
    if (whole) this.#changed.fire(undefined);
    else if (ids.size) this.#changed.fire([...ids]);
  }

  /** Redraw rows that VS Code shows in the wrong state, such as a checked box after a rejected change. */
  redraw(ids: string[]): void {
    for (const id of ids) this.#items.delete(id);
    this.#changed.fire(ids);
  }

  /** Show the next tasks of a group. */
  showMore(node: string): void {
    const parent = node.slice(MORE.length);
    this.#limits.set(parent, (this.#limits.get(parent) ?? PAGE) + PAGE);
    this.#changed.fire(parent ? [parent] : undefined);
  }

  getChildren(id?: string): string[] {
    const group = this.#group(id);
    const most = this.#limits.get(id ?? "") ?? PAGE;
    const ids = group.slice(0, most).map((row) => row.id);
    return group.length > most ? [...ids, MORE + (id ?? "")] : ids;
  }

  getParent(id: string): string | undefined {
    return this.list?.parent(id);
  }

  getTreeItem(id: string): vscode.TreeItem {
    if (id.startsWith(MORE)) return this.#drawMore(id);
    const row = this.list?.get(id);
    if (!row) return new vscode.TreeItem(`#${id}`); // The task was deleted between two requests by VS Code.
    const hasChildren = this.#group(id).length > 0;
    const drawn = this.#items.get(id);
    if (drawn?.row === row && drawn.hasChildren === hasChildren) return drawn.item;
    const item = this.#draw(row, hasChildren);
    this.#items.set(id, { row, hasChildren, item });
    return item;
  }

  resolveTreeItem(item: vscode.TreeItem, id: string): vscode.TreeItem {
    const row = this.list?.get(id);
    if (row) item.tooltip = new vscode.MarkdownString().appendText(formatDetails(row));
    return item;
  }

  handleDrag(ids: readonly string[], data: vscode.DataTransfer): void {
    data.set(MIME, new vscode.DataTransferItem(ids));
  }

  handleDrop(target: string | undefined, data: vscode.DataTransfer): void {
    const ids: string[] = data.get(MIME)?.value ?? [];
    this.#onDrop(ids.filter((id) => id !== target && !id.startsWith(MORE)), target?.startsWith(MORE) ? undefined : target);
  }

  #group(id?: string): Row[] {
    const rows = this.list?.children(id) ?? [];
    return this.#hidesFinished || this.#filter ? rows.filter((row) => this.#fits(row) || this.#group(row.id).length > 0) : rows;
  }

  #fits(row: Row): boolean {
    return !(this.#hidesFinished && isFinished(row)) && (this.#filter?.(row) ?? true);
  }

  #drawMore(node: string): vscode.TreeItem {
    const parent = node.slice(MORE.length) || undefined;
    const hidden = this.#group(parent).length - (this.#limits.get(parent ?? "") ?? PAGE);
    const item = new vscode.TreeItem(`${hidden.toLocaleString()} more…`);
    item.iconPath = new vscode.ThemeIcon("ellipsis");
    item.command = { command: "punchlist.more", title: "Show more", arguments: [node] };
    return item;
  }

  #draw(row: Row, hasChildren: boolean): vscode.TreeItem {
    this.drawn++;
    const state = stateOf(row);
    const [icon, color] = iconOf(state);
    const { Checked, Unchecked } = vscode.TreeItemCheckboxState;
    const { Expanded, None } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(formatLabel(row), hasChildren ? Expanded : None);
    item.id = `${this.list?.name}/${row.id}${hasChildren ? "/" : ""}`; // With its old id, VS Code would keep a former leaf collapsed.
    item.description = formatDescription(row);
    item.iconPath = new vscode.ThemeIcon(icon, color ? new vscode.ThemeColor(color) : undefined);
    item.resourceUri = this.list ? rowUri(this.list, row.id) : undefined;
    item.checkboxState = { state: row.status === "completed" ? Checked : Unchecked, tooltip: row.status === "completed" ? "Reopen" : "Done" };
    item.contextValue = ["task", row.waits_for === "yes" ? "waiting" : state, row.owner ? (row.owner === this.#owner ? "mine" : "taken") : "free"].join(" ");
    item.accessibilityInformation = { label: `${formatLabel(row)}, ${state.replace("_", " ")}, ${formatDescription(row)}` };
    item.command = { command: "punchlist.details", title: "Show details", arguments: [row.id] };
    return item;
  }
}
