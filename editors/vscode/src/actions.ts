// Actions on tasks and lists, in tables that all commands are registered from.

import * as path from "node:path";
import * as vscode from "vscode";
import { belowFirst } from "../../../client/punchlist_apps/web/page/rows.js";
import { ACTOR, type Desk, OWNER, change, showError, confirm } from "./desk.ts";
import { descriptionUri, detailsUri, historyUri, pastUri } from "./documents.ts";
import type { TaskList } from "./model.ts";
import { type Place, findTodo, formatPlace, placesOf } from "./places.ts";
import { escapeIcons, escapeLinks, formatLabel, formatSummary, gateOf, safe, stateOf } from "./text.ts";
import { CallError, type Priority, type Row, type Status } from "./wire.ts";

const CLAIM_MS = 2 * 60 * 60 * 1000;
const PRIORITIES: Priority[] = ["low", "normal", "high", "urgent"];
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

/** An action on one task of a list. `argument` is text passed by a calling program. */
type OnTask = (desk: Desk, row: Row, list: TaskList, argument?: string) => Promise<unknown>;

/** A call that changes a task, in the form of `list.apply`. */
type Edit = { method: string; task: string } & Record<string, unknown>;
type OnTasks = { prompt?: string; edit: (row: Row, text?: string) => Edit | undefined };

/** Make one change or several. Either all of them are made or none. */
async function apply(desk: Desk, edits: Edit[]): Promise<void> {
  const [first] = edits;
  if (!first) return;
  const { method, ...params } = first;
  await (edits.length === 1 ? change(desk, method, params) : change(desk, "list.apply", { changes: edits }));
}

async function ask(prompt: string, argument: string | undefined, value?: string): Promise<string | undefined> {
  const text = argument ?? (await vscode.window.showInputBox(value === undefined ? { prompt } : { prompt, value }));
  return text?.trim() ? text : undefined;
}

function setStatus(status: Status, member?: "result_summary" | "fail_reason", prompt?: string): OnTasks {
  const edit = (row: Row, text?: string): Edit => {
    if (row.waits_for === "yes") throw new Error(`#${row.id} waits for ${gateOf(row)}: approve it, or reject it with a reason`);
    // With another owner's fence, the call would finish that owner's task.
    const fence = row.owner === OWNER && row.fence ? { fence: row.fence } : {};
    return { method: "task.set_status", task: row.id, status, ...fence, ...(member && text ? { [member]: text } : {}) };
  };
  return prompt ? { prompt, edit } : { edit };
}

/** Approve or reject a task that waits for a yes. The daemon rejects the call if the task has changed since then. */
function answer(accept: boolean): OnTask {
  return async (desk, row, _list, argument) => {
    if (row.waits_for !== "yes") throw new Error(`#${row.id} does not wait for a yes`);
    const text = accept ? argument : await ask(`Why not? #${row.id} will be pending again with this reason`, argument);
    if (accept || text) await change(desk, "task.approve", { task: row.id, accept, version: row.version, ...(text ? { text } : {}) });
  };
}

function reprioritize(by: number): OnTasks {
  return {
    edit: (row) => {
      const priority = PRIORITIES[PRIORITIES.indexOf(row.priority ?? "normal") + by];
      return priority && { method: "task.edit", task: row.id, priority };
    },
  };
}

function step(by: number): OnTask {
  return async (desk, row, list) => {
    const group = list.children(list.parent(row.id));
    const other = group[group.findIndex((sibling) => sibling.id === row.id) + by];
    if (other) await change(desk, "task.move", { task: row.id, [by < 0 ? "before" : "after"]: other.id });
  };
}

async function edit(desk: Desk, row: Row, list: TaskList, argument?: string): Promise<void> {
  const title = await ask(`Title of #${row.id}`, argument, safe(row.title));
  if (title === undefined || title === safe(row.title)) return; // Don't store the escapes of an unchanged title.
  const now = list.get(row.id);
  const isOther = now && now.version !== row.version && now.title !== row.title;
  if (isOther && !(await confirm(`#${row.id} was changed by someone else: ${now.title}`, "Use mine"))) return;
  await change(desk, "task.edit", { task: row.id, title });
}

async function claim(desk: Desk, row: Row): Promise<void> {
  const result = await change(desk, "task.claim", { task: row.id, owner: OWNER, lease_ms: CLAIM_MS, keep: true });
  if (result && !result.task) throw new Error(`#${row.id} can't be claimed now; for the reason see "Why Can't It Start"`);
}

async function why(desk: Desk, row: Row, list: TaskList): Promise<void> {
  const { reasons = [] } = await desk.connection.call("task.explain", { conversation: list.name, task: row.id });
  const lines = reasons.map(({ kind, by, title, owner }: { kind: string; by: string; title: string; owner?: string }) =>
    `${kind === "reserved" ? `reserved for ${owner}` : kind.replace("_", " ")}: #${by} ${title}`);
  void vscode.window.showInformationMessage(escapeLinks(lines.join("; ") || `nothing blocks #${row.id}`));
}

async function blockers(desk: Desk, row: Row, list: TaskList): Promise<void> {
  const before = new Set(row.blocked_by ?? []);
  const others = list.ids().flatMap((id) => list.get(id) ?? []).filter((other) => other.id !== row.id);
  const items = others.map((other) => ({ label: escapeIcons(formatLabel(other)), id: other.id, picked: before.has(other.id) }));
  const chosen = await vscode.window.showQuickPick(items, { canPickMany: true, placeHolder: `What does #${row.id} wait for?` });
  if (!chosen) return;
  const after = new Set(chosen.map((item) => item.id));
  const added = [...after].filter((id) => !before.has(id));
  const removed = [...before].filter((id) => !after.has(id));
  if (added.length + removed.length) await change(desk, "task.edit", { task: row.id, add_blocked_by: added, remove_blocked_by: removed });
}

async function jump(place: Place): Promise<void> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(place.file));
  const at = new vscode.Position(Math.min(place.line, document.lineCount) - 1, 0);
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(at, at) });
}

async function openPlace(_desk: Desk, row: Row, list: TaskList): Promise<void> {
  const existing = await Promise.all(placesOf(row, list.root).map(async (place) => {
    const isFile = await vscode.workspace.fs.stat(vscode.Uri.file(place.file)).then((stat) => (stat.type & vscode.FileType.File) !== 0, () => false);
    return isFile ? [place] : [];
  }));
  const places = existing.flat();
  if (!places[0]) throw new Error(`#${row.id} names no existing file; write path:line into its title or description`);
  const items = places.map((place) => ({ label: escapeIcons(formatPlace(place.file, place.line, list.root)), place }));
  const chosen = items.length > 1 ? await vscode.window.showQuickPick(items, { placeHolder: "Where to?" }) : items[0];
  if (chosen) await jump(chosen.place);
}

const open = (uri: vscode.Uri): Thenable<unknown> => vscode.window.showTextDocument(uri, { preview: true, preserveFocus: true });

/** Actions on all selected tasks. They change either all of them or none. */
export const TASK_ACTIONS: Record<string, OnTasks> = {
  start: setStatus("in_progress"),
  done: setStatus("completed", "result_summary"),
  doneWith: setStatus("completed", "result_summary", "What is the result?"),
  fail: setStatus("failed", "fail_reason", "Why did it fail?"),
  pause: setStatus("paused"),
  reopen: setStatus("pending"),
  raise: reprioritize(1),
  lower: reprioritize(-1),
};

/** Actions on one task. */
export const ONE_TASK_ACTIONS: Record<string, OnTask> = {
  claim,
  release: (desk, row) => change(desk, "task.release", { task: row.id, owner: OWNER, ...(row.fence ? { fence: row.fence } : {}) }),
  approve: answer(true),
  reject: answer(false),
  moveUp: step(-1),
  moveDown: step(1),
  edit,
  editDescription: async (_desk, row, list) => open(descriptionUri(list.name, row.id)),
  details: async (_desk, row, list) => open(detailsUri(list.name, row.id)),
  openPlace,
  why,
  blockers,
  note: async (desk, row, _list, argument) => {
    const text = await ask(`Note on #${row.id}`, argument);
    if (text) await change(desk, "task.note", { task: row.id, text });
  },
  addPart: async (desk, row, _list, argument) => {
    const title = await ask(`New part of #${row.id}`, argument);
    if (title) await change(desk, "task.add", { title, parent: row.id });
  },
  addAfter: async (desk, row, list, argument) => {
    const title = await ask(`New task after #${row.id}`, argument);
    const parent = list.parent(row.id);
    if (title) await change(desk, "task.add", { title, after: row.id, ...(parent ? { parent } : {}) });
  },
};

/** Delete tasks after a single question, either all or none. */
export async function remove(desk: Desk, rows: Row[]): Promise<void> {
  const first = rows[0];
  if (!first) return;
  const question = rows.length === 1 ? `Delete ${formatLabel(first)}?` : `Delete ${rows.length} tasks?`;
  if (await confirm(question, "Delete", rows.length === 1 ? undefined : rows.map(formatLabel).join("\n"))) {
    await change(desk, "task.delete", { tasks: rows.map((row) => row.id) });
  }
}

/** Move tasks before another one, below the same parent, or to the end of the list. */
export async function drop(desk: Desk, ids: string[], target: string | undefined): Promise<void> {
  const list = desk.list;
  const parent = target ? list?.parent(target) : undefined;
  const place = target ? { before: target } : { to_end: true };
  const edits = ids.flatMap((task): Edit[] => [
    ...(list?.parent(task) === parent ? [] : [{ method: "task.edit", task, parent: parent ?? null }]),
    { method: "task.move", task, ...place },
  ]);
  await apply(desk, edits);
}

/** Return the actor of a chat's changes from the id of its thread, as in `punchlist/base/actors.py`. */
export function chatActor(thread: string): string {
  const name = thread.split("chat-").slice(1).join("chat-") || thread;
  return `chat/${name.slice(0, name.length === 36 && name[8] === "-" ? 8 : 123)}`;
}

/** Return `list.undo` parameters for this person's changes, including those of chats about the list. */
async function findOwnChanges(desk: Desk, list: TaskList): Promise<object> {
  const { conversations } = await desk.connection.call("conversation.list", { kind: "chat", limit: 200 });
  const threads = conversations.filter((thread: any) => thread.metadata?.list === list.name && !thread.user);
  return { of: ACTOR, count: 1, also: threads.map((thread: any) => chatActor(thread.conversation)) };
}

const UNDO = { whole: true, claims: true };

/** Return the lines of an undo's preview, and its call. */
async function previewUndo(desk: Desk, list: TaskList, which: object): Promise<{ lines: string[]; call: number }> {
  const { undone, calls } = await desk.connection.call("list.undo", { conversation: list.name, ...UNDO, ...which, preview: true });
  return { lines: undone, call: calls?.[0] };
}

/** Ask with a preview, then undo exactly the call shown in the preview. Return the undone lines, or undefined after a no. */
async function confirmUndo(desk: Desk, call: number, lines: string[], question: string, verb: string): Promise<string[] | undefined> {
  for (let refusal = ""; await confirm(question, verb, [...lines, refusal].join("\n").trim()); ) {
    try {
      return (await change(desk, "list.undo", { ...UNDO, call }))?.undone;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      refusal = `\n${error.message}`;
    }
  }
  return undefined;
}

/** Undo or redo the user's own last change, and offer the opposite. Ask first only if a result or a claim would be lost. */
async function undoOwn(desk: Desk, list: TaskList, isRedo: boolean): Promise<void> {
  const verb = isRedo ? "Redo" : "Undo";
  const { lines, call } = await previewUndo(desk, list, { ...(await findOwnChanges(desk, list)), ...(isRedo ? { redo: true } : {}) });
  if (!lines.length) return void vscode.window.showInformationMessage(`You have nothing to ${verb.toLowerCase()} here; for others' changes see the history.`);
  const isLoss = lines.some((line) => /; lost: |: released by /.test(line));
  const question = isRedo ? "Redo your last undo?" : "Undo your last change?";
  const undone = isLoss ? await confirmUndo(desk, call, lines, question, verb) : (await change(desk, "list.undo", { ...UNDO, call }))?.undone;
  if (!undone) return;
  const opposite = isRedo ? "Undo" : "Redo";
  // The message stays until it is closed, so don't wait for its button.
  void vscode.window.showInformationMessage(escapeLinks(`${isRedo ? "Redone" : "Undone"}: ${undone.join("; ").slice(0, 300)}`), opposite).then((chosen) => {
    if (chosen) void undoOwn(desk, list, !isRedo).catch(showError);
  });
}

/** Undo any actor's change by its version, after a preview. `by` says in the question who made it and when. */
async function undoVersion(desk: Desk, list: TaskList, argument?: string, by = ""): Promise<void> {
  const version = await ask(`Undo the change that made which version? (1 to ${list.version}; see the history)`, argument);
  if (version === undefined) return;
  const { lines, call } = await previewUndo(desk, list, { call: Number(version) });
  if (!lines.length) return void vscode.window.showInformationMessage("This change has nothing to undo.");
  await confirmUndo(desk, call, lines, `Take back the change that made version ${version}${by}?`, "Take Back");
}

async function compare(_desk: Desk, list: TaskList, argument?: string): Promise<void> {
  const answer = await ask(`Compare with which version? (1 to ${list.version})`, argument, String(Math.max(1, list.version - 1)));
  if (answer === undefined) return;
  const version = Number(answer);
  if (!(Number.isInteger(version) && version >= 1 && version <= list.version)) throw new Error(`${list.name} has the versions 1 to ${list.version}`);
  const title = `${list.name}: version ${version} and ${list.version}`;
  await vscode.commands.executeCommand("vscode.diff", pastUri(list.name, version), pastUri(list.name, list.version), title);
}

/** Actions on the list. */
export const LIST_ACTIONS: Record<string, (desk: Desk, list: TaskList, argument?: string, more?: string) => Promise<unknown>> = {
  add: async (desk, _list, argument) => {
    const title = await ask("New task", argument);
    if (title) await change(desk, "task.add", { title });
  },
  addHere,
  undo: (desk, list) => undoOwn(desk, list, false),
  redo: (desk, list) => undoOwn(desk, list, true),
  undoVersion,
  history: async (_desk, list) => open(historyUri(list.name)),
  compare,
};

async function addHere(desk: Desk, list: TaskList): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.uri.scheme !== "file") throw new Error("first open the file that the task is about");
  const line = editor.document.lineAt(editor.selection.active.line);
  const suggestion = findTodo(line.text) ?? (editor.selection.isEmpty || !editor.selection.isSingleLine ? "" : editor.document.getText(editor.selection));
  const title = await ask("New task", undefined, suggestion.slice(0, 500));
  if (!title) return;
  const to = formatPlace(editor.document.uri.fsPath, line.lineNumber + 1, list.root);
  await change(desk, "task.add", { title, links: [{ kind: "path", to }] });
}

/** Let the user choose a list, or name a new one. */
export async function pickList(desk: Desk): Promise<void> {
  const lists = desk.board.cards().map((card) => ({ label: card.conversation, description: escapeIcons(formatSummary(card)), isNew: false }));
  const chosen = await vscode.window.showQuickPick([...lists, { label: "$(add) Another name…", description: "", isNew: true }], { placeHolder: "Which list?" });
  if (!chosen) return;
  const validateInput = (name: string): string | undefined => (NAME.test(name) ? undefined : "1 to 128 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit");
  const name = chosen.isNew ? await vscode.window.showInputBox({ prompt: "Name of the list, which is created with its first task", validateInput }) : chosen.label;
  if (name && NAME.test(name)) desk.show(name);
}

/** Return the tasks for a command: its arguments, or else the selection, or else one that the user chooses. */
export async function chooseTasks(desk: Desk, list: TaskList, id: unknown, all: unknown): Promise<Row[]> {
  const ids = Array.isArray(all) && all.length ? all : typeof id === "string" ? [id] : desk.selected();
  const rows = ids.flatMap((id) => list.get(String(id)) ?? []);
  if (typeof id === "string" && !rows.length) throw new Error(`${list.name} has no task #${id}`);
  if (rows.length) return rows;
  const items = list.ids().flatMap((other) => list.get(other) ?? []).map((row) => ({ label: escapeIcons(formatLabel(row)), description: stateOf(row).replace("_", " "), row }));
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: "Which task?" });
  return chosen ? [chosen.row] : [];
}

/** Type a command into a terminal, for the user to run. */
export function offerCommand(directory: string, command: string): void {
  const terminal = vscode.window.createTerminal({ name: path.basename(directory), cwd: directory });
  terminal.show();
  terminal.sendText(command, false);
}

/** Register all actions as commands. Errors are shown to the user. */
export function registerActions(desk: Desk): vscode.Disposable[] {
  const register = (name: string, run: (...args: any[]) => Promise<unknown>): vscode.Disposable =>
    vscode.commands.registerCommand(`punchlist.${name}`, (...args) => run(...args).catch(showError));
  const listOf = (): TaskList => {
    if (!desk.list) throw new Error('no list is open; open one with "Punchlist: Open List…"');
    return desk.list;
  };
  // A tree passes the row and the selection. A calling program passes an id and text.
  const asText = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const onTasks = ({ prompt, edit }: OnTasks) => async (id: unknown, more: unknown) => {
    const rows = await chooseTasks(desk, listOf(), id, more);
    const text = prompt && rows.length ? await ask(prompt, asText(more)) : asText(more);
    if (!prompt || text !== undefined) await apply(desk, belowFirst(rows).flatMap((row: Row) => edit(row, text) ?? []));
  };
  const onTask = (run: OnTask) => async (id: unknown, more: unknown) => {
    const list = listOf();
    const [row] = await chooseTasks(desk, list, id, undefined);
    if (row) await run(desk, row, list, asText(more));
  };
  return [
    ...Object.entries(TASK_ACTIONS).map(([name, run]) => register(name, onTasks(run))),
    ...Object.entries(ONE_TASK_ACTIONS).map(([name, run]) => register(name, onTask(run))),
    ...Object.entries(LIST_ACTIONS).map(([name, run]) => register(name, async (argument: unknown, more: unknown) => run(desk, listOf(), asText(argument), asText(more)))),
    register("delete", async (id: unknown, all: unknown) => remove(desk, await chooseTasks(desk, listOf(), id, all))),
    register("openList", async (name: unknown) => (typeof name === "string" ? desk.show(name) : pickList(desk))),
  ];
}
