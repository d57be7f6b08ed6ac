// Saved views: named filters with a grouping and an order. Private ones are in this browser and fit every list; shared
// ones are in the metadata of one list.

import { computed, html, signal } from "./vendor.js";
import { Problem, call } from "./link.js";
import { ask, canChange, card, cards, listPath, place } from "./model.js";
import { follow, hashOf } from "./place.js";
import { Text } from "./parts.js";
import { safe } from "./text.js";

const VIEWS_KEY = "punchlist.views";
const MAX_VIEWS = 20;
const MAX_NAME = 80;
const MEMBERS = ["q", "group", "sort"];

const isView = (view) =>
  typeof view?.name === "string" && view.name.length <= MAX_NAME && view.name &&
  MEMBERS.every((key) => ["undefined", "string"].includes(typeof view[key]));
const readViews = (stored) => (Array.isArray(stored) ? stored.filter(isView).slice(0, MAX_VIEWS) : []);

function loadViews() {
  try {
    return readViews(JSON.parse(localStorage.getItem(VIEWS_KEY)));
  } catch {
    return [];
  }
}

export const privateViews = signal(loadViews());
export const sharedViews = computed(() => readViews(card.value?.metadata?.views));

const targetOf = (view) => ({
  name: place.value.name, view: place.value.view, query: Object.fromEntries(MEMBERS.map((key) => [key, view[key]])),
});
const isCurrent = (view) => MEMBERS.every((key) => (view[key] ?? "") === (place.value.query[key] ?? ""));

/** The saved view that is shown, if any. */
export const currentView = computed(() => [...sharedViews.value, ...privateViews.value].find(isCurrent));
export const isViewDeletable = computed(() =>
  currentView.value && (canChange.value || privateViews.value.includes(currentView.value)));
export const isViewSavable = computed(() => !currentView.value && !isCurrent({}));

/** Return the views with one of them added, or in the place of the one with its name. */
function putView(views, view) {
  const others = views.filter(({ name }) => name !== view.name);
  if (others.length >= MAX_VIEWS)
    throw new Problem("invalid_params", `There are already ${MAX_VIEWS} views. Delete one of them first.`);
  return [...others, view];
}

function changePrivate(change) {
  privateViews.value = change(privateViews.value);
  localStorage.setItem(VIEWS_KEY, JSON.stringify(privateViews.value));
}

const MAX_TRIES = 5;

/** Change the list's shared views. If the list changes at the same time, its views are read again. */
async function changeShared(change) {
  const path = listPath();
  for (let tries = 1; ; tries++) {
    const { conversation } = await call("GET", path);
    const views = change(readViews(conversation.metadata?.views));
    const body = { metadata: { views: views.length ? views : null } };
    try {
      const changed = (await call("PATCH", path, body, { match: conversation.version })).conversation;
      cards.value = new Map(cards.value).set(changed.conversation, changed);
      return;
    } catch (error) {
      if (error.kind !== "version_conflict" || tries === MAX_TRIES) throw error;
    }
  }
}

const SCOPES = ["me, in all lists", "everyone, in this list"];

export function saveView() {
  const { query } = place.value;
  const scope = { name: "scope", label: "For", kind: "choice", options: SCOPES };
  return ask({
    title: "Save this view",
    fields: [{ name: "name", label: "Name", required: true }, ...(canChange.value ? [scope] : [])],
    confirm: "Save",
    send: async ({ name, scope }) => {
      if (name.length > MAX_NAME)
        throw new Problem("invalid_params", `A view's name has at most ${MAX_NAME} characters.`);
      const view = { name, ...Object.fromEntries(MEMBERS.filter((key) => query[key]).map((key) => [key, query[key]])) };
      await (scope === SCOPES[1] ? changeShared : changePrivate)((views) => putView(views, view));
      return view;
    },
  });
}

export function deleteView() {
  const view = currentView.value;
  const isShared = sharedViews.value.includes(view);
  return ask({
    title: `Delete the view “${safe(view.name)}”?`,
    text: isShared ? ["Everyone who uses this list loses it."] : [],
    confirm: "Delete",
    danger: true,
    send: () => (isShared ? changeShared : changePrivate)((views) => views.filter(({ name }) => name !== view.name)),
  });
}

export const ViewLink = ({ view, class: name }) => html`<a class=${name} href=${hashOf(targetOf(view))}
  aria-current=${isCurrent(view) ? "true" : undefined} onClick=${follow(targetOf(view))}><${Text} of=${view.name} /></a>`;

/** The private views in the rail, while a list is open. */
export const RailViews = () => place.value.name && privateViews.value.length > 0 && html`
  <section aria-labelledby="rail-views"><h2 id="rail-views">Views</h2>
    <ul>${privateViews.value.map((view) => html`<li key=${view.name}><${ViewLink} view=${view} /></li>`)}</ul></section>`;
