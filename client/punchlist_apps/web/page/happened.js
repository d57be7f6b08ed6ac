// What happened in all lists, newest first, with each event's task and list.

import { effect, signal } from "./vendor.js";
import { call, session } from "./link.js";
import { attempt, eventWatchers, link } from "./model.js";
import { place } from "./place.js";

const SCREENS = ["now", "agent"];
const PAGE_SIZE = 60;
const MAX_KEPT = 600;

/** The known events, newest first, and whether older ones can be read. */
export const happened = signal({ events: [], hasOlder: true });

/** Add events in any order, and keep at least `kept` of the newest. */
function add(found, hasOlder = happened.peek().hasOlder, kept = happened.peek().events.length) {
  const bySeq = new Map([...happened.peek().events, ...found].map((entry) => [entry.seq, entry]));
  const events = [...bySeq.values()].sort((a, b) => b.seq - a.seq);
  happened.value = { events: events.slice(0, Math.max(MAX_KEPT, kept)), hasOlder };
}

/** Read the newest events, or those before the oldest known one. */
export async function readOlder() {
  const before = happened.peek().events.at(-1)?.seq;
  const query = new URLSearchParams({ limit: PAGE_SIZE, ...(before && { before }) });
  const page = await attempt(() => call("GET", `/api/v1/events/recent?${query}`));
  if (page) add(page.events, page.events.length === PAGE_SIZE, Infinity);
}

eventWatchers.add((events) => add(events));

let isFollowing = false;
effect(() => {
  const follows = SCREENS.includes(place.value.screen) && !!session.value && !session.value.scope.list;
  if (follows === isFollowing) return;
  isFollowing = follows;
  link.followEvents(follows);
  if (follows) {
    // What happened in between is unknown, so the newest events are read again.
    happened.value = { events: [], hasOlder: true };
    readOlder();
  }
});
