// What goes over the wire, as schemas/json/openrpc.json says it; a member that is left out has its default.

export type Status = "pending" | "in_progress" | "paused" | "completed" | "failed";
export type Priority = "low" | "normal" | "high" | "urgent";

export interface Link {
  kind: string;
  to: string;
}

export interface Note {
  at: number;
  actor: string;
  text: string;
  /** Who brought it from elsewhere, where `actor` wrote it. */
  imported_by?: string;
}

/** A task as the view `rows` shows it; times are milliseconds since 1970. */
export interface Row {
  id: string;
  title: string;
  status: Status;
  rank: string;
  version: number;
  created_at: number;
  updated_at: number;
  priority?: Priority;
  description?: string;
  owner?: string;
  /** Where its owner works, in a list that machines share. */
  machine?: string;
  parent?: string | null;
  blocked_by?: string[];
  open_blockers?: string[];
  result_summary?: string;
  fail_reason?: string;
  lease_expires_at?: number | null;
  /** Since when the session of its owner, or its machine, is gone. */
  left_at?: number | null;
  silent_at?: number | null;
  fence?: number | null;
  due?: number | null;
  /** It is due on that day, wherever it is read. */
  due_day?: string | null;
  labels?: string[];
  links?: Link[];
  notes?: Note[];
  /** What it needs before it counts as completed. */
  gate?: { check?: string; yes?: boolean; by?: string } | null;
  /** What it still waits for, completed as it is. */
  waits_for?: "check" | "yes" | null;
}

export type Counts = Partial<Record<Status | "blocked" | "ready", number>>;

export interface Damage {
  seq: number;
  reason: string;
}

export interface RowsPush {
  subscription: string;
  version: number;
  seq: number;
  rows: Row[];
  gone?: string[];
  reset?: boolean;
  more?: boolean;
  counts: Counts;
  damaged?: Damage;
}

/** A list with what is in progress on it: one line of the board. */
export interface Card {
  conversation: string;
  title?: string;
  version: number;
  updated_at: number;
  counts: Counts;
  running?: { id: string; title: string; owner?: string; machine?: string }[];
}

/** Who follows a list, over how many connections. */
export interface Present {
  actor: string;
  connections: number;
}

/** What a directory means. */
export interface Resolved {
  conversation: string | null;
  root: string | null;
  file: string | null;
  exists: boolean;
  allowed: boolean;
}

/** Why a call failed: `kind` is one of schemas/json/errors.json, or `connection`. */
export class CallError extends Error {
  readonly kind: string;
  readonly facts: Record<string, unknown>;

  constructor(kind: string, message: string, facts: Record<string, unknown> = {}) {
    super(message);
    this.kind = kind;
    this.facts = facts;
  }
}

/** How many tasks are neither completed nor failed. */
export const openCount = (counts: Counts): number => (counts.pending ?? 0) + (counts.in_progress ?? 0) + (counts.paused ?? 0);

/** How many tasks there are. */
export const wholeCount = (counts: Counts): number => openCount(counts) + (counts.completed ?? 0) + (counts.failed ?? 0);
