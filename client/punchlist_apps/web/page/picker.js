// The picker of what a task waits for, by words.

import { html, useLayoutEffect, useRef, useState } from "./vendor.js";
import { call } from "./link.js";
import { diffBlockers } from "./forms.js";
import { attempt, closeDialog, list, taskPath, visibleRows } from "./model.js";
import { Mark, Text } from "./parts.js";
import { isFinished, stateOf } from "./rows.js";
import { showDone } from "./undo.js";

const MAX_SHOWN = 60;

/** Return the numbers of the circle that would close if a task waited for another, as text; empty if none would. */
export function describeCircle(tasks, id, blocker) {
  const before = new Map([[blocker, null]]);
  for (const at of before.keys()) {
    if (at === id) {
      const way = [];
      for (let step = at; step !== null; step = before.get(step)) way.push(`#${step}`);
      return [...way, `#${id}`].join(" → ");
    }
    for (const next of tasks.get(at)?.blocked_by ?? []) if (!before.has(next)) before.set(next, at);
  }
  return "";
}

export default function Picker({ id }) {
  list.value; // rows change in place
  const { tasks } = visibleRows.value;
  const task = tasks.get(id);
  const [typed, setTyped] = useState("");
  const [before] = useState(task?.blocked_by ?? []);
  const [chosen, setChosen] = useState(before);
  const [cursor, setCursor] = useState(0);
  const box = useRef(null);
  useLayoutEffect(() => box.current.focus({ preventScroll: true }), []);
  if (!task) return html`<p role="alert">This task was deleted.</p>`;
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const isMatch = (other) => words.every((word) => `#${other.id} ${other.title}`.toLowerCase().includes(word));
  const rank = (other) => (chosen.includes(other.id) ? 0 : isFinished(other) ? 2 : 1);
  const matches = visibleRows.value.sorted().filter((other) => other.id !== id && isMatch(other))
    .sort((a, b) => rank(a) - rank(b)).slice(0, MAX_SHOWN)
    .map((other) => ({ other, circle: chosen.includes(other.id) ? "" : describeCircle(tasks, id, other.id) }));
  const at = Math.min(cursor, matches.length - 1);
  const toggle = ({ other, circle }) => {
    if (circle) return;
    setChosen(chosen.includes(other.id) ? chosen.filter((each) => each !== other.id) : [...chosen, other.id]);
  };
  const save = async () => {
    const body = diffBlockers(before, chosen);
    closeDialog();
    if (!Object.keys(body).length) return;
    const result = await attempt(() => call("PATCH", taskPath(id), body));
    if (result) showDone(`#${id} waits for ${result.task.blocked_by.map((each) => `#${each}`).join(" ") || "nothing"}`, [result]);
  };
  const actions = {
    ArrowDown: () => setCursor(Math.min(matches.length - 1, at + 1)),
    ArrowUp: () => setCursor(Math.max(0, at - 1)),
    " ": () => (matches[at] ? toggle(matches[at]) : null),
    Enter: () => {
      if (!typed.trim()) return save();
      if (matches[at]) toggle(matches[at]);
      setTyped("");
    },
  };
  const onKey = (event) => {
    if (!actions[event.key] || event.isComposing || (event.key === " " && typed)) return;
    event.preventDefault();
    actions[event.key]();
  };
  return html`<h2 id="dialog-title">What #${id} waits for</h2>
    <p class="chosen">${chosen.map((each) => html`<button key=${each} class="label"
      title="No longer wait for it" onClick=${() => setChosen(chosen.filter((other) => other !== each))}>
      #${each} <${Text} of=${tasks.get(each)?.title ?? ""} /> <span aria-hidden="true">×</span></button>`)}
      ${!chosen.length && html`<span class="hush">nothing yet</span>`}</p>
    <input ref=${box} data-first type="text" role="combobox" aria-expanded="true" aria-controls="candidates" aria-label="Find a task"
      aria-activedescendant=${matches.length ? `candidate-${at}` : undefined} placeholder="Words or a number"
      autocomplete="off" value=${typed} onKeyDown=${onKey}
      onInput=${(event) => (setTyped(event.currentTarget.value), setCursor(0))} />
    <div id="candidates" role="listbox" aria-label="Tasks" aria-multiselectable="true">${matches.map((match, index) =>
      html`<${Candidate} key=${match.other.id} ...${match} index=${index} isHere=${index === at}
        isChosen=${chosen.includes(match.other.id)} onClick=${() => toggle(match)} />`)}</div>
    ${!matches.length && html`<p role="status">No task fits.</p>`}
    <div class="buttons"><span class="hush">Enter chooses what you typed, and then saves</span><span class="room"></span>
      <button onClick=${() => closeDialog()}>Cancel</button><button class="primary" onClick=${save}>Save</button></div>`;
}

const Candidate = ({ other, circle, index, isHere, isChosen, onClick }) => html`<div id=${`candidate-${index}`} role="option"
  class=${isHere ? "here" : ""} aria-selected=${isChosen ? "true" : "false"} aria-disabled=${circle ? "true" : undefined}
  onClick=${onClick}>
  <span class="tick" aria-hidden="true">${isChosen ? "✓" : ""}</span>
  <${Mark} state=${stateOf(other)} /><span class="id">#${other.id}</span><${Text} class="cut" of=${other.title} />
  ${circle && html`<span class="hush">would wait for itself: ${circle}</span>`}</div>`;
