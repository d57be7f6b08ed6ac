// The agents at work, and what happens in all lists, on the screen Now.

import { effect, html, signal } from "./vendor.js";
import { Problem, call, session } from "./link.js";
import { attempt, cards, nameOf, now } from "./model.js";
import { happened, readOlder } from "./happened.js";
import { follow, hashOf, place } from "./place.js";
import { Badge, Mark, Since, Text } from "./parts.js";
import { roster } from "./roster.js";
import { say, taskOf } from "./sentences.js";
import { clock, plural, safe, since } from "./text.js";

const SPANS = { "1 h": 3_600_000, "8 h": 28_800_000, today: null };
const MAX_BLOCKS = 3;
const MAX_RESULTS = 3;
const MAX_WITH_STRIPS = 8;
const MAX_LANES = 30;
const MAX_SHARE = 97; // percent of the estimate, since the task isn't finished

export const span = signal("1 h");
const startOfDay = () => new Date().setHours(0, 0, 0, 0);
const startOfSpan = () => (SPANS[span.value] ? now.value - SPANS[span.value] : startOfDay());

// What the agents worked on.

const READ_MS = 5000;
/** The tasks worked on since the start of the day, or 8 hours ago if that is earlier: results of `event.spans`. */
export const spans = signal([]);
let timer = 0;

async function readSpans() {
  timer = 0;
  const from = Math.min(startOfDay(), Date.now() - SPANS["8 h"]);
  try {
    const query = new URLSearchParams({ from_at: from, to_at: Date.now() });
    spans.value = (await call("GET", `/api/v1/spans?${query}`)).spans;
  } catch (error) {
    if (!(error instanceof Problem)) throw error; // The lanes have no strips while the server is away.
  }
}

effect(() => {
  cards.value;
  const isShown = ["now", "agent"].includes(place.value.screen) && session.value && !session.value.scope.list;
  if (isShown && !timer) timer = setTimeout(readSpans, spans.peek().length ? READ_MS : 0);
});

// Lanes.

const isPerson = (name) => name === session.value?.person || name.startsWith("punch ");

/** Return whether a task ended: it was completed or failed, or waits at its gate. */
export const isResult = ({ event }) =>
  event.type === "StatusChanged" && (!!event.waits_for || ["completed", "failed"].includes(event.to));

/** Return the agents by name, each with its tasks in progress, its results, and whether it is here. */
export function listAgents() {
  const agents = new Map();
  const find = (name) => {
    if (!agents.has(name)) agents.set(name, { name, running: [], results: [], spans: [], isHere: false });
    return agents.get(name);
  };
  for (const card of cards.value.values())
    for (const task of card.running ?? []) if (task.owner) find(task.owner).running.push({ ...task, card });
  for (const { name, is_here: isHere } of roster.value?.agents ?? []) if (!isPerson(name)) find(name).isHere = isHere;
  for (const entry of happened.value.events)
    if (isResult(entry) && !isPerson(entry.actor)) find(entry.actor).results.push(entry);
  for (const each of spans.value) if (each.owner && !isPerson(each.owner)) find(each.owner).spans.push(each);
  for (const agent of agents.values()) agent.running.sort((a, b) => a.since - b.since);
  return [...agents.values()].sort((a, b) => !a.running.length - !b.running.length || (a.name < b.name ? -1 : 1));
}

function tally(agent) {
  const ended = agent.spans.filter(({ to_at: at }) => at >= startOfDay());
  const count = (...outcomes) => ended.filter(({ outcome }) => outcomes.includes(outcome)).length;
  const [done, failed] = [count("completed", "waits"), count("failed")];
  return [done && `${done} done today`, failed && `${failed} failed`].filter(Boolean).join(" · ");
}

/** Return an agent's work in one sentence, for screen readers. */
function describe({ name, running: [task] }) {
  if (!task) return name;
  return [name, task.title, since(now.value - task.since), task.active_form].filter(Boolean).join(", ");
}

function Lane({ agent, isCompact }) {
  const { name, running, results } = agent;
  const lists = [...new Set(running.map(({ card }) => nameOf(card)))];
  const link = { screen: "agent", rest: [name] };
  return html`<div class="lane" role="group" aria-label=${safe(describe(agent))}>
    <div class="top"><${Badge} of=${name} /><a class="cut" href=${hashOf(link)} onClick=${follow(link)}>
        <b><${Text} of=${name} /></b></a>
      ${lists.length > 0 && html`<span class="hush cut">
        <${Text} of=${`${isCompact ? `${running[0].title}, ` : ""}in ${lists.join(", ")}`} /></span>`}
      <span class="tally">${tally(agent)}</span></div>
    ${!isCompact && agent.spans.length > 0 && html`<${Strip} agent=${agent} />`}
    ${!isCompact && running.slice(0, MAX_BLOCKS).map((task) =>
      html`<${Doing} key=${`${task.card.conversation} ${task.id}`} task=${task} agent=${agent} />`)}
    ${!isCompact && running.length > MAX_BLOCKS && html`<p class="hush">and ${running.length - MAX_BLOCKS} more</p>`}
    ${!isCompact && results.slice(0, MAX_RESULTS).map((entry) => html`<${Result} key=${entry.seq} entry=${entry} />`)}
  </div>`;
}

/** The bars of an agent's tasks in the chosen span. */
function Strip({ agent }) {
  const [from, to] = [startOfSpan(), now.value];
  const place = (at) => (100 * (Math.min(to, Math.max(from, at)) - from)) / (to - from);
  const shown = agent.spans.filter(({ to_at: end }) => (end ?? to) > from);
  const bars = shown.map(({ from_at: begin, to_at: end, outcome, conversation, task }) => html`
    <i key=${`${conversation} ${task} ${begin}`} class=${`o-${outcome}`}
      style=${{ left: `${place(begin)}%`, width: `${place(end ?? to) - place(begin)}%` }}></i>`);
  const label = `${plural(shown.length, "task")} since ${clock(from)}`;
  return html`<div class="strip" role="img" aria-label=${label}>${bars}</div>
    <div class="axis" aria-hidden="true">${[0, 0.25, 0.5, 0.75].map((share) =>
      html`<span key=${share}>${clock(from + share * (to - from))}</span>`)}<span>now</span></div>`;
}

export function Doing({ task, agent }) {
  const { card, id, title, active_form: doing, since: at } = task;
  const link = { name: card.conversation, task: id };
  const known = agent.spans.find((each) =>
    each.outcome === "running" && each.task === id && each.conversation === card.conversation);
  const estimate = known?.estimate_ms;
  const share = estimate && Math.min(MAX_SHARE, (100 * (now.value - at)) / estimate);
  return html`<div class="doing-now"><${Mark} state="in_progress" />
    <a class="cut" href=${hashOf(link)} onClick=${follow(link)}>
      <b><${Text} of=${title} /></b> <span class="id">#${id}</span></a>
    <span class="took"><${Since} at=${at} />${estimate && ` of ${since(estimate)}`}</span>
    ${doing && html`<${Text} class="now-doing cut" of=${doing} />`}
    ${estimate && html`<div class="progress" aria-hidden="true"><i style=${{ width: `${share}%` }}></i></div>`}
  </div>`;
}

const STATES = { asks: "asks", failed: "failed", completed: "completed" };

export function Result({ entry }) {
  const { conversation, event, at, about } = entry;
  const { more, tone } = say(event);
  const link = { name: conversation, task: taskOf(event) };
  return html`<div class="result"><${Mark} state=${STATES[tone] ?? "completed"} />
    <a class="cut" href=${hashOf(link)} onClick=${follow(link)}><${Text} of=${about?.title ?? `#${taskOf(event)}`} /></a>
    <${Text} class="said cut" of=${more} /><${Since} at=${at} /></div>`;
}

const Choices = ({ of: chosen, options, label }) => html`<div class="choices" role="group" aria-label=${label}>
  ${options.map((option) => html`<button key=${option} aria-pressed=${chosen.value === option}
    onClick=${() => (chosen.value = option)}>${option}</button>`)}</div>`;

function Lanes() {
  const all = listAgents();
  const away = all.filter((agent) => !agent.running.length && !agent.isHere);
  const lanes = all.filter((agent) => agent.running.length || agent.isHere || agent.results.length).slice(0, MAX_LANES);
  const ready = [...cards.value.values()].reduce((sum, { counts }) => sum + counts.pending - (counts.blocked ?? 0), 0);
  const gone = away.filter((agent) => !lanes.includes(agent));
  const isCompact = lanes.length > MAX_WITH_STRIPS;
  const rest = all.length - lanes.length - gone.length;
  return html`<section class="lanes" aria-labelledby="h-agents">
    <div class="column-head"><h2 id="h-agents">Agents</h2><span class="count">${lanes.length}</span>
      <span class="room"></span>
      ${!isCompact && spans.value.length > 0 && html`<${Choices} of=${span} options=${Object.keys(SPANS)} label="Span" />`}
    </div>
    <div class="scroller" tabindex="0" role="group" aria-label="Agents">
      ${lanes.map((agent) => html`<${Lane} key=${agent.name} agent=${agent} isCompact=${isCompact} />`)}
      ${!lanes.length && html`<p class="hush">No agent works. ${plural(ready, "task is", "tasks are")} ready:
        ${" "}<code>punch setup claude-code</code> connects an agent.</p>`}
      ${rest > 0 && html`<p class="hush">${rest} more</p>`}
      ${gone.length > 0 && html`<p class="hush">Not here now: ${gone.slice(0, 5).map(({ name }) =>
        html`<span key=${name}><${Text} of=${name} /> </span>`)}${gone.length > 5 && `and ${gone.length - 5} more`}</p>`}
    </div>
  </section>`;
}

// What happens.

const shownKind = signal("all");
const FEED_KINDS = {
  all: () => true,
  results: isResult,
  people: ({ actor }) => isPerson(actor),
};
const isDoingOnly = ({ event }) =>
  event.type === "TaskEdited" && Object.keys(event).every((key) => ["type", "task", "active_form"].includes(key));

/** Return the entries by call, newest first. Of an agent's changes of what it is doing, only the newest one counts. */
export function groupCalls(events) {
  const calls = new Map();
  const doing = new Set();
  for (const entry of events) {
    const { conversation, call: number, version, actor } = entry;
    if (isDoingOnly(entry)) {
      if (doing.has(actor)) continue;
      doing.add(actor);
    }
    const key = `${conversation} ${number || version}`;
    if (calls.has(key)) calls.get(key).unshift(entry);
    else calls.set(key, [entry]);
  }
  return [...calls].map(([key, entries]) => ({ key, entries }));
}

const TONES = { completed: "good", failed: "bad", asks: "asks", in_progress: "" };

/** One call as a sentence with its time, actor, task and list. */
export function Happened({ entries: [entry, ...others] }) {
  const { at, actor, event, conversation, about } = entry;
  const { verb, more, tone } = say(event);
  const task = taskOf(event);
  const link = { name: conversation, task };
  const list = cards.value.get(conversation);
  const sameVerb = others.filter((other) => say(other.event).verb === verb && taskOf(other.event) !== task);
  return html`<li class="happened"><time title=${new Date(at).toLocaleString()}>${clock(at)}</time>
    <${Badge} of=${actor} size="small" /><div>
      <span class="sr"><${Text} of=${actor} /> </span><span class=${TONES[tone] ?? ""}><${Text} of=${task ? verb.replace(/ it$/, "") : verb} /></span>
      ${task && html` <a href=${hashOf(link)} onClick=${follow(link)}><b><${Text} of=${about?.title ?? `#${task}`} /></b></a>`}
      ${sameVerb.length > 0 && ` and ${plural(sameVerb.length, "other task")}`}
      ${more && html`: <${Text} of=${more.length > 120 ? `${more.slice(0, 119)}…` : more} />`}
      <p class="where"><${Text} of=${list ? nameOf(list) : about?.list ?? conversation} />${task && ` #${task}`}</p>
    </div></li>`;
}

const INITIAL_CALLS = 16;
const shownCalls = signal(INITIAL_CALLS);
const held = signal(null); // the calls shown while the pointer is on the feed

function Feed() {
  const all = groupCalls(happened.value.events.filter(FEED_KINDS[shownKind.value]));
  const top = held.value ? all.findIndex(({ key }) => key === held.value) : 0;
  const shown = all.slice(Math.max(0, top), Math.max(0, top) + shownCalls.value);
  const hold = ({ pointerType }) => pointerType !== "touch" && (held.value = shown[0]?.key ?? null);
  const older = () => {
    shownCalls.value += INITIAL_CALLS;
    if (shownCalls.value > all.length) attempt(readOlder);
  };
  return html`<section class="feed" aria-labelledby="h-feed">
    <div class="column-head"><h2 id="h-feed">What happens</h2>
      ${top > 0 && html`<button class="new" onClick=${() => (held.value = null)}>${top} new ↑</button>`}
      <span class="room"></span><${Choices} of=${shownKind} options=${Object.keys(FEED_KINDS)} label="Show" /></div>
    <div class="scroller" tabindex="0" role="group" aria-label="Newest first" onPointerEnter=${hold}
      onPointerLeave=${() => (held.value = null)}>
      <div role="log" aria-live="off" aria-label="What happens"><ol>
        ${shown.map(({ key, entries }) => html`<${Happened} key=${key} entries=${entries} />`)}</ol></div>
      ${!shown.length && html`<p class="hush">Nothing yet.</p>`}
      ${(happened.value.hasOlder || all.length > shown.length) && shown.length > 0 && html`
        <button class="more" onClick=${older}>Older</button>`}
    </div>
  </section>`;
}

export default function Agents() {
  return html`<${Lanes} /><${Feed} />`;
}
