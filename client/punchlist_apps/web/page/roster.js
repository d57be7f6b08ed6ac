// The agents and people that are here, and the tasks that they have claimed, as `punch who` shows them.

import { effect, signal } from "./vendor.js";
import { Problem, call, session } from "./link.js";
import { cards, list } from "./model.js";
import { place } from "./place.js";

const SCREENS = ["now", "inbox", "agent", "who"];
const SOON_MS = 500; // after a change to a list, since an agent may have made it
const POLL_MS = 2000; // Agents without tasks come and go without changing a list.

/** The result of `GET /api/v1/agents`; null until the first one has arrived. */
export const roster = signal(null);
let timer = 0;
let dueAt = Infinity;

function scheduleRead(ms) {
  if (Date.now() + ms >= dueAt) return;
  clearTimeout(timer);
  dueAt = Date.now() + ms;
  timer = setTimeout(read, ms);
}

async function read() {
  try {
    if (session.value && !document.hidden) {
      const result = await call("GET", "/api/v1/agents");
      if (JSON.stringify(result) !== JSON.stringify(roster.peek())) roster.value = result;
    }
  } catch (error) {
    // While the server is unreachable, the last roster stays visible, as on the other screens.
    if (!(error instanceof Problem)) throw error;
  }
  dueAt = Infinity;
  if (SCREENS.includes(place.value.screen)) scheduleRead(POLL_MS);
}

effect(() => {
  cards.value;
  list.value;
  if (SCREENS.includes(place.value.screen)) scheduleRead(roster.peek() ? SOON_MS : 0);
});
