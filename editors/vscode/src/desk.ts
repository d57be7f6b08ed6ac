// The state of a window: its connection, its list, and the user's names.

import * as os from "node:os";
import * as vscode from "vscode";
import type { Board, TaskList } from "./model.ts";
import { escapeLinks } from "./text.ts";
import type { Connection } from "./transport.ts";
import { CallError, type Row } from "./wire.ts";

/** Actor of the user's changes in the history, as on the command line, so that undo includes changes made there. */
export const ACTOR = process.env.PUNCHLIST_ACTOR || os.userInfo().username;

/** Owner of the user's claims. */
export const OWNER = `vscode/${os.userInfo().username}`;

export interface Desk {
  readonly connection: Connection;
  readonly board: Board;
  /** The current list. */
  list: TaskList | null;
  /** Show a list instead of the folder's list. */
  show(name: string): void;
  /** Return the ids of the selected rows. */
  selected(): string[];
  /** Ids of tasks changed by this window → their versions after the change. */
  readonly own: Map<string, number>;
}

/** Show an error. */
export function showError(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  void vscode.window.showErrorMessage(`Punchlist: ${escapeLinks(message)}`);
}

/** Change the current list. Ask the user if the daemon requires confirmation, and return undefined after a no. */
export async function change(desk: Desk, method: string, params: object): Promise<any> {
  const list = desk.list;
  if (!list) throw new Error("open a list first");
  if (!desk.connection.connected) throw new Error(`no connection to the daemon (${desk.connection.reason}); nothing was changed`);
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
    return (await confirm(summary, "Yes")) ? call({ confirm: token }) : undefined;
  }
}

/** Ask the user for confirmation. */
export async function confirm(question: string, yes: string, detail?: string): Promise<boolean> {
  const options = detail ? { modal: true, detail: escapeLinks(detail) } : { modal: true };
  return (await vscode.window.showWarningMessage(escapeLinks(question), options, yes)) === yes;
}
