// What a person can do with tasks and lists: one table, from which all commands are made.

import * as path from "node:path";
import * as vscode from "vscode";
import { belowFirst } from "../../../client/punchlist_apps/web/page/rows.js";
import { ACTOR, type Desk, OWNER, change, complain, confirmed } from "./desk.ts";
import { descriptionUri, detailsUri, historyUri, pastUri } from "./documents.ts";
import type { TaskList } from "./model.ts";
import { type Place, named, placesOf, todoIn } from "./places.ts";
import { gateOf, label, plain, safe, stateOf, summary, withoutIcons } from "./text.ts";
import { CallError, type Priority, type Row, type Status } from "./wire.ts";

const CLAIM_MS = 2 * 60 * 60 * 1000;
const PRIORITIES: Priority[] = ["low", "normal", "high", "urgent"];
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;

/** Does something to one task of a list; what it is given is the text that a caller brought. */
type OnTask = (desk: Desk, row: Row, list: TaskList, given?: string) => Promise<unknown>;

/** A call that changes a task, as `list.apply` takes several of them; undefined where there is nothing to change. */
type Edit = { method: string; task: string } & Record<string, unknown>;
type OnTasks = { prompt?: string; edit: (row: Row, said?: string) => Edit | undefined };

/** Make one change or several, all or none. */
async function apply(desk: Desk, edits: Edit[]): Promise<void> {
  const [first] = edits;
  if (!first) return;
  const { method, ...params } = first;
  await (edits.length === 1 ? change(desk, method, params) : change(desk, "list.apply", { changes: edits }));
}

async function ask(prompt: string, given: string | undefined, value?: string): Promise<string | undefined> {
  const said = given ?? (await vscode.window.showInputBox(value === undefined ? { prompt } : { prompt, value }));
  return said?.trim() ? said : undefined;
}

function setStatus(status: Status, member?: "result_summary" | "fail_reason", prompt?: string): OnTasks {
  const edit = (row: Row, said?: string): Edit => {
    if (row.waits_for === "yes") throw new Error(`#${row.id} waits for ${gateOf(row)}: approve it, or reject it with a reason`);
    // Our own claim is named by its number; whose it is otherwise, the daemon decides.
    const fence = row.owner === OWNER && row.fence ? { fence: row.fence } : {};
    return { method: "task.set_status", task: row.id, status, ...fence, ...(member && said ? { [member]: said } : {}) };
  };
  return prompt ? { prompt, edit } : { edit };
}

/** Answer a task that waits for a yes, as it was when the person looked at it. */
function answer(accept: boolean): OnTask {
  return async (desk, row, _list, given) => {
    if (row.waits_for !== "yes") throw new Error(`#${row.id} does not wait for a yes`);
    const text = accept ? given : await ask(`Why not? #${row.id} is open again with this reason`, given);
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
    const other = group[group.findIndex((one) => one.id === row.id) + by];
    if (other) await change(desk, "task.move", { task: row.id, [by < 0 ? "before" : "after"]: other.id });
  };
}

async function edit(desk: Desk, row: Row, list: TaskList, given?: string): Promise<void> {
  const title = await ask(`Title of #${row.id}`, given, safe(row.title));
  if (title === undefined || title === safe(row.title)) return; // one with escapes is kept as it was
  const now = list.get(row.id);
  const isOther = now && now.version !== row.version && now.title !== row.title;
  if (isOther && !(await confirmed(`#${row.id} was changed meanwhile: ${now.title}`, "Use mine"))) return;
  await change(desk, "task.edit", { task: row.id, title });
}

async function claim(desk: Desk, row: Row): Promise<void> {
  const result = await change(desk, "task.claim", { task: row.id, owner: OWNER, lease_ms: CLAIM_MS, keep: true });
  if (result && !result.task) throw new Error(`#${row.id} can't be claimed now; "Why Can't It Start" says why`);
}

async function why(desk: Desk, row: Row, list: TaskList): Promise<void> {
  const { reasons = [] } = await desk.connection.call("task.explain", { conversation: list.name, task: row.id });
  const lines = reasons.map((one: { kind: string; by: string; title: string; owner?: string }) =>
    `${one.kind === "reserved" ? `reserved for ${one.owner}` : one.kind.replace("_", " ")}: #${one.by} ${one.title}`);
  void vscode.window.showInformationMessage(plain(lines.join("; ") || `nothing holds #${row.id}`));
}

async function blockers(desk: Desk, row: Row, list: TaskList): Promise<void> {
  const before = new Set(row.blocked_by ?? []);
  const others = list.ids().flatMap((id) => list.get(id) ?? []).filter((one) => one.id !== row.id);
  const items = others.map((one) => ({ label: withoutIcons(label(one)), id: one.id, picked: before.has(one.id) }));
  const chosen = await vscode.window.showQuickPick(items, { canPickMany: true, placeHolder: `What does #${row.id} wait for?` });
  if (!chosen) return;
  const after = new Set(chosen.map((one) => one.id));
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
  const there = await Promise.all(placesOf(row, list.root).map(async (place) => {
    const isFile = await vscode.workspace.fs.stat(vscode.Uri.file(place.file)).then((found) => (found.type & vscode.FileType.File) !== 0, () => false);
    return isFile ? [place] : [];
  }));
  const places = there.flat();
  if (!places[0]) throw new Error(`#${row.id} names no file that is there; write path:line into its title or description`);
  const items = places.map((place) => ({ label: withoutIcons(named(place.file, place.line, list.root)), place }));
  const chosen = items.length > 1 ? await vscode.window.showQuickPick(items, { placeHolder: "Where to?" }) : items[0];
  if (chosen) await jump(chosen.place);
}

const open = (uri: vscode.Uri): Thenable<unknown> => vscode.window.showTextDocument(uri, { preview: true, preserveFocus: true });

/** What is done to the tasks that are selected, to all or to none. */
export const TASK_ACTIONS: Record<string, OnTasks> = {
  start: setStatus("in_progress"),
  done: setStatus("completed", "result_summary"),
  doneWith: setStatus("completed", "result_summary", "What came of it?"),
  fail: setStatus("failed", "fail_reason", "Why did it fail?"),
  pause: setStatus("paused"),
  reopen: setStatus("pending"),
  raise: reprioritize(1),
  lower: reprioritize(-1),
};

/** What is done to one task. */
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
  note: async (desk, row, _list, given) => {
    const text = await ask(`Note on #${row.id}`, given);
    if (text) await change(desk, "task.note", { task: row.id, text });
  },
  addPart: async (desk, row, _list, given) => {
    const title = await ask(`New part of #${row.id}`, given);
    if (title) await change(desk, "task.add", { title, parent: row.id });
  },
  addAfter: async (desk, row, list, given) => {
    const title = await ask(`New task behind #${row.id}`, given);
    const parent = list.parent(row.id);
    if (title) await change(desk, "task.add", { title, after: row.id, ...(parent ? { parent } : {}) });
  },
};

/** Delete the tasks that are selected, after one question, all or none. */
export async function remove(desk: Desk, rows: Row[]): Promise<void> {
  const first = rows[0];
  if (!first) return;
  const question = rows.length === 1 ? `Delete ${label(first)}?` : `Delete ${rows.length} tasks?`;
  if (await confirmed(question, "Delete", rows.length === 1 ? undefined : rows.map(label).join("\n"))) {
    await change(desk, "task.delete", { tasks: rows.map((row) => row.id) });
  }
}

/** Move tasks in front of another one, below its parent; to the end where there is none. */
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

/** The actor of a chat's changes, by the list that holds its thread; as `punchlist/base/actors.py` has it. */
export function chatActor(thread: string): string {
  const name = thread.split("chat-").slice(1).join("chat-") || thread;
  return `chat/${name.slice(0, name.length === 36 && name[8] === "-" ? 8 : 123)}`;
}

/** Our own changes, as parameters of `list.undo`: this person's, here and in chats about the list. */
async function mine(desk: Desk, list: TaskList): Promise<object> {
  const { conversations } = await desk.connection.call("conversation.list", { kind: "chat", limit: 200 });
  const own = conversations.filter((one: any) => one.metadata?.list === list.name && !one.user);
  return { of: ACTOR, count: 1, also: own.map((one: any) => chatActor(one.conversation)) };
}

/** Ask with a preview, then undo the call that it named: other changes of the list don't matter. */
async function takeBack(desk: Desk, list: TaskList, which: object, question: string, verb: string): Promise<void> {
  const how = { whole: true, claims: true };
  const preview = await desk.connection.call("list.undo", { conversation: list.name, ...how, ...which, preview: true });
  if (!preview.undone.length) return void vscode.window.showInformationMessage(`You have nothing to ${verb.toLowerCase()} here; the history shows the changes of others.`);
  const [call] = preview.calls;
  for (let refusal = ""; await confirmed(question, verb, [...preview.undone, refusal].join("\n").trim()); ) {
    try {
      return await change(desk, "list.undo", { ...how, call });
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      refusal = `\n${error.message}`;
    }
  }
}

/** Undo our own last change, or whoever's change made the version that is given. */
async function undo(desk: Desk, list: TaskList, given?: string): Promise<void> {
  if (given !== undefined) return takeBack(desk, list, { call: Number(given) }, `Undo the change that made version ${given}?`, "Undo");
  await takeBack(desk, list, await mine(desk, list), "Undo your last change?", "Undo");
}

async function redo(desk: Desk, list: TaskList): Promise<void> {
  await takeBack(desk, list, { ...(await mine(desk, list)), redo: true }, "Redo what you undid?", "Redo");
}

async function undoVersion(desk: Desk, list: TaskList, given?: string): Promise<void> {
  const version = await ask(`Undo the change that made which version? (1 to ${list.version}; the history shows them)`, given);
  if (version !== undefined) await undo(desk, list, version);
}

async function compare(_desk: Desk, list: TaskList, given?: string): Promise<void> {
  const said = await ask(`Compare with which version? (1 to ${list.version})`, given, String(Math.max(1, list.version - 1)));
  if (said === undefined) return;
  const version = Number(said);
  if (!(Number.isInteger(version) && version >= 1 && version <= list.version)) throw new Error(`${list.name} has the versions 1 to ${list.version}`);
  const title = `${list.name}: version ${version} and ${list.version}`;
  await vscode.commands.executeCommand("vscode.diff", pastUri(list.name, version), pastUri(list.name, list.version), title);
}

/** What is done to the list as a whole. */
export const LIST_ACTIONS: Record<string, (desk: Desk, list: TaskList, given?: string) => Promise<unknown>> = {
  add: async (desk, _list, given) => {
    const title = await ask("New task", given);
    if (title) await change(desk, "task.add", { title });
  },
  addHere,
  undo,
  redo,
  undoVersion,
  history: async (_desk, list) => open(historyUri(list.name)),
  compare,
};

async function addHere(desk: Desk, list: TaskList): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.uri.scheme !== "file") throw new Error("open the file that the task is about first");
  const line = editor.document.lineAt(editor.selection.active.line);
  const offered = todoIn(line.text) ?? (editor.selection.isEmpty || !editor.selection.isSingleLine ? "" : editor.document.getText(editor.selection));
  const title = await ask("New task", undefined, offered.slice(0, 500));
  if (!title) return;
  const to = named(editor.document.uri.fsPath, line.lineNumber + 1, list.root);
  await change(desk, "task.add", { title, links: [{ kind: "path", to }] });
}

/** Let a person choose one of all lists, or name a new one. */
export async function pickList(desk: Desk): Promise<void> {
  const lists = desk.board.cards().map((card) => ({ label: card.conversation, description: withoutIcons(summary(card)), isNew: false }));
  const chosen = await vscode.window.showQuickPick([...lists, { label: "$(add) Another name…", description: "", isNew: true }], { placeHolder: "Which list?" });
  if (!chosen) return;
  const validateInput = (said: string): string | undefined => (NAME.test(said) ? undefined : "1 to 128 of A-Z a-z 0-9 . _ : -, beginning with a letter or digit");
  const name = chosen.isNew ? await vscode.window.showInputBox({ prompt: "The list's name; it begins with its first task", validateInput }) : chosen.label;
  if (name && NAME.test(name)) desk.show(name);
}

/** The tasks that a command is about: those it was given, else those selected, else one that the person chooses. */
export async function chosenTasks(desk: Desk, list: TaskList, given: unknown, all: unknown): Promise<Row[]> {
  const ids = Array.isArray(all) && all.length ? all : typeof given === "string" ? [given] : desk.selected();
  const rows = ids.flatMap((id) => list.get(String(id)) ?? []);
  if (typeof given === "string" && !rows.length) throw new Error(`${list.name} has no task #${given}`);
  if (rows.length) return rows;
  const items = list.ids().flatMap((id) => list.get(id) ?? []).map((row) => ({ label: withoutIcons(label(row)), description: stateOf(row).replace("_", " "), row }));
  const chosen = await vscode.window.showQuickPick(items, { placeHolder: "Which task?" });
  return chosen ? [chosen.row] : [];
}

/** Type a command into a terminal for the person, who sends it off. */
export function offerCommand(directory: string, command: string): void {
  const terminal = vscode.window.createTerminal({ name: path.basename(directory), cwd: directory });
  terminal.show();
  terminal.sendText(command, false);
}

/** All commands of the table, in VS Code's names; each says what went wrong. */
export function registerActions(desk: Desk): vscode.Disposable[] {
  const register = (name: string, run: (...given: any[]) => Promise<unknown>): vscode.Disposable =>
    vscode.commands.registerCommand(`punchlist.${name}`, (...given) => run(...given).catch(complain));
  const listOf = (): TaskList => {
    if (!desk.list) throw new Error('no list is open; "Punchlist: Open List…" opens one');
    return desk.list;
  };
  // A tree passes the row and all that are selected; a caller passes an id and a text.
  const said = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const onTasks = ({ prompt, edit }: OnTasks) => async (id: unknown, more: unknown) => {
    const rows = await chosenTasks(desk, listOf(), id, more);
    const text = prompt && rows.length ? await ask(prompt, said(more)) : said(more);
    if (!prompt || text !== undefined) await apply(desk, belowFirst(rows).flatMap((row: Row) => edit(row, text) ?? []));
  };
  const onTask = (run: OnTask) => async (id: unknown, more: unknown) => {
    const list = listOf();
    const [row] = await chosenTasks(desk, list, id, undefined);
    if (row) await run(desk, row, list, said(more));
  };
  return [
    ...Object.entries(TASK_ACTIONS).map(([name, run]) => register(name, onTasks(run))),
    ...Object.entries(ONE_TASK_ACTIONS).map(([name, run]) => register(name, onTask(run))),
    ...Object.entries(LIST_ACTIONS).map(([name, run]) => register(name, async (given: unknown) => run(desk, listOf(), said(given)))),
    register("delete", async (id: unknown, all: unknown) => remove(desk, await chosenTasks(desk, listOf(), id, all))),
    register("openList", async (name: unknown) => (typeof name === "string" ? desk.show(name) : pickList(desk))),
  ];
}
