// Punchlist in VS Code: ties together the connection, the current list and its views.

import * as vscode from "vscode";
import { drop, offerCommand, registerActions } from "./actions.ts";
import { BoardTree } from "./board.ts";
import { ACTOR, type Desk, OWNER, showError } from "./desk.ts";
import { Descriptions, Pages, registerDocuments } from "./documents.ts";
import { RowColors, registerMarks } from "./marks.ts";
import { Board, Presence, TaskList, resolve } from "./model.ts";
import { punch, registerMcpServer, startDaemon } from "./punch.ts";
import { Notifier, StatusBar } from "./status.ts";
import { compileFilter, formatPresent, safe } from "./text.ts";
import { Connection } from "./transport.ts";
import { Tree } from "./tree.ts";

/** Why no list is shown: `none` if the folder has no list, `untrusted` if its file names a list not made for it. */
type Reason = "none" | "untrusted" | "away" | "";

const set = (key: string, value: unknown): Thenable<unknown> => vscode.commands.executeCommand("setContext", `punchlist.${key}`, value);

class Window implements Desk {
  readonly connection: Connection;
  readonly board: Board;
  readonly own = new Map<string, number>();
  readonly tree: Tree;
  list: TaskList | null = null;
  presence: Presence | null = null;
  readonly #memory: vscode.Memento;
  readonly #view: vscode.TreeView<string>;
  readonly #status = new StatusBar();
  readonly #notifier = new Notifier(this);
  readonly #colors = new RowColors(this);
  readonly #descriptions: Descriptions;
  readonly #pages: Pages;
  readonly #lists = new Map<string, TaskList>();
  #reason: Reason = "away";
  #file: string | null = null;
  #wasConnected = false;
  #filter = "";

  constructor(context: vscode.ExtensionContext) {
    const { version } = context.extension.packageJSON as { version: string };
    this.connection = new Connection({ client: ACTOR, version, start: startDaemon });
    this.board = new Board(this.connection);
    this.#memory = context.workspaceState;
    this.tree = new Tree(OWNER, (ids, target) => void drop(this, ids, target).catch(showError));
    this.#view = vscode.window.createTreeView("punchlist.tasks", {
      treeDataProvider: this.tree,
      dragAndDropController: this.tree,
      canSelectMany: true,
      manageCheckboxStateManually: true,
      showCollapseAll: true,
    });
    this.#descriptions = new Descriptions(this.connection, (name) => this.#getList(name));
    this.#pages = new Pages(this.connection, (name) => this.#getList(name));
    this.connection.listeners.add({ onConnected: () => void this.#findList(), onAway: () => this.#refreshState() });
    this.#view.onDidChangeCheckboxState((event) => void this.#onTicked(event));
    const files = vscode.workspace.createFileSystemWatcher("**/.punchlist.toml");
    for (const changed of [files.onDidChange, files.onDidCreate, files.onDidDelete]) changed(() => void this.#findList());
    context.subscriptions.push(
      this.#view,
      this.#status.item,
      files,
      vscode.window.createTreeView("punchlist.lists", { treeDataProvider: new BoardTree(this.board) }),
      vscode.workspace.onDidChangeWorkspaceFolders(() => void this.#findList()),
      ...registerActions(this),
      ...registerDocuments(this.#descriptions, this.#pages),
      ...registerMarks(this, this.#colors),
      ...registerMcpServer(version, context.globalStorageUri),
      ...this.#windowCommands(),
      { dispose: () => this.#close() },
    );
    this.board.changed.listen(() => this.#showWaiting());
    this.board.follow();
    this.#refreshState();
  }

  selected(): string[] {
    return this.#view.selection.filter((id) => this.list?.get(id));
  }

  show(name: string): void {
    void this.#memory.update("list", name);
    this.#openList(name, this.list?.name === name ? this.list.root : (vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? null));
    void vscode.commands.executeCommand("punchlist.tasks.focus");
  }

  /** Open the list that the user chose in this window, or else the list of the first folder that has one. */
  async #findList(): Promise<void> {
    try {
      const folders = vscode.workspace.workspaceFolders?.filter((folder) => folder.uri.scheme === "file") ?? [];
      const chosen = this.#memory.get<string>("list");
      let [reason, root]: [Reason, string | null] = ["none", folders[0]?.uri.fsPath ?? null];
      for (const folder of chosen ? [] : folders) {
        const resolved = await resolve(this.connection, folder.uri.fsPath);
        if (resolved.conversation && resolved.allowed) return this.#openList(resolved.conversation, resolved.root);
        if (!resolved.conversation) continue;
        [reason, root, this.#file] = ["untrusted", resolved.root, resolved.file];
        break;
      }
      if (chosen) return this.#openList(chosen, this.list?.name === chosen ? this.list.root : root);
      this.#reason = reason;
      this.#setList(null);
    } catch (error) {
      if (this.connection.connected) showError(error);
    }
  }

  #openList(name: string, root: string | null): void {
    this.#reason = "";
    if (this.list?.name === name && this.list.root === root) return this.#refreshState();
    if (this.list) this.#closeList(this.list);
    this.#closeList(this.#lists.get(name)); // A document may have opened it with another root.
    this.#setList(this.#getList(name, root));
  }

  /** Return a list and follow it. It is the current one, or one whose tasks are open as documents. */
  #getList(name: string, root: string | null = null): TaskList {
    const followed = this.#lists.get(name);
    if (followed) return followed;
    const list = new TaskList(this.connection, name, root);
    this.#lists.set(name, list);
    list.stateChanged.listen(() => {
      if (list === this.list && !list.ready) this.tree.show(list); // If disconnected before the tasks arrived, show none.
      this.#refreshState();
    });
    list.changed.listen((change) => {
      this.#descriptions.update(list, change.before);
      this.#pages.update(list, change.reset ? list.ids() : change.before.keys());
      if (list !== this.list) return;
      this.tree.update(change);
      this.#colors.update(list, change);
      this.#notifier.update(list, change);
      this.#refreshState();
    });
    list.follow();
    return list;
  }

  #closeList(list: TaskList | undefined): void {
    list?.dispose();
    if (list) this.#lists.delete(list.name);
  }

  #setList(list: TaskList | null): void {
    this.list = list;
    this.tree.show(list);
    this.presence?.dispose();
    this.presence = list && new Presence(this.connection, list.name, ACTOR);
    this.presence?.stateChanged.listen(() => this.#refreshState());
    this.presence?.follow();
    this.#refreshState();
  }

  /** Show the state of the connection and of the list in the view and the status bar. */
  #refreshState(): void {
    const { connected, reason } = this.connection;
    const list = this.list;
    const away = connected ? null : reason;
    this.#status.show(list, away);
    const others = formatPresent(this.presence?.others ?? []);
    this.#view.description = list ? [list.name, this.#filter, others && `with ${others}`].filter(Boolean).join(" · ") : undefined;
    const notices = [
      away !== null && list?.ready ? `Away, showing the last known list: ${away}.` : "",
      !list && this.#reason === "untrusted" ? `${safe(this.#file ?? "")} names a list that was not made for this project.` : "",
      list?.problem ? `${safe(list.problem)}.` : "",
      list?.damaged ? `The log of this list is damaged after change ${list.damaged.seq}; you see the list before the damage. Run: punch daemon verify` : "",
    ];
    // VS Code treats each assignment as a change, after which it batches row changes for 200 ms.
    const message = notices.filter(Boolean).join(" ") || undefined;
    if (this.#view.message !== message) this.#view.message = message;
    void set("state", list?.ready ? "ready" : away !== null ? (punch() ? "away" : "missing") : list ? "ready" : this.#reason);
    if (this.#wasConnected !== connected) this.#colors.refresh();
    this.#wasConnected = connected;
  }

  /** Show in the badge how many tasks of all lists wait for a yes. */
  #showWaiting(): void {
    const value = this.board.cards().reduce((sum, card) => sum + (card.waiting ?? 0), 0);
    if (value !== (this.#view.badge?.value ?? 0)) this.#view.badge = value ? { value, tooltip: `${value} waiting for a yes` } : undefined;
  }

  /** Ask for a filter, and show only the tasks that match it. */
  async #askFilter(argument?: unknown): Promise<void> {
    const prompt = "Show only the tasks that match all of these: is:open, is:blocked, is:asks, @owner, p:high, +label, words";
    const text = typeof argument === "string" ? argument : await vscode.window.showInputBox({ prompt, value: this.#filter });
    if (text === undefined) return;
    this.#filter = text.trim();
    this.tree.filter(this.#filter ? compileFilter(this.#filter) : null);
    void set("isFiltered", this.#filter !== "");
    this.#refreshState();
  }

  async #onTicked(event: vscode.TreeCheckboxChangeEvent<string>): Promise<void> {
    const ids = event.items.map(([id]) => id);
    const checked = event.items.filter(([, state]) => state === vscode.TreeItemCheckboxState.Checked).map(([id]) => id);
    const cleared = ids.filter((id) => !checked.includes(id));
    if (checked.length) await vscode.commands.executeCommand("punchlist.done", checked[0], checked);
    if (cleared.length) await vscode.commands.executeCommand("punchlist.reopen", cleared[0], cleared);
    this.tree.redraw(ids); // After a rejection, the checkbox returns to its previous state.
  }

  #windowCommands(): vscode.Disposable[] {
    const register = (name: string, run: (...args: any[]) => unknown): vscode.Disposable => vscode.commands.registerCommand(`punchlist.${name}`, run);
    const hide = (hidden: boolean): void => {
      this.tree.hideFinished(hidden);
      void set("hidesFinished", hidden);
    };
    return [
      register("more", (node: string) => this.tree.showMore(node)),
      register("hideFinished", () => hide(true)),
      register("showFinished", () => hide(false)),
      register("filter", (text: unknown) => this.#askFilter(text)),
      register("clearFilter", () => this.#askFilter("")),
      register("reconnect", () => this.connection.retry()),
      register("projectList", () => {
        void this.#memory.update("list", undefined);
        void this.#findList();
      }),
      register("trust", () => {
        const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
        if (folder) offerCommand(folder, "punch init --trust");
      }),
    ];
  }

  #close(): void {
    for (const list of this.#lists.values()) list.dispose();
    this.presence?.dispose();
    this.board.dispose();
    this.connection.close();
  }
}

/** Entry point for VS Code. Returns the window's state, for other extensions and for tests. */
export function activate(context: vscode.ExtensionContext): Window {
  return new Window(context);
}
