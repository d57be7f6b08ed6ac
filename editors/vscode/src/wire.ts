// Types of the protocol, from schemas/json/openrpc.json. An omitted member has its default value.

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
  /** The actor who imported the note, if `actor` wrote it in another program. */
  imported_by?: string;
}

/** A task in the view `rows`. Times are in milliseconds since 1970. */
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
  /** Machine of the owner, in a shared list. */
  machine?: string;
  parent?: string | null;
  blocked_by?: string[];
  open_blockers?: string[];
  result_summary?: string;
  fail_reason?: string;
  lease_expires_at?: number | null;
  /** When the owner's session left, and when the owner's machine was last seen. */
  left_at?: number | null;
  silent_at?: number | null;
  fence?: number | null;
  due?: number | null;
  /** Due day, in every time zone. */
  due_day?: string | null;
  labels?: string[];
  links?: Link[];
  notes?: Note[];
  /** Check or approval that the task needs before it counts as completed. */
  gate?: { check?: string; yes?: boolean; by?: string } | null;
  /** Check or yes that a completed task still waits for. */
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

/** A list with its tasks in progress, which is one line of the board. */
export interface Card {
  conversation: string;
  title?: string;
  version: number;
  updated_at: number;
  counts: Counts;
  /** Number of tasks that wait for a person's yes. */
  waiting?: number;
  running?: { id: string; title: string; owner?: string; machine?: string }[];
}

/** An actor that follows a list, and the number of its connections. */
export interface Present {
  actor: string;
  connections: number;
}

/** The list that a directory maps to. */
export interface Resolved {
  conversation: string | null;
  root: string | null;
  file: string | null;
  exists: boolean;
  allowed: boolean;
}

/** The error of a failed call. `kind` is one of those in schemas/json/errors.json, or `connection`. */
export class CallError extends Error {
  readonly kind: string;
  readonly facts: Record<string, unknown>;

  constructor(kind: string, message: string, facts: Record<string, unknown> = {}) {
    super(message);
    this.kind = kind;
    this.facts = facts;
  }
}

/** Count the tasks that are neither completed nor failed. */
export const openCount = (counts: Counts): number => (counts.pending ?? 0) + (counts.in_progress ?? 0) + (counts.paused ?? 0);

/** Count all tasks. */
export const wholeCount = (counts: Counts): number => openCount(counts) + (counts.completed ?? 0) + (counts.failed ?? 0);
