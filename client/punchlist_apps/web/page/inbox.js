// The screen Inbox: what needs you, one question at a time, with everything needed to answer it.

import { effect, html, useEffect, useState } from "./vendor.js";
import { addCommands } from "./commands.js";
import { Head } from "./frame.js";
import { Link } from "./detail.js";
import { call, session } from "./link.js";
import { API, attempt, cards, go, nameOf } from "./model.js";
import { SIGNS, answers, conflicts, isAnswered, isForOthers, needs, open, taskPath, wordsOf } from "./needs.js";
import { Buttons, Needs, buildCommands, selectedNeed, shownNeeds } from "./now.js";
import { follow, hashOf, place } from "./place.js";
import { Badge, Mark, Since, Text } from "./parts.js";
import { say, taskOf } from "./sentences.js";
import { clock, safe, safeBlock } from "./text.js";
import { GLYPHS } from "./words.js";

const SEEN_KEY = "punchlist.seen";
const MAX_SEEN = 500;
const MAX_EVENTS = 200;

const show = ({ list, id }) => go({ screen: "inbox", rest: [list, id] }, { trail: false });
addCommands("inbox", buildCommands(open));

/** The need that the address names, which may have been answered; null if it names none. */
const named = () => {
  const [list, id] = place.value.rest;
  return id && { list, id, key: `${list} ${id}`, listTitle: cards.value.has(list) ? nameOf(cards.value.get(list)) : list };
};

effect(() => {
  if (place.value.screen === "inbox" && place.value.rest.length) selectedNeed.value = named().key;
});

export default function Inbox() {
  const shown = shownNeeds.value;
  const at = shown.findIndex(({ key }) => key === selectedNeed.value);
  const need = shown[at] ?? needs.value.find(({ key }) => key === selectedNeed.value) ?? named();
  const next = shown.slice(at + 1).find((other) => !isAnswered(other));
  return html`<${Head} title="Inbox">${at >= 0 && html`<span class="done">${at + 1} of ${shown.length}</span>`}<//>
    <main class="now inbox" id="main"><${Needs} onOpen=${open} />
      ${need ? html`<${Question} key=${need.key} need=${need} next=${next} />`
        : html`<section class="question"><div class="teach"><h2>Nothing needs you</h2>
            <p>Tasks that wait for your yes, and tasks that failed, appear here.</p></div></section>`}
    </main>`;
}

const loadSeen = () => JSON.parse(localStorage.getItem(SEEN_KEY) ?? "{}");

/** Record that a task was looked at, and return when it was looked at before. */
function markSeen(key) {
  const { [key]: before, ...others } = loadSeen();
  const kept = Object.entries(others).slice(1 - MAX_SEEN);
  localStorage.setItem(SEEN_KEY, JSON.stringify(Object.fromEntries([...kept, [key, Date.now()]])));
  return before;
}

/** Read a task, and what happened to it since a time. */
async function read(need, since) {
  const path = `${API}${encodeURIComponent(need.list)}/events?limit=${MAX_EVENTS}`;
  const [{ task }, { events }] = await Promise.all([
    call("GET", taskPath(need)), since ? call("GET", path) : { events: [] },
  ]);
  return { task, news: events.filter(({ at, event }) => at > since && taskOf(event) === need.id) };
}

/** Guards against a second tap: the buttons wait for a moment when another question takes the place of an answered one. */
const GUARD_MS = 500;

function Question({ need, next }) {
  const [seenAt] = useState(() => markSeen(need.key));
  const [found, setFound] = useState(null);
  const [isReady, setReady] = useState(!answers.peek().size);
  useEffect(() => {
    attempt(() => read(need, seenAt)).then(setFound);
  }, [need.version, conflicts.value.get(need.key)]);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), GUARD_MS);
    return () => clearTimeout(timer);
  }, []);
  const { task, news = [] } = found ?? {};
  const { list, listTitle, id } = need;
  const target = { name: list, task: id };
  const title = task?.title ?? need.title;
  const owner = task?.owner ?? need.owner;
  const kind = need.kind ?? (task?.waits_for === "yes" ? "yes" : null);
  const asked = kind === "yes" && task ? { ...need, kind, owner, by: task.gate?.by } : need;
  const text = task ? task.fail_reason || task.result_summary : need.text;
  const changed = conflicts.value.has(need.key);
  return html`<section class="question" aria-labelledby="h-question">
    <div class="scroller" tabindex="0" role="group" aria-label="The question">
      <p class="kind"><span class=${`pill k-${kind}`}><${Mark} state=${SIGNS[kind] ?? "completed"} />
        ${kind ? wordsOf(asked).toLowerCase() : "answered"}</span><span class="room"></span>
        <a href=${hashOf(target)} onClick=${follow(target)}><${Text} of=${listTitle} />${id && ` #${id}`}</a></p>
      <h2 id="h-question"><${Text} of=${title} /></h2>
      ${owner && html`<p class="facts"><${Badge} of=${owner} size="small" /><${Text} of=${owner} />
        ${need.since && html`<span>${GLYPHS.dot} <${Since} at=${need.since} /> ago</span>`}</p>`}
      ${changed && html`<p class="changed" role="status">It has changed since you read it. This is how it is now.</p>`}
      ${news.length > 0 && html`<div class="box"><h3>Since you last looked, ${clock(seenAt)}</h3><ul>
        ${news.map((entry) => html`<${News} key=${entry.seq} entry=${entry} />`)}</ul></div>`}
      ${text && html`<p class="prose">${safeBlock(text)}</p>`}
      ${task?.description && html`<details><summary>Description</summary>
        <p class="prose">${safeBlock(task.description)}</p></details>`}
      ${kind && task?.blocks?.length > 0 && html`<p class="frees">${kind === "yes" ? "Your yes" : "It"} frees
        ${" "}${task.blocks.map((other) => `#${other}`).join(", ")}</p>`}
      ${task?.links?.length > 0 && html`<div class="box">
        ${task.links.map((link) => html`<${Link} key=${link.kind + link.to} link=${link} />`)}</div>`}
      ${task?.notes?.length > 0 && html`<div class="box"><h3>Notes</h3>${task.notes.map((note) => html`
        <p key=${note.version} class="prose"><span class="hush"><${Text} of=${note.actor} />, ${clock(note.at)}</span>
          ${" "}${safeBlock(note.text)}</p>`)}</div>`}
      ${next && html`<button class="box next" onClick=${() => show(next)}><span class="hush">Next</span>
        <${Mark} state=${SIGNS[next.kind]} /><${Text} class="cut" of=${next.title} /><span class="room"></span>›</button>`}
    </div>
    ${kind && (isForOthers(asked)
      ? html`<p class="refused">${whyNot(asked)}</p>`
      : html`<fieldset class="thumbs" disabled=${!isReady}><legend class="sr">Your answer</legend>
          <${Buttons} need=${{ ...need, kind, version: need.version ?? task?.version }} onOpen=${open} /></fieldset>`)}
  </section>`;
}

const whyNot = ({ by }) =>
  by && by !== session.value?.person ? `Only ${safe(by)} can say yes.` : "You did this one yourself, so another person answers.";

function News({ entry: { actor, event } }) {
  const { verb, more, tone } = say(event);
  return html`<li><${Badge} of=${actor} size="small" /><span><span class="sr">${safe(actor)} </span>
    <span class=${tone === "failed" ? "bad" : ""}>${safe(verb)}</span>${more && html`: <${Text} of=${more} />`}</span></li>`;
}
