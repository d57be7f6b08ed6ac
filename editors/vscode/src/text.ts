// Tasks as text. Text from others is escaped before it is shown.

import { departureOf, gateOf, ownerOf } from "../../../client/punchlist_apps/web/page/rows.js";
import { safe, safeBlock } from "../../../client/punchlist_apps/web/page/text.js";
import { type Card, type Note, type Present, type Row, type Status, openCount, wholeCount } from "./wire.ts";

export { gateOf, safe };

/** The displayed state: a pending task with open blockers is blocked. */
export type State = Status | "blocked";
export const stateOf = (row: Row): State => (row.status === "pending" && row.open_blockers?.length ? "blocked" : row.status);
export const isFinished = (row: Row): boolean => row.status === "completed" || row.status === "failed";

/** The icon's name in VS Code, and its color. */
const ICONS: Record<State, [icon: string, color?: string]> = {
  pending: ["circle-large-outline"],
  in_progress: ["play-circle", "charts.blue"],
  paused: ["debug-pause", "charts.yellow"],
  blocked: ["lock"],
  completed: ["pass-filled", "charts.green"],
  failed: ["error", "errorForeground"],
};
/** Return the icon of a state, which may be a newer daemon's state that this version doesn't know. */
export const iconOf = (state: State): [icon: string, color?: string] => ICONS[state] ?? ["question"];

/** Return "#3 Write the parser". */
export const formatLabel = (row: Row): string => `#${row.id} ${safe(row.title)}`;

/** Return the text after the title: priority, owner, blockers, gate, labels, reason and result. */
export function formatDescription(row: Row): string {
  const words: string[] = [];
  if (row.priority && row.priority !== "normal") words.push(`!${row.priority}`);
  if (row.owner) words.push(safe(ownerOf(row)));
  if (row.open_blockers?.length) words.push(`waits for ${row.open_blockers.map((id) => `#${id}`).join(", ")}`);
  if (row.waits_for) words.push(`waits for ${safe(gateOf(row))}`);
  for (const name of row.labels ?? []) words.push(`+${safe(name)}`);
  if (row.status === "failed" && row.fail_reason) words.push(safe(row.fail_reason));
  if (row.status === "completed" && row.result_summary) words.push(safe(row.result_summary));
  return words.join("  ");
}

/** Return a test for a filter such as `is:blocked @ann p:high +web words`, all of whose words must match. */
export function compileFilter(filter: string): (row: Row) => boolean {
  const tests = filter.toLowerCase().split(/\s+/).filter(Boolean).map((word): ((row: Row) => boolean) => {
    const [, sign = "", rest = ""] = /^(is:|p:|[@+#](?=.))?(.*)$/.exec(word) ?? [];
    const states: Record<string, (row: Row) => boolean> = {
      open: (row) => !isFinished(row), ready: (row) => stateOf(row) === "pending", running: (row) => row.status === "in_progress",
      done: (row) => row.status === "completed", asks: (row) => row.waits_for === "yes",
    };
    if (sign === "is:") return states[rest] ?? ((row) => stateOf(row) === rest);
    if (sign === "p:") return (row) => (row.priority ?? "normal").startsWith(rest);
    if (sign === "@") return (row) => (row.owner ?? "").toLowerCase().startsWith(rest);
    if (sign === "+") return (row) => (row.labels ?? []).some((label) => label.toLowerCase().replaceAll(/\s/g, ".").startsWith(rest));
    if (sign === "#") return (row) => row.id === rest;
    return (row) => [row.title, row.description, ...(row.labels ?? [])].join(" ").toLowerCase().includes(word);
  });
  return (row) => tests.every((test) => test(row));
}

const at = (ms: number): string => new Date(ms).toLocaleString();

/** Return the members of a task that are set, with their names. */
function listMembers(row: Row): [name: string, value: string][] {
  const ids = (list: string[]): string => list.map((id) => `#${id}`).join(", ");
  const lines: [name: string, value: string | undefined][] = [
    ["status", stateOf(row).replace("_", " ")],
    ["priority", row.priority],
    ["owner", row.owner && safe(ownerOf(row)) + (row.lease_expires_at && !departureOf(row) ? `, claimed until ${at(row.lease_expires_at)}` : "")],
    ["part of", row.parent ? `#${row.parent}` : undefined],
    ["blocked by", row.blocked_by?.length ? ids(row.blocked_by) : undefined],
    ["waits for", row.open_blockers?.length ? ids(row.open_blockers) : undefined],
    ["done, and", row.waits_for ? `waits for ${safe(gateOf(row))}` : undefined],
    ["labels", row.labels?.map(safe).join(", ")],
    ["due", row.due_day ? safe(row.due_day) : row.due ? at(row.due) : undefined],
    ["result", row.result_summary && safe(row.result_summary)],
    ["failed", row.fail_reason && safe(row.fail_reason)],
    ...(row.links ?? []).map((link): [string, string] => [safe(link.kind), safe(link.to)]),
    ["added", at(row.created_at)],
    ["changed", at(row.updated_at)],
  ];
  return lines.flatMap(([name, value]) => (value ? [[name, value]] : []));
}

const authorOf = (note: Note): string => safe(note.actor) + (note.imported_by ? ` (imported by ${safe(note.imported_by)})` : "");

/** Return a task in full, as plain text with several lines. */
export function formatDetails(row: Row): string {
  const notes = (row.notes ?? []).map((note) => `${at(note.at)} ${authorOf(note)}: ${safeBlock(note.text)}`);
  const shown = listMembers(row).map(([name, value]) => `${name.padEnd(12)}${value}`);
  const blocks = [formatLabel(row), shown.join("\n"), safeBlock(row.description ?? ""), notes.join("\n")];
  return blocks.filter(Boolean).join("\n\n") + "\n";
}

/** Return a task in full, as a Markdown document. */
export function formatPage(row: Row): string {
  const members = listMembers(row).map(([name, value]) => `- ${name}: ${value}`).join("\n");
  const notes = (row.notes ?? []).map((note) => `## Note by ${authorOf(note)}, ${at(note.at)}\n\n${safeBlock(note.text)}`);
  return [`# ${formatLabel(row)}`, members, safeBlock(row.description ?? ""), ...notes].filter(Boolean).join("\n\n") + "\n";
}

/** Return "2 of 5 open  #3 @ann". */
export function formatSummary(card: Card): string {
  const running = (card.running ?? []).map((task) => `#${task.id}${task.owner ? ` ${safe(ownerOf(task))}` : ""}`);
  return [`${openCount(card.counts)} of ${wholeCount(card.counts)} open`, ...running].join("  ");
}

/** Return "claude-code ×2, nvim". */
export const formatPresent = (peers: Present[]): string => peers.map((peer) => safe(peer.actor) + (peer.connections > 1 ? ` ×${peer.connections}` : "")).join(", ");

/** Escape text for a VS Code message, in which `[label](address)` would become a link. */
export const escapeLinks = (text: string): string => safe(text).replaceAll("](", "] (");

/** Escape text for a VS Code label in which `$(name)` would become an icon. */
export const escapeIcons = (text: string): string => safe(text).replaceAll("$(", "$ (");
