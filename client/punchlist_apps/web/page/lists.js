// The arrangement of the screen of all lists: its sections, their order, and which are folded.

import { signal } from "./vendor.js";
import { board, boardFilter, nameOf } from "./model.js";
import { place } from "./place.js";

const FOLDED_KEY = "punchlist.folded-lists";
export const selectedCard = signal(null); // conversation of the card that the keys act on
const folded = signal(new Set(JSON.parse(localStorage.getItem(FOLDED_KEY) ?? '["quiet"]')));
/** The order of the lists while the pointer or the focus is in the table, so that no row moves under it. */
export const held = signal(null);

const byName = (a, b) => nameOf(a).localeCompare(nameOf(b));
export const SORTS = { need: null, name: byName, date: (a, b) => b.updated_at - a.updated_at };

/** Return the sections in the chosen order: those of the board, or one with all lists. */
function listSections() {
  const compare = SORTS[place.value.query.sort];
  if (!compare) return board.value;
  const all = board.value.flatMap((section) => section.cards).sort(compare);
  return [{ key: "all", title: "All lists", cards: all }];
}

/** Return the sections with each list where it was when the pointer came in. New lists stand at the end. */
function holdOrder(sections, order) {
  const at = new Map(sections.flatMap(({ key, cards }) => cards.map((card) => [card.conversation, [key, card]])));
  const kept = order.map(({ key, title, ids }) => {
    const present = ids.filter((id) => at.has(id));
    const cards = present.map((id) => at.get(id)[1]);
    const moved = new Set(present.filter((id) => at.get(id)[0] !== key));
    for (const id of present) at.delete(id);
    return { key, title, cards, moved };
  });
  if (at.size) kept.push({ key: "new", title: "New", cards: [...at.values()].map(([, card]) => card) });
  return kept.filter((section) => section.cards.length);
}

export const listShownSections = () => (held.value ? holdOrder(listSections(), held.value) : listSections());
export const hold = () => (held.value ??= listSections().map(({ key, title, cards }) =>
  ({ key, title, ids: cards.map((card) => card.conversation) })));
export const release = (event) => {
  if (event.currentTarget.matches(":hover") || event.currentTarget.contains(event.relatedTarget)) return;
  held.value = null;
};

/** Return the lists in screen order, without those of folded sections. */
export const listVisibleCards = () =>
  listShownSections().flatMap(({ key, cards }) => (isFolded(key) ? [] : cards));

/** Return whether a section is folded. A filter shows all sections. */
export const isFolded = (key) => !boardFilter.value && folded.value.has(key);

export function toggleFold(key) {
  const next = new Set(folded.value);
  if (!next.delete(key)) next.add(key);
  folded.value = next;
  localStorage.setItem(FOLDED_KEY, JSON.stringify([...next]));
}
