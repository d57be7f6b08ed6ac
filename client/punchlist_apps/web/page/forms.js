// Forms: add and edit a task with all its members, begin a list, write a note.

import { nameOfTask } from "./commands.js";
import { Problem, call } from "./link.js";
import { CONVERTERS, TIMES, formatWhen, parseWhen } from "./members.js";
import { API, ask, currentTask, go, listPath, place, taskPath, visibleRows } from "./model.js";
import { showDone } from "./undo.js";
import { safe } from "./text.js";
import { PRIORITIES } from "./words.js";

const parseIds = (text) => [...new Set((text ?? "").match(/\d+/g) ?? [])];

/** Return the labels or owners that tasks of the list have, which a field offers. */
const offer = (read) => () => [...new Set([...visibleRows.value.tasks.values()].flatMap(read))].filter(Boolean).sort();

const TITLE = { name: "title", label: "Title", required: true };
const DESCRIPTION = { name: "description", label: "Description", kind: "long" };
const MEMBERS = [
  { name: "labels", label: "Labels", hint: "separated by commas", half: true, offer: offer((task) => task.labels ?? []) },
  { name: "owner", label: "Owner", half: true, offer: offer((task) => task.owner) },
  { name: "priority", label: "Priority", kind: "choice", options: PRIORITIES, half: true },
  { name: "estimate_ms", label: "Estimate", hint: "30m, 2h, 3d", half: true },
  { name: "due", label: "Due", kind: "time", half: true },
  { name: "not_before", label: "Not before", kind: "time", half: true },
  { name: "blocked_by", label: "Waits for", hint: "numbers, such as 3 7", half: true },
  { name: "parent", label: "Part of", hint: "a number", half: true },
];
const LINKS = {
  name: "links", label: "Links", hint: "a URL, a path or KIND=TARGET on each line", kind: "long", rows: 2,
};
const DOING = { name: "active_form", label: "Shown while in progress", hint: "such as “Writing the parser”" };

/** Return a task's members as the texts of form fields. */
function formatForm(task) {
  const texts = { title: task.title, priority: task.priority, blocked_by: (task.blocked_by ?? []).join(" ") };
  for (const name of ["description", "active_form", "owner", "parent"]) texts[name] = task[name] ?? "";
  for (const [name, [format]] of Object.entries(CONVERTERS)) texts[name] = format(task[name]);
  for (const name of TIMES) texts[name] = formatWhen(task, name);
  return texts;
}

/** Return the members whose text was changed, in the API's format. */
function diffForm(before, after) {
  const body = {};
  for (const [name, value] of Object.entries(after)) {
    if (value === before[name] || name === "blocked_by") continue;
    if (name === "parent") body.parent = parseIds(value)[0] ?? null;
    else if (TIMES.includes(name)) Object.assign(body, parseWhen(value, name));
    else body[name] = CONVERTERS[name] ? CONVERTERS[name][1](value) : value || null;
  }
  return body;
}

/** Return the changes of what a task waits for, in the API's format. */
export function diffBlockers(old, now) {
  const [added, removed] = [now.filter((id) => !old.includes(id)), old.filter((id) => !now.includes(id))];
  return { ...(added.length && { add_blocked_by: added }), ...(removed.length && { remove_blocked_by: removed }) };
}

/** Add a task. `given` are texts of its fields. */
export async function add(given = {}) {
  const before = formatForm({ title: "", priority: "normal", parent: currentTask.value?.parent });
  const added = await ask({
    title: "Add a task",
    fields: [TITLE, DESCRIPTION, ...MEMBERS],
    values: { ...before, ...given },
    confirm: "Add",
    send: (values) => {
      const members = diffForm({ ...before, title: null, parent: "" }, values);
      const body = { ...members, blocked_by: parseIds(values.blocked_by) };
      return call("POST", listPath("/tasks"), body);
    },
  });
  if (!added) return;
  showDone(`Added #${added.task.id}`, [added]);
  go({ ...place.value, task: added.task.id }, { trail: false });
}

export async function addList() {
  const opened = await ask({
    title: "New list",
    fields: [
      { name: "conversation", label: "Name", required: true, hint: "letters, digits and . _ : -" },
      { name: "title", label: "Title", hint: "optional" },
    ],
    confirm: "Create",
    send: ({ conversation, title }) => call("PUT", API + encodeURIComponent(conversation), title ? { title } : {}),
  });
  if (opened) go({ name: opened.conversation.conversation });
}

export async function edit() {
  const task = currentTask.value;
  const before = formatForm(task);
  const fields = [TITLE, DESCRIPTION, ...MEMBERS, LINKS, DOING];
  let seen = before; // as it was when the form was opened, or when a conflict was shown
  await ask({
    title: `Edit #${task.id}`,
    fields,
    values: before,
    confirm: "Save",
    send: (values) => {
      const body = { ...diffForm(before, values), ...diffBlockers(task.blocked_by ?? [], parseIds(values.blocked_by)) };
      if (!Object.keys(body).length) return {};
      const current = visibleRows.value.tasks.get(task.id) ?? task;
      const newest = formatForm(current);
      const lost = fields.filter(({ name }) => name !== "blocked_by" && values[name] !== before[name] &&
        newest[name] !== seen[name] && newest[name] !== values[name]);
      seen = newest;
      const theirs = lost.map(({ name, label }) => `${label}: “${safe(newest[name])}”`).join(", ");
      if (theirs) throw new Problem("version_conflict", `Changed while you wrote: ${theirs}. Save again to replace it.`);
      return call("PATCH", taskPath(task.id), { ...body, task_version: current.version });
    },
  });
}

export async function addNote() {
  const task = currentTask.value;
  await ask({
    title: `Note on ${nameOfTask(task)}`,
    fields: [{ name: "text", label: "Note", kind: "long", hint: "Ctrl Enter adds it", required: true }],
    confirm: "Add",
    send: ({ text }) => call("POST", taskPath(task.id, "/notes"), { text }),
  });
}
