// Questions, forms, help and the palette, as native dialogs, which keep the focus inside.

import { html, useLayoutEffect, useRef, useState } from "./vendor.js";
import { Problem } from "./link.js";
import { hasLettersOff, setLetters } from "./keys.js";
import { lazy } from "./lazy.js";
import { closeDialog, dialog } from "./model.js";
import { Command, Key } from "./parts.js";
import { safe } from "./text.js";
import { PURPOSES } from "./purposes.js";
import { KEYS } from "./words.js";

const KINDS = { form: Form, help: Help, palette: lazy(() => import("./palette.js"), "late"), picker: lazy(() => import("./picker.js")) };

/** The open dialog. */
export default function Dialog({ open }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    box.current.querySelector("[data-first]")?.focus({ preventScroll: true });
    return () => before?.isConnected && before.focus?.({ preventScroll: true });
  }, []);
  const closeOutside = (event) => event.target === box.current && closeDialog();
  const cancel = (event) => (event.preventDefault(), closeDialog());
  const Body = KINDS[open.kind];
  return html`<dialog ref=${box} class=${open.kind} aria-labelledby="dialog-title" onCancel=${cancel}
    onMouseDown=${closeOutside}><${Body} ...${open} /></dialog>`;
}

function Form({ title, text = [], lines = [], code, fields = [], values = {}, confirm, danger, only, send }) {
  const [problem, setProblem] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    const given = {};
    for (const [name, value] of new FormData(event.currentTarget)) {
      // A day and its time are two fields with the same name.
      given[name] = given[name] && value ? `${given[name]}T${value}` : given[name] || value.trim();
    }
    if (!send) return closeDialog(given);
    try {
      closeDialog(await send(given));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(error.message);
    }
  };
  const submitOnCtrlEnter = (event) =>
    event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.requestSubmit();
  return html`<form method="dialog" onSubmit=${submit} onKeyDown=${submitOnCtrlEnter}>
    <h2 id="dialog-title"><bdi>${title}</bdi></h2>
    ${lines.length > 0 && html`<ul class="lines">
      ${lines.map((line, at) => html`<li key=${at}><bdi>${line}</bdi></li>`)}</ul>`}
    ${text.map((line) => html`<p key=${line}>${line}</p>`)}
    ${code && html`<${Command} of=${code} />`}
    <div class="fields">${fields.map((field, at) =>
      html`<${Field} key=${field.name} field=${field} value=${values[field.name] ?? ""} first=${at === 0} />`)}</div>
    <div class="buttons">
      ${problem && html`<p class="bad" role="alert" tabindex="-1" ref=${focusAlert}>${safe(problem)}</p>`}
      <span class="room"></span>
      ${!only && html`<button type="button" onClick=${() => closeDialog()}>Cancel</button>`}
      <button type="submit" class=${danger ? "danger" : "primary"} data-first=${fields.length ? undefined : true}>
        ${confirm}</button>
    </div>
  </form>`;
}

const focusAlert = (element) => element?.focus({ preventScroll: true });

function Field({ field, value, first }) {
  const { name, label, kind = "line", hint, required, options, half, rows = 4, offer } = field;
  const id = `f-${name}`;
  const common = { id, name, "data-first": first || undefined, "aria-describedby": hint ? `${id}-hint` : undefined };
  return html`<div class=${`field${half ? " half" : ""}`}>
    <label for=${id}>${label}${hint && html` <span class="hush" id=${`${id}-hint`}>${hint}</span>`}</label>
    ${kind === "long"
      ? html`<textarea ...${common} required=${required} rows=${rows} maxlength="65536"
          defaultValue=${value}></textarea>`
      : kind === "choice"
        ? html`<select ...${common}>${options.map((option) =>
            html`<option key=${option} value=${option} selected=${option === value}>${option}</option>`)}</select>`
        : kind === "time"
          ? html`<span class="pair"><input ...${common} type="date" defaultValue=${value.slice(0, 10)} />
              <input type="time" name=${name} aria-label="Time of day, optional"
                defaultValue=${value.slice(11)} /></span>`
          : html`<input ...${common} type="text" required=${required} maxlength=${name === "title" ? 500 : 8192}
              autocomplete="off" defaultValue=${value} list=${options && `${id}-options`} />
              ${options && html`<datalist id=${`${id}-options`}>
                ${options.map((option) => html`<option key=${option} value=${option} />`)}</datalist>`}`}
  </div>`;
}

function Help() {
  const [isOff, setOff] = useState(hasLettersOff());
  const [typed, setTyped] = useState("");
  const toggle = (event) => (setLetters(!event.currentTarget.checked), setOff(event.currentTarget.checked));
  const word = typed.trim().toLowerCase();
  const groups = Object.entries(PURPOSES).map(([title, purposes]) => ({
    title,
    keys: Object.entries(purposes).map(([name, does]) => ({ name, does, keys: KEYS[name][0] }))
      .filter(({ does, keys }) => `${does} ${keys.join(" ")}`.toLowerCase().includes(word)),
  })).filter(({ keys }) => keys.length);
  return html`<h2 id="dialog-title" tabindex="-1" data-first>Keys</h2>
    <input type="search" aria-label="Search the keys" placeholder="Search the keys" value=${typed}
      onInput=${(event) => setTyped(event.currentTarget.value)} />
    <div class="groups">${groups.map(({ title, keys }) => html`<section key=${title}>
      <h3>${title}</h3><dl>${keys.map((key) => html`<${HelpLine} key=${key.name} ...${key} />`)}</dl></section>`)}</div>
    ${!groups.length && html`<p role="status">No key does that.</p>`}
    <div class="buttons">
      <label class="check">
        <input type="checkbox" checked=${isOff} onChange=${toggle} /> Turn off single-letter keys</label>
      <span class="room"></span><button class="primary" onClick=${() => closeDialog()}>Close</button></div>`;
}

const HelpLine = ({ keys, does }) => html`<div>
  <dt>${keys.map((key) => html`<${Key} key=${key} of=${key} />`)}</dt><dd>${does}</dd></div>`;
