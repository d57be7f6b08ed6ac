// The screen of agents and people, with the tasks they have claimed, in the wording of `punch who`.

import { html } from "./vendor.js";
import { session } from "./link.js";
import { follow, hashOf } from "./place.js";
import { Mark, Text } from "./parts.js";
import { Head } from "./frame.js";
import { roster } from "./roster.js";
import { freeAt } from "./rows.js";
import { safe } from "./text.js";
import { GLYPHS } from "./words.js";

const EMPTY = "No agent or person has been here since the daemon started.";
const EMPTY_LIST = "No agent or person works in this list.";

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
