// The line at the end of a list where tasks are added, in the shorthand.

import { html, signal, useEffect, useRef, useState } from "./vendor.js";
import { isAdding } from "./commands.js";
import { add } from "./forms.js";
import { call } from "./link.js";
import { CONVERTERS, TIMES, parseWhen } from "./members.js";
import { ask, attempt, go, listPath, place, visibleRows } from "./model.js";
import { Text } from "./parts.js";
import { readShorthand } from "./shorthand.js";
import { plural, safe } from "./text.js";
import { showDone } from "./undo.js";

const MAX_OFFERED = 8;
const MAX_PASTED = 500;
const typed = signal(""); // kept until the page is reloaded

const hasTask = (id) => visibleRows.value.tasks.has(id);

/** Return a task in the API's format. */
function buildTask({ estimate_ms: estimate, ...members }) {
  const times = TIMES.filter((name) => members[name]).map((name) => parseWhen(members[name], name));
  const task = Object.assign({}, members, ...times);
  if (estimate) task.estimate_ms = CONVERTERS.estimate_ms[1](estimate);
  return task;
}

/** Return the tasks of several lines, in which a deeper indentation makes a task part of the one above it. */
function readLines(text) {
  const above = []; // [indentation, ref]
  return text.split("\n").filter((line) => line.trim()).slice(0, MAX_PASTED).map((line, at) => {
    const indent = /^\s*/.exec(line)[0].replaceAll("\t", "    ").length;
    while (above.length && above.at(-1)[0] >= indent) above.pop();
    const { members } = readShorthand(line.trim().replace(/^(?:[-*+]|\d+[.)]) (?:\[[ xX]\] )?/, ""), { hasTask });
    const task = { ...buildTask(members), ref: `line${at}` };
    if (above.length && !task.parent) task.parent = above.at(-1)[1];
    above.push([indent, task.ref]);
    return task;
  });
}

/** What may follow a sign: tasks by number or words, labels, owners. */
function listOffers(word) {
  const rest = word.slice(1).replace(/^#/, "").toLowerCase();
  const tasks = [...visibleRows.value.tasks.values()];
  if (["<", "←", "^"].includes(word[0])) {
    const last = rest.split(",").at(-1);
    return tasks.filter((task) => task.id.startsWith(last) || task.title.toLowerCase().includes(last))
      .map((task) => ({ word: `${word[0]}${task.id}`, text: `#${task.id} ${task.title}` })).slice(0, MAX_OFFERED);
  }
  const read = { "+": (task) => task.labels ?? [], "@": (task) => task.owner ?? [] }[word[0]];
  if (!read) return [];
  const names = [...new Set(tasks.flatMap(read))].filter((name) => !/\s/.test(name)).sort();
  return names.filter((name) => name.toLowerCase().startsWith(rest) && name.toLowerCase() !== rest)
    .map((name) => ({ word: word[0] + name, text: name })).slice(0, MAX_OFFERED);
}

export default function Inline() {
  const field = useRef(null);
  const [at, setAt] = useState(-1); // the offer chosen by the arrow keys
  useEffect(() => field.current.focus(), []);
  const { members, tokens } = readShorthand(typed.value, { hasTask });
  const problem = tokens.find((token) => token.problem);
  const word = /\S*$/.exec(typed.value)[0];
  const offers = word ? listOffers(word) : [];
  const type = (text) => ((typed.value = text), setAt(-1));
  const take = (offer) => type(`${typed.value.slice(0, typed.value.length - word.length)}${offer.word} `);
  const send = async () => {
    if (problem || !members.title) return;
    const [line, { name }] = [typed.value, place.value];
    type(""); // The next task may be typed before the response.
    const added = await attempt(() => call("POST", listPath("/tasks"), buildTask(members)));
    if (!added) return (typed.value = [line, typed.value].filter(Boolean).join(" "));
    showDone(`Added #${added.task.id} ${safe(added.task.title)}`, [added], name);
    if (place.value.name === name) go({ ...place.value, task: added.task.id }, { trail: false });
  };
  const openForm = () => {
    const { labels, blocked_by: blockers, gate, ...texts } = members;
    isAdding.value = false;
    add({ ...texts, ...(labels && { labels: labels.join(", ") }), ...(blockers && { blocked_by: blockers.join(" ") }) });
    type("");
  };
  const actions = {
    Enter: (event) => (event.shiftKey ? openForm() : at >= 0 ? take(offers[at]) : send()),
    Tab: () => take(offers[Math.max(0, at)]),
    ArrowDown: () => setAt(Math.min(offers.length - 1, at + 1)),
    ArrowUp: () => setAt(Math.max(-1, at - 1)),
    Escape: () => (isAdding.value = false),
  };
  const onKey = (event) => {
    if (!actions[event.key] || event.isComposing || (event.key === "Tab" && (!offers.length || event.shiftKey))) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key](event);
  };
  const paste = async (event) => {
    const text = event.clipboardData.getData("text/plain");
    const tasks = text.includes("\n") ? readLines(text) : [];
    if (tasks.length < 2) return;
    event.preventDefault();
    const lines = tasks.slice(0, 8).map((task) => safe(task.title));
    const note = tasks.length > 8 ? [`and ${tasks.length - 8} more`] : [];
    const question = { title: `Add ${tasks.length} tasks?`, lines, text: [...note, "An indented line is part of the one above it."] };
    const added = await ask({ ...question, confirm: "Add", send: () => call("POST", listPath("/tasks"), { tasks }) });
    if (added) showDone(`Added ${plural(tasks.length, "task")}`, [added]);
  };
  return html`<div class="inline-add" role="group" aria-label="Add tasks">
    <span aria-hidden="true">+</span>
    <input ref=${field} type="text" role="combobox" aria-expanded=${offers.length ? "true" : "false"} aria-controls="offers"
      aria-activedescendant=${at >= 0 ? `offer-${at}` : undefined} aria-label="New task" autocomplete="off" maxlength="2000"
      aria-describedby="read" placeholder="Fix it !high +bug @codex <38 due fri" value=${typed.value}
      onInput=${(event) => type(event.currentTarget.value)} onKeyDown=${onKey} onPaste=${paste} />
    <span id="read" class="tokens" role="status">${tokens.map((token, index) =>
      html`<span key=${index} class=${`token t-${token.member}${token.problem ? " wrong" : ""}`}><${Token} of=${token} /></span>`)}
      ${problem && html`<span class="bad">${problem.problem}</span>`}</span>
    <button class="primary" disabled=${!!problem || !members.title} onClick=${send}>Add</button>
    <button class="quiet" aria-label="Stop adding" onClick=${() => (isAdding.value = false)}>×</button>
    ${offers.length > 0 && html`<div id="offers" role="listbox" aria-label="Possible words">${offers.map((offer, index) =>
      html`<div key=${offer.word} id=${`offer-${index}`} role="option" aria-selected=${index === at ? "true" : "false"}
        onMouseDown=${(event) => (event.preventDefault(), take(offer))}><${Text} of=${offer.text} /></div>`)}</div>`}
  </div>`;
}

/** A token as read: a blocker or parent with its title. */
function Token({ of: { text, member } }) {
  const id = ["blocked_by", "parent"].includes(member) && /\d+$/.exec(text)?.[0];
  const task = id && visibleRows.value.tasks.get(id);
  return html`<${Text} of=${member === "gate" ? "needs a yes" : task ? `${text} ${task.title}` : text} />`;
}
