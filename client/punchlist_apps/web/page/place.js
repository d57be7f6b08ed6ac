// The place in the address: a screen, and for a list its view, task and query. docs/faces.md lists the addresses.

import { effect, signal } from "./vendor.js";
import { session } from "./link.js";

export const VIEWS = ["list", "flow", "graph", "timeline", "history"];
const SCREENS = ["now", "inbox", "lists", "timeline", "agent", "who", "chat", "list"];
const SCREENS_OF_ONE = ["timeline", "who", "chat"]; // those that a link for one list has, in addition to the list
/**
 * Members of the address's query: filter, grouping, order, one or two versions, lists and span of a timeline, and the
 * list of a new chat.
 */
const QUERY = ["q", "group", "sort", "at", "lists", "span", "list"];

const decode = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/**
 * Return the place of an address.
 *
 * `screen` is one of SCREENS. `name`, `view` and `task` are set on the screen "list". `rest` is the further path of
 * another screen, such as `["codex/b210"]` of `#/agent/codex%2Fb210`. `query` has the texts of QUERY.
 */
function parsePlace(hash) {
  const [path, search = ""] = hash.slice(1).split("?", 2);
  const [, kind, ...rest] = path.split("/").map(decode);
  const params = new URLSearchParams(search);
  const query = Object.fromEntries(QUERY.filter((key) => params.has(key)).map((key) => [key, params.get(key)]));
  const only = session.value?.scope.list;
  const name = kind === "list" && rest[0] ? only ?? rest[0] : null;
  if (!name) {
    const [screens, home] = only ? [SCREENS_OF_ONE, "list"] : [SCREENS, "now"];
    const screen = screens.includes(kind) && kind !== "list" ? kind : home;
    return { screen, name: screen === "list" ? only : null, view: "list", task: null, rest, query };
  }
  const [view, task = null] = VIEWS.includes(rest[1]) ? rest.slice(1) : ["list", rest[1]];
  return { screen: "list", name, view, task, rest: [], query };
}

export function hashOf({ screen, name, view = "list", task = null, rest = [], query = {} }) {
  const on = screen ?? (name ? "list" : "now");
  const path = on === "list" ? ["list", name, view === "list" ? null : view, task] : on === "now" ? [] : [on, ...rest];
  const search = new URLSearchParams(QUERY.filter((key) => query[key]).map((key) => [key, query[key]])).toString();
  const encoded = path.filter(Boolean).map(encodeURIComponent).join("/");
  return `#/${encoded}${search && `?${search}`}`;
}

export const place = signal(parsePlace(location.hash));

/**
 * Go to a place. Without `trail`, the place replaces the entry in the browser's history, as between a list's tasks.
 * Without `screen`, the place is the list `name`, or the screen "now".
 */
export function go({ screen, ...target }, { trail = true } = {}) {
  const hash = hashOf({ screen: target.name ? "list" : screen, ...target });
  if (hash === (location.hash || "#/")) return;
  history[trail ? "pushState" : "replaceState"](null, "", location.pathname + hash);
  place.value = parsePlace(hash);
}

/** Change members of the query, and replace the entry in the browser's history. */
export const setQuery = (changes) =>
  go({ ...place.value, query: { ...place.value.query, ...changes } }, { trail: false });

/** Return a click handler for a link to a place. Clicks for a new tab or window are left to the browser. */
export const follow = (target) => (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(target);
};

const readAddress = () => (place.value = parsePlace(location.hash));
addEventListener("popstate", readAddress);
addEventListener("hashchange", readAddress);
effect(() => {
  session.value; // Its scope decides what the address means.
  readAddress();
});
