// The screen Agent: the tasks that one agent holds, its results, and what it did, in all lists.

import { html } from "./vendor.js";
import { Doing, Happened, Result, groupCalls, isResult, listAgents } from "./agents.js";
import { Head } from "./frame.js";
import { happened, readOlder } from "./happened.js";
import { attempt } from "./model.js";
import { follow, hashOf, place } from "./place.js";
import { Badge, Text } from "./parts.js";
import { roster } from "./roster.js";
import { safe } from "./text.js";
import { GLYPHS } from "./words.js";

const MAX_RESULTS = 20;

export default function Agent() {
  const [name = ""] = place.value.rest;
  const agent = listAgents().find((other) => other.name === name) ?? { name, running: [], spans: [] };
  const present = roster.value?.agents.find((other) => other.name === name);
  const events = happened.value.events.filter(({ actor }) => actor === name);
  const results = events.filter(isResult).slice(0, MAX_RESULTS);
  const runs = ({ conversation, id }) =>
    agent.running.some((task) => task.card.conversation === conversation && task.id === id);
  const claimed = (present?.tasks ?? []).filter((task) => !runs(task));
  return html`<${Head} title=${name || "Agent"} />
    <main class="board agent" id="main">
      <p class="facts"><${Badge} of=${name} />
        <span>${present ? safe(present.facts.join(` ${GLYPHS.dot} `)) : roster.value && "Not here now."}</span></p>
      <section aria-labelledby="h-holds"><h2 id="h-holds">Works on</h2>
        ${agent.running.map((task) => html`<${Doing} key=${`${task.card.conversation} ${task.id}`} task=${task}
          agent=${agent} />`)}
        ${claimed.map((task) => html`<${Claimed} key=${`${task.conversation} ${task.id}`} task=${task} />`)}
        ${!agent.running.length && !claimed.length && html`<p class="hush">Nothing.</p>`}</section>
      <section aria-labelledby="h-results"><h2 id="h-results">Results</h2>
        ${results.map((entry) => html`<${Result} key=${entry.seq} entry=${entry} />`)}
        ${!results.length && html`<p class="hush">None among the events read so far.</p>`}</section>
      <section aria-labelledby="h-did"><h2 id="h-did">What it did</h2>
        <ol>${groupCalls(events).map(({ key, entries }) => html`<${Happened} key=${key} entries=${entries} />`)}</ol>
        ${!events.length && html`<p class="hush">Nothing among the events read so far.</p>`}
        ${happened.value.hasOlder && html`<button class="more" onClick=${() => attempt(readOlder)}>Older</button>`}
      </section>
    </main>`;
}

function Claimed({ task }) {
  const target = { name: task.conversation, task: task.id };
  return html`<p><a href=${hashOf(target)} onClick=${follow(target)}>
    <${Text} of=${`${task.list} #${task.id} ${task.title}`} /></a></p>`;
}
