// What this window works with: the connection, the list that it shows, and who we are.

import * as os from "node:os";
import * as vscode from "vscode";
import type { Board, TaskList } from "./model.ts";
import { plain } from "./text.ts";
import type { Connection } from "./transport.ts";
import { CallError, type Row } from "./wire.ts";

/** Who the history says made a change: the name at the command line, so that undo counts both. */
export const ACTOR = process.env.PUNCHLIST_ACTOR || os.userInfo().username;

/** Whose claims are ours. */
export const OWNER = `vscode/${os.userInfo().username}`;

export interface Desk {
  readonly connection: Connection;
  readonly board: Board;
  /** The list that is shown. */
  list: TaskList | null;
  /** Show a list, whatever the folder means. */
  show(name: string): void;
  /** The ids of the rows that are selected. */
  selected(): string[];
  /** Tasks that this window changed last, with the version that this made. */
  readonly own: Map<string, number>;
}

/** Tell a person that something failed. */
export function complain(error: unknown): void {
  const said = error instanceof Error ? error.message : String(error);
  void vscode.window.showErrorMessage(`Punchlist: ${plain(said)}`);
}

/** Change a list. What needs a person's yes is asked for; undefined where they say no. */
export async function change(desk: Desk, method: string, params: object): Promise<any> {
  const list = desk.list;
  if (!list) throw new Error("open a list first");
  if (!desk.connection.connected) throw new Error(`the daemon is away (${desk.connection.reason}); nothing was changed`);
  const call = async (more: object): Promise<any> => {
    const result = await desk.connection.change(method, { conversation: list.name, ...params, ...more });
    for (const row of [result.task, ...(result.tasks ?? [])] as (Row | undefined)[]) if (row) desk.own.set(row.id, row.version);
    return result;
  };
  try {
    return await call({});
  } catch (error) {
    if (!(error instanceof CallError) || error.kind !== "confirmation_required") throw error;
    const { summary, token } = error.facts as { summary: string; token: string };
    return (await confirmed(summary, "Yes")) ? call({ confirm: token }) : undefined;
  }
}

/** Ask before something is done. */
export async function confirmed(question: string, yes: string, detail?: string): Promise<boolean> {
  const options = detail ? { modal: true, detail: plain(detail) } : { modal: true };
  return (await vscode.window.showWarningMessage(plain(question), options, yes)) === yes;
}
