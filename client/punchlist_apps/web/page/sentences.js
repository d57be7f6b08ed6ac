// What an event says, in words for people: a verb, what it adds, and the state whose color it has.

import { dayText, formatDuration } from "./text.js";

const hash = (id) => `#${id}`;

/** Words for the members that an edit sets. The values themselves are compared next to them. */
const MEMBERS = {
  title: () => "reworded",
  description: () => "described",
  active_form: (doing) => (doing ? `now: ${doing}` : "no longer says what runs"),
  owner: (owner) => (owner ? `handed to ${owner}` : "belongs to nobody now"),
  priority: (priority) => `${priority} priority`,
  parent: (parent) => (parent ? `part of ${hash(parent)}` : "part of no other task"),
  due: (due, event) => (due ? `due ${dayText(event, "due")}` : "no longer due"),
  not_before: (at, event) => (at ? `put off until ${dayText(event, "not_before")}` : "no longer put off"),
  labels: (labels) => (labels.length ? `labels ${labels.join(", ")}` : "no labels"),
  links: () => "changed its links",
  estimate_ms: (ms) => (ms ? `estimated at ${formatDuration(ms)}` : "no estimate"),
  gate: (gate) => (gate ? "needs an answer when done" : "needs no answer when done"),
  metadata: () => "changed its metadata",
};

/** Return the members of a task that an edit sets, without the days that belong to a time. */
export const membersOf = (event) => Object.keys(MEMBERS).filter((name) => name in event);

const sayEdit = (event) => [membersOf(event).map((name) => MEMBERS[name](event[name], event)).join(", ") || "edited"];

function sayCompleted({ from, result_summary: result, waits_for: gate }) {
  if (gate) return [gate === "yes" ? "asks for a yes" : "finished, and waits for its check", result, "asks"];
  if (from !== "completed") return ["finished", result, "completed"];
  return result === undefined ? ["approved", "", "completed"] : ["changed its result", result];
}

const STATES = {
  completed: sayCompleted,
  failed: ({ fail_reason: reason, attempts }) => [`failed${attempts > 1 ? `, try ${attempts}` : ""}`, reason, "failed"],
  in_progress: ({ from }) => [["completed", "failed"].includes(from) ? "began it again" : "began", "", "in_progress"],
  paused: () => ["paused it", "", "paused"],
  pending: ({ from, fail_reason: reason }) =>
    from === "completed" && reason
      ? ["rejected it", reason, "failed"]
      : [{ in_progress: "gave it back", paused: "resumed it" }[from] ?? "reopened it"],
};

const RELEASES = {
  expired: "lost it: its claim ran out",
  disconnected: "left, so it is free",
  left: "left, so it is free",
  restarted: "lost it when the daemon restarted",
};

function sayConfigured({ title, attached, detached, settings }) {
  const words = [];
  if (title !== undefined) words.push(title ? `named the list “${title}”` : "removed the list's name");
  if (attached) words.push("a session joined");
  if (detached) words.push("a session left");
  for (const [key, value] of Object.entries(settings ?? {})) words.push(`${key.replaceAll("_", " ")} ${value}`);
  return [words.join(", ") || "changed the list's metadata"];
}

const SENTENCES = {
  ConversationOpened: () => ["began the list"],
  ConversationConfigured: sayConfigured,
  TaskAdded: () => ["added", "", "added"],
  TaskEdited: sayEdit,
  NoteAdded: ({ author, text }) => [author ? `noted for ${author}` : "noted", text],
  NoteRemoved: () => ["removed a note"],
  TaskWoken: () => ["is no longer put off"],
  TaskMoved: ({ before }) => [before ? `put it before ${hash(before)}` : "put it at the end"],
  // A completed task is paused while it waits at its gate.
  StatusChanged: (event) => STATES[event.waits_for ? "completed" : event.to](event),
  Deleted: () => ["deleted it", "", "failed"],
  DependencyAdded: ({ blocker }) => [`waits for ${hash(blocker)}`],
  DependencyRemoved: ({ blocker }) => [`no longer waits for ${hash(blocker)}`],
  Claimed: () => ["took it", "", "in_progress"],
  Released: ({ reason }) => [RELEASES[reason] ?? "gave it back"],
  ListCleared: () => ["removed all tasks", "", "failed"],
  MessageAppended: ({ content }) => ["wrote", typeof content === "string" ? content : JSON.stringify(content ?? "")],
  MessageRetracted: () => ["withdrew a message"],
  EventLost: () => ["lost to damage", "", "failed"],
};

/** Return what an event says: `verb`, `more`, which may be empty, and `tone`, the state whose color the verb has. */
export function say(event) {
  const [verb, more = "", tone = ""] = (SENTENCES[event.type] ?? (() => ["changed it in a way new to this page"]))(event);
  return { verb, more: more ?? "", tone };
}

/** Return the id of the task that an event is about; null for the list. */
export const taskOf = (event) => event.task?.id ?? event.task ?? null;

/** The kinds of changes: the name of a filter, and the events that belong to it. */
export const KINDS = {
  Added: (event) => ["TaskAdded", "Deleted", "ListCleared"].includes(event.type),
  States: (event) => ["StatusChanged", "Claimed", "Released", "TaskWoken"].includes(event.type),
  Text: (event) => event.type === "TaskEdited" && membersOf(event).some((name) => name !== "owner"),
  Order: (event) => ["TaskMoved", "DependencyAdded", "DependencyRemoved"].includes(event.type),
  Notes: (event) => ["NoteAdded", "NoteRemoved", "MessageAppended", "MessageRetracted"].includes(event.type),
  People: (event) => event.owner !== undefined || event.attached !== undefined || event.detached !== undefined,
};
