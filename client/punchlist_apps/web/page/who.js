// Who is there, in the words of `punch who`: agents and people, and what they hold.

import { effect, html, signal } from "./vendor.js";
import { Problem, call, session } from "./link.js";
import { cards, go, hashOf, list, place } from "./model.js";
import { Mark, Text } from "./parts.js";
import { freeAt } from "./rows.js";
import { safe } from "./text.js";
import { GLYPHS } from "./words.js";

const SOON_MS = 500; // a change of a list is a call of somebody
const EVERY_MS = 2000; // who comes or leaves with no task changes no list
const NOBODY = "No agent or person has been here since the daemon started.";
const NOBODY_HERE = "No agent or person works in this list.";
const found = signal(null);
let timer = 0;
let dueAt = Infinity;

function readIn(ms) {
  if (Date.now() + ms >= dueAt) return;
  clearTimeout(timer);
  dueAt = Date.now() + ms;
  timer = setTimeout(read, ms);
}

async function read() {
  try {
    if (session.value && !document.hidden) found.value = await call("GET", "/api/v1/agents");
  } catch (error) {
    if (!(error instanceof Problem)) throw error; // the last picture stays, as everywhere while the server is away
  }
  dueAt = Infinity;
  if (place.value.view === "who") readIn(EVERY_MS);
}

effect(() => {
  cards.value;
  list.value;
  if (place.value.view === "who") readIn(found.peek() ? SOON_MS : 0);
});

export function Who() {
  const told = found.value;
  return html`<main class="board who" id="main"><section>
    <h1>Who is there</h1>
    ${!told
      ? html`<p class="hush" role="status">Opening…</p>`
      : html`<ul>${told.agents.map((one) => html`<${Somebody} key=${one.name} one=${one} />`)}</ul>`}
    ${told && (told.others || !told.agents.length) && html`<p class="hush">
      ${told.others || (session.value?.scope?.list ? NOBODY_HERE : NOBODY)}</p>`}
  </section></main>`;
}

const Somebody = ({ one }) => html`<li>
  <${Mark} state=${one.is_here ? "in_progress" : "pending"} />
  <div><b><${Text} of=${one.name} /></b><span class="sr">${one.is_here ? ", here" : ", not here"}</span>
    ${" "}<span class="hush">${safe(one.facts.join(` ${GLYPHS.dot} `))}</span>
    ${one.tasks.length > 0 && html`<ul>${one.tasks.map((task) =>
      html`<${Held} key=${`${task.conversation} ${task.id}`} task=${task} />`)}</ul>`}
  </div>
</li>`;

function Held({ task }) {
  const to = { name: task.conversation, task: task.id };
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  const free = task.lease_expires_at && html` <span class="hush">${freeAt(task.lease_expires_at)}</span>`;
  return html`<li>
    <a href=${hashOf(to)} onClick=${open}><${Text} of=${`${task.list} #${task.id} ${task.title}`} /></a>${free}</li>`;
}
