// Keys, by the map that both faces share (punchlist_apps/keys.toml).

import { COMMANDS, run } from "./commands.js";
import { boardFilter, dialog, filter, place } from "./model.js";
import { KEYS } from "./words.js";

const OFF = "punchlist.letters-off";
const NAMES = {
  ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right", Home: "home", End: "end",
  PageUp: "pageup", PageDown: "pagedown", Enter: "enter", Escape: "escape", " ": "space",
};
const BY_KEY = new Map(KEYS.flatMap((group) => group.keys.flatMap((key) => key.keys.map((one) => [one, key]))));

export const lettersOff = () => localStorage.getItem(OFF) !== null;
export const setLetters = (on) => (on ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));

function named(event) {
  const key = NAMES[event.key] ?? event.key;
  if (event.altKey) return null;
  return event.ctrlKey || event.metaKey ? `ctrl+${key.toLowerCase()}` : key;
}

const PRESSED = "a[href], button, summary, select";

function onKey(event) {
  const name = named(event);
  const found = BY_KEY.get(name);
  if (!found || event.isComposing || (dialog.value && name !== "ctrl+k")) return;
  const { target } = event;
  const types = target.closest?.("input:not([type=range]), textarea, select");
  if (types) {
    if (name !== "escape") return;
    target.blur();
    if (target.id === "filter") (place.value.name ? filter : boardFilter).value = "";
    return event.preventDefault();
  }
  if ((name === "enter" || name === "space") && target.closest?.(PRESSED)) return;
  if (target.type === "range" && ["up", "down", "home", "end", "pageup", "pagedown"].includes(name)) return;
  if (name.length === 1 && lettersOff()) return;
  if (!found.in.includes(place.value.name ? "list" : "board") || !COMMANDS[found.name]) return;
  event.preventDefault();
  run(found.name);
}

export const listen = () => document.addEventListener("keydown", onKey);
