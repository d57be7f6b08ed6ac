// Editing a text of a task where it is shown.

import { html, signal, useLayoutEffect, useRef, useState } from "./vendor.js";
import { call } from "./link.js";
import { attempt, canChange, showToast, taskPath } from "./model.js";
import { safe } from "./text.js";
import { showDone } from "./undo.js";

/** The member that is being edited, as `ID MEMBER`; null if none is. */
export const editing = signal(null);

/** A member of a task with a button that edits it. `kind` is "line" or "long"; `children` show the text. */
export function InPlace({ task, member, label, kind = "line", children }) {
  if (editing.value === `${task.id} ${member}`)
    return html`<${Editor} task=${task} member=${member} label=${label} kind=${kind} />`;
  return html`<div class="in-place">${children}${canChange.value && html`<button class="text" aria-label=${`Edit the ${label}`}
    onClick=${() => (editing.value = `${task.id} ${member}`)}>edit</button>`}</div>`;
}

function Editor({ task, member, label, kind }) {
  const [base, setBase] = useState({ text: task[member] ?? "", version: task.version });
  const [text, setText] = useState(base.text);
  const [theirs, setTheirs] = useState(null);
  const field = useRef(null);
  useLayoutEffect(() => {
    field.current.focus();
    field.current.setSelectionRange?.(text.length, text.length);
  }, []);
  const close = () => (editing.value = null);
  /** Save the text. Other members may have changed; if this one has, show both texts. */
  const write = async (version) => {
    try {
      const body = { [member]: text || null, task_version: version };
      const result = await call("PATCH", taskPath(task.id), body);
      close();
      showDone(`Edited #${task.id}: ${label}`, [result]);
    } catch (error) {
      if (error.kind !== "version_conflict") return showToast(error.message, "bad");
      const found = await attempt(() => call("GET", taskPath(task.id)));
      if (!found) return;
      const current = { text: found.task[member] ?? "", version: found.task.version };
      if (current.text === base.text) await write(current.version);
      else setTheirs(current);
    }
  };
  const save = () => (text === base.text ? close() : write(base.version));
  const keepMine = () => {
    setBase(theirs);
    setTheirs(null);
    field.current.focus();
  };
  const onKey = (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") event.preventDefault(), event.stopPropagation(), close();
    if (event.key === "Enter" && (kind === "line" || event.ctrlKey || event.metaKey)) event.preventDefault(), save();
  };
  const props = { ref: field, value: text, "aria-label": label, onKeyDown: onKey, onInput: (event) => setText(event.currentTarget.value) };
  return html`<div class="in-place editor">
    ${kind === "line"
      ? html`<input type="text" maxlength="500" ...${props} />`
      : html`<textarea rows="6" maxlength="65536" ...${props}></textarea>`}
    ${theirs && html`<div class="note bad" role="alert"><h3>It was changed while you wrote</h3>
      <p class="source">${safe(theirs.text)}</p>
      <button onClick=${keepMine}>Keep mine</button> <button onClick=${close}>Take theirs</button></div>`}
    ${!theirs && html`<div class="row-buttons"><button class="primary" onClick=${save}>Save</button>
      <button onClick=${close}>Cancel</button></div>`}
  </div>`;
}
