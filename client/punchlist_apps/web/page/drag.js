// Dragging a row of a list by its grip: between rows it moves, onto a row it waits for it, to the right it is part of it.

import { html, signal } from "./vendor.js";
import { changeEach } from "./commands.js";
import { call } from "./link.js";
import { sorting } from "./groups.js";
import { canChange, showToast, taskPath, visibleRows } from "./model.js";
import { describeCircle } from "./picker.js";

const INDENT = 24; // pixels to the right from which a drop makes a task part of another
const EDGE = 44; // pixels at the ends of the list where it scrolls by itself
const dragged = signal(null); // { id, startX, x, y, over, where, box }

/** What a drop does by where it is: its words, and the call that it makes. */
const DROPS = {
  before: { say: (id, over) => `#${id} before #${over}`, post: (over) => ["POST", "/move", { before: over }] },
  after: { say: (id, over) => `#${id} after #${over}`, post: (over) => ["POST", "/move", { after: over }] },
  onto: { say: (id, over) => `#${id} waits for #${over}`, post: (over) => ["PATCH", "", { add_blocked_by: [over] }] },
  into: { say: (id, over) => `#${id} is part of #${over}`, post: (over) => ["PATCH", "", { parent: over }] },
};

/** Return the row under the pointer and where on it the pointer is. */
function findTarget(event, { id, startX }) {
  const row = document.elementFromPoint(event.clientX, event.clientY)?.closest(".row");
  const over = row?.id.slice("t-".length);
  if (!over || over === id) return { over: null, where: null, box: null };
  const box = row.getBoundingClientRect();
  const share = (event.clientY - box.top) / box.height;
  const where = event.clientX - startX > INDENT ? "into" : share < 1 / 3 ? "before" : share > 2 / 3 ? "after" : "onto";
  return { over, where, box };
}

function scrollAtEdge(list, y) {
  const { top, bottom } = list.getBoundingClientRect();
  if (y < top + EDGE) list.scrollBy(0, -12);
  else if (y > bottom - EDGE) list.scrollBy(0, 12);
}

function drop({ id, over, where }) {
  if (!over) return;
  if (["before", "after"].includes(where) && sorting.value !== "order")
    return showToast("Sort by order to move tasks by hand.", "bad");
  const { tasks } = visibleRows.value;
  const circle = where === "onto" && describeCircle(tasks, id, over);
  if (circle) return showToast(`#${id} can't wait for #${over}: ${circle} would be a circle.`, "bad");
  const [verb, path, body] = DROPS[where].post(over);
  return changeEach(DROPS[where].say(id, over), [tasks.get(id)], () => call(verb, taskPath(id, path), body));
}

const giveUp = () => (dragged.value = null);
const giveUpOnEscape = (event) => {
  if (event.key !== "Escape" || !dragged.value) return;
  event.preventDefault();
  event.stopPropagation();
  giveUp();
};

/** Handlers of the element that holds the rows. */
export const rowDragging = {
  onPointerDown: (event) => {
    const id = event.target.closest(".grip")?.closest(".row")?.id.slice("t-".length);
    if (!id || !canChange.value || event.button) return;
    event.preventDefault();
    event.currentTarget.setPointerCapture(event.pointerId);
    dragged.value = { id, startX: event.clientX, x: event.clientX, y: event.clientY, over: null };
    addEventListener("keydown", giveUpOnEscape, { capture: true });
  },
  onPointerMove: (event) => {
    if (!dragged.value) return;
    scrollAtEdge(event.currentTarget, event.clientY);
    dragged.value = { ...dragged.value, x: event.clientX, y: event.clientY, ...findTarget(event, dragged.value) };
  },
  onPointerUp: () => {
    removeEventListener("keydown", giveUpOnEscape, { capture: true });
    const last = dragged.value;
    giveUp();
    if (last) drop(last);
  },
  onPointerCancel: giveUp,
};

/** The line or ring at the place of the drop, and its meaning beside the pointer. */
export function DropMark() {
  const { id, x, y, over, where, box } = dragged.value ?? {};
  if (!over) return null;
  const edge = where === "after" ? box.bottom : box.top;
  const isBetween = ["before", "after"].includes(where);
  const place = { left: `${box.left}px`, width: `${box.width}px`, top: `${isBetween ? edge - 1 : box.top}px` };
  return html`<div class=${`drop-mark ${isBetween ? "between" : where}`} style=${{ ...place, height: `${isBetween ? 2 : box.height}px` }}></div>
    <div class="drop-words" style=${{ left: `${x + 14}px`, top: `${y + 12}px` }}>${DROPS[where].say(id, over)}</div>`;
}
