// The toast: the last success or error, with buttons. It goes with the screen on which it was shown.

import { effect, html, signal, useEffect, useRef } from "./vendor.js";
import { place } from "./place.js";
import { safe } from "./text.js";

const SHORT_MS = 5000;
const LONG_MS = 12_000; // for errors, and toasts with buttons

export const toast = signal(null);
let timer = 0;

const screenOf = ({ screen, name, view }) => [screen, name, view].join("/");

/**
 * Show a toast. `actions` are its buttons, such as `[["Undo", undo]]`. An error is announced at once, other toasts when
 * the screen reader is idle.
 */
export function showToast(text, kind = "info", actions = []) {
  toast.value = { text, kind, actions, screen: screenOf(place.peek()) };
  hideLater();
}

function hideLater() {
  clearTimeout(timer);
  const { kind, actions } = toast.peek() ?? {};
  timer = setTimeout(hide, kind === "bad" || actions?.length ? LONG_MS : SHORT_MS);
}

const hide = () => (toast.value = null);
const hold = () => clearTimeout(timer);

effect(() => {
  const screen = screenOf(place.value);
  if (toast.peek() && toast.peek().screen !== screen) hide();
});

export function Toast() {
  const box = useRef(null);
  const before = useRef(null); // the element that had the focus before F6
  useEffect(() => {
    const onKey = (event) => {
      if (event.key !== "F6" || !toast.value) return;
      event.preventDefault();
      before.current = document.activeElement;
      (box.current.querySelector("button") ?? box.current).focus();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const current = toast.value;
  useEffect(() => {
    if (!current && before.current?.isConnected) before.current.focus({ preventScroll: true });
    if (!current) before.current = null;
  }, [current]);
  const leave = () => box.current.matches(":hover, :focus-within") || hideLater();
  const closeOnEscape = (event) => event.key === "Escape" && (event.stopPropagation(), hide());
  return html`<div ref=${box} class=${`toast ${current?.kind ?? ""}`} tabindex="-1"
    role=${current?.kind === "bad" ? "alert" : "status"} hidden=${!current}
    onMouseEnter=${hold} onFocusIn=${hold} onMouseLeave=${leave} onFocusOut=${leave} onKeyDown=${closeOnEscape}>
    <bdi>${safe(current?.text)}</bdi>${current?.actions.map(([label, act]) => html`<button key=${label} class="text"
      onClick=${() => (hide(), act())}>${label}</button>`)}
  </div>`;
}
