// Keyboard shortcuts, from the key map shared with `punch ui` (punchlist_apps/keys.toml).

import { run } from "./commands.js";
import { boardFilter, dialog, filter, place } from "./model.js";
import { KEYS } from "./words.js";

const LETTERS_OFF_KEY = "punchlist.letters-off";
const NAMES = {
  ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right", Home: "home", End: "end",
  PageUp: "pageup", PageDown: "pagedown", Enter: "enter", Escape: "escape", Backspace: "backspace", " ": "space",
};
const BY_KEY = new Map(Object.entries(KEYS).flatMap(([command, [keys, screens]]) =>
  keys.map((key) => [key, { command, screens }])));

export const hasLettersOff = () => localStorage.getItem(LETTERS_OFF_KEY) !== null;
export const setLetters = (on) =>
  (on ? localStorage.removeItem(LETTERS_OFF_KEY) : localStorage.setItem(LETTERS_OFF_KEY, "1"));

function getKeyName(event) {
  const key = NAMES[event.key] ?? event.key;
  if (event.altKey) return { up: "K", down: "J" }[key] ?? null;
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "z") return event.shiftKey ? "U" : "u";
  return event.ctrlKey || event.metaKey ? `ctrl+${key.toLowerCase()}` : key;
}

/** The names in keys.toml of the screens that have keys of their own; the others have those of the board. */
const KEY_SCREENS = { now: "now", inbox: "now", list: "list", timeline: "list" };
const PRESSABLE = "a[href], button, summary, select";

function onKey(event) {
  const name = getKeyName(event);
  const shortcut = BY_KEY.get(name);
  if (!shortcut || event.isComposing || (dialog.value && name !== "ctrl+k")) return;
  const { target } = event;
  const field = target.closest?.("input:not([type=range]), textarea, select");
  if (field) {
    if (name !== "escape") return;
    target.blur();
    if (target.id === "filter") (place.value.name ? filter : boardFilter).value = "";
    return event.preventDefault();
  }
  if ((name === "enter" || name === "space") && target.closest?.(PRESSABLE)) return;
  if (target.type === "range" && ["up", "down", "home", "end", "pageup", "pagedown"].includes(name)) return;
  if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && hasLettersOff()) return;
  if (!shortcut.screens.includes(KEY_SCREENS[place.value.screen] ?? "board")) return;
  event.preventDefault();
  run(shortcut.command);
}

export const listen = () => document.addEventListener("keydown", onKey);
