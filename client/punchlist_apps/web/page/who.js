// The screen of agents and people, with the tasks they have claimed, in the wording of `punch who`.

import { effect, html, signal } from "./vendor.js";
import { Problem, call, session } from "./link.js";
import { cards, list } from "./model.js";
import { follow, hashOf, place } from "./place.js";
import { Mark, Text } from "./parts.js";
import { Head } from "./frame.js";
import { freeAt } from "./rows.js";
import { safe } from "./text.js";
import { GLYPHS } from "./words.js";

const SOON_MS = 500; // after a change to a list, since an agent may have made it
const POLL_MS = 2000; // Agents without tasks come and go without changing a list.
const EMPTY = "No agent or person has been here since the daemon started.";
const EMPTY_LIST = "No agent or person works in this list.";
const roster = signal(null);
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
    if (session.value && !document.hidden) roster.value = await call("GET", "/api/v1/agents");
  } catch (error) {
    // While the server is unreachable, the last roster stays visible, as on the other screens.
    if (!(error instanceof Problem)) throw error;
  }
  dueAt = Infinity;
  if (place.value.screen === "who") scheduleRead(POLL_MS);
}

effect(() => {
  cards.value;
  list.value;
  if (place.value.screen === "who") scheduleRead(roster.peek() ? SOON_MS : 0);
});

export default function Who() {
  const current = roster.value;
  return html`<${Head} title="Who is there" /><main class="board who" id="main"><section>
    ${!current
      ? html`<p class="hush" role="status">Opening…</p>`
      : html`<ul>${current.agents.map((agent) => html`<${Agent} key=${agent.name} agent=${agent} />`)}</ul>`}
    ${current && (current.others || !current.agents.length) && html`<p class="hush">
      ${current.others || (session.value?.scope?.list ? EMPTY_LIST : EMPTY)}</p>`}
  </section></main>`;
}

const Agent = ({ agent }) => html`<li>
  <${Mark} state=${agent.is_here ? "in_progress" : "pending"} />
  <div><b><${Text} of=${agent.name} /></b><span class="sr">${agent.is_here ? ", here" : ", not here"}</span>
    ${" "}<span class="hush">${safe(agent.facts.join(` ${GLYPHS.dot} `))}</span>
    ${agent.tasks.length > 0 && html`<ul>${agent.tasks.map((task) =>
      html`<${ClaimedTask} key=${`${task.conversation} ${task.id}`} task=${task} />`)}</ul>`}
  </div>
</li>`;

function ClaimedTask({ task }) {
  const target = { name: task.conversation, task: task.id };
  const free = task.lease_expires_at && html` <span class="hush">${freeAt(task.lease_expires_at)}</span>`;
  return html`<li>
    <a href=${hashOf(target)} onClick=${follow(target)}>
      <${Text} of=${`${task.list} #${task.id} ${task.title}`} /></a>${free}</li>`;
}
