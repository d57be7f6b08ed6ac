// Questions, forms, help and the palette: each is a dialog of the browser's own, which keeps the focus in it.

import { html, useLayoutEffect, useRef, useState } from "./vendor.js";
import { findable } from "./commands.js";
import { Problem } from "./link.js";
import { lettersOff, setLetters } from "./keys.js";
import { closeDialog, dialog } from "./model.js";
import { Key } from "./parts.js";
import { safe } from "./text.js";
import { KEYS } from "./words.js";

const KINDS = { form: Form, help: Help, palette: Palette };

export function Dialogs() {
  const open = dialog.value;
  return open && html`<${Open} key=${open.kind + (open.title ?? "")} open=${open} />`;
}

function Open({ open }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    box.current.querySelector("[data-first]")?.focus({ preventScroll: true });
    return () => before?.isConnected && before.focus?.({ preventScroll: true });
  }, []);
  const outside = (event) => event.target === box.current && closeDialog();
  const cancel = (event) => (event.preventDefault(), closeDialog());
  const Body = KINDS[open.kind];
  return html`<dialog ref=${box} class=${open.kind} aria-labelledby="dialog-title" onCancel=${cancel}
    onMouseDown=${outside}><${Body} ...${open} /></dialog>`;
}

function Form({ title, text = [], lines = [], code, fields = [], values = {}, confirm, danger, only, send: make }) {
  const [refusal, refuse] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    const given = {};
    for (const [name, value] of new FormData(event.currentTarget)) {
      // A day and its time of day are two fields of one name.
      given[name] = given[name] && value ? `${given[name]}T${value}` : given[name] || value.trim();
    }
    if (!make) return closeDialog(given);
    try {
      closeDialog(await make(given));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      refuse(error.message);
    }
  };
  const send = (event) =>
    event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.requestSubmit();
  return html`<form method="dialog" onSubmit=${submit} onKeyDown=${send}>
    <h2 id="dialog-title"><bdi>${title}</bdi></h2>
    ${lines.length > 0 && html`<ul class="lines">
      ${lines.map((line, at) => html`<li key=${at}><bdi>${line}</bdi></li>`)}</ul>`}
    ${text.map((line) => html`<p key=${line}>${line}</p>`)}
    ${code && html`<p><code class="copy">${code}</code></p>`}
    <div class="fields">${fields.map((field, at) =>
      html`<${Field} key=${field.name} field=${field} value=${values[field.name] ?? ""} first=${at === 0} />`)}</div>
    ${refusal && html`<p class="bad" role="alert">${safe(refusal)}</p>`}
    <div class="buttons">
      <span class="room"></span>
      ${!only && html`<button type="button" onClick=${() => closeDialog()}>Cancel</button>`}
      <button type="submit" class=${danger ? "danger" : "primary"} data-first=${fields.length ? undefined : true}>
        ${confirm}</button>
    </div>
  </form>`;
}

function Field({ field: { name, label, kind = "line", hint, required, options, half, rows = 4 }, value, first }) {
  const id = `f-${name}`;
  const common = { id, name, "data-first": first || undefined, "aria-describedby": hint ? `${id}-hint` : undefined };
  return html`<div class=${`field${half ? " half" : ""}`}>
    <label for=${id}>${label}${hint && html` <span class="hush" id=${`${id}-hint`}>${hint}</span>`}</label>
    ${kind === "long"
      ? html`<textarea ...${common} required=${required} rows=${rows} maxlength="65536"
          defaultValue=${value}></textarea>`
      : kind === "choice"
        ? html`<select ...${common}>${options.map((one) =>
            html`<option key=${one} value=${one} selected=${one === value}>${one}</option>`)}</select>`
        : kind === "time"
          ? html`<span class="pair"><input ...${common} type="date" defaultValue=${value.slice(0, 10)} />
              <input type="time" name=${name} aria-label="Time of day, may be empty"
                defaultValue=${value.slice(11)} /></span>`
          : html`<input ...${common} type="text" required=${required} maxlength=${name === "title" ? 500 : 8192}
              autocomplete="off" defaultValue=${value} />`}
  </div>`;
}

function Help() {
  const [off, set] = useState(lettersOff());
  const change = (event) => (setLetters(!event.currentTarget.checked), set(event.currentTarget.checked));
  return html`<h2 id="dialog-title">Keys</h2>
    <div class="groups">${KEYS.map(({ title, keys }) => html`<section key=${title}>
      <h3>${title}</h3><dl>${keys.map((key) => html`<${HelpLine} key=${key.name} ...${key} />`)}</dl></section>`)}</div>
    <div class="buttons">
      <label class="check"><input type="checkbox" checked=${off} onChange=${change} /> Switch single letters off</label>
      <span class="room"></span><button class="primary" data-first onClick=${() => closeDialog()}>Close</button></div>`;
}

const HelpLine = ({ keys, does }) => html`<div>
  <dt>${keys.map((one) => html`<${Key} key=${one} of=${one} />`)}</dt><dd>${does}</dd></div>`;

/** How well a text fits what was typed: all letters in order, better where words begin; null if it does not. */
function fit(text, typed) {
  let at = 0, score = 0;
  for (const letter of typed) {
    const found = text.indexOf(letter, at);
    if (found < 0) return null;
    score += found === at ? 0 : /[\s·.-]/.test(text[found - 1] ?? " ") ? 1 : found - at + 2;
    at = found + 1;
  }
  return score;
}

const FOUND = 12;

function Palette() {
  const [typed, type] = useState("");
  const [at, put] = useState(0);
  const words = typed.trim().toLowerCase();
  const found = findable()
    .map((one) => ({ ...one, score: fit(one.text.toLowerCase(), words) }))
    .filter((one) => one.score !== null);
  if (words) found.sort((a, b) => a.score - b.score);
  const lines = found.slice(0, FOUND);
  const choose = (one) => one && (closeDialog(), one.run());
  const keys = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) event.preventDefault(), put(Math.min(lines.length - 1, Math.max(0, at + step)));
    else if (event.key === "Enter") event.preventDefault(), choose(lines[at]);
  };
  return html`<h2 id="dialog-title" class="sr">Find a list or a command</h2>
    <input data-first type="text" role="combobox" aria-expanded="true" aria-controls="found"
      aria-label="Find a list or a command" aria-activedescendant=${lines.length ? `found-${at}` : undefined}
      placeholder="A list or a command" autocomplete="off" value=${typed}
      onInput=${(event) => (type(event.currentTarget.value), put(0))} onKeyDown=${keys} />
    <div id="found" role="listbox" aria-label="Found">${lines.map((one, index) => html`<div key=${one.key}
      id=${`found-${index}`} role="option" aria-selected=${index === at ? "true" : "false"}
      onClick=${() => choose(one)}>
      <bdi>${one.text}</bdi><span class="hush">${one.kind}</span></div>`)}</div>
    ${!lines.length && html`<p class="hush" role="status">Nothing fits.</p>`}`;
}
