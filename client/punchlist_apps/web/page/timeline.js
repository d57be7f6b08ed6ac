// The timeline: how many tasks are done over time, when they will be, and what each agent worked on.

import { computed, effect, html, signal, useLayoutEffect, useRef } from "./vendor.js";
import { addCommands } from "./commands.js";
import { LOOKBACK_MS, forecast, formatAhead, formatRange } from "./forecast.js";
import { Head } from "./frame.js";
import { MAX_LANES, addTotals, endOf, findExtremes, groupByOwner, layOutLanes } from "./lanes.js";
import { Problem, session } from "./link.js";
import { cards, list, nameOf, showToast } from "./model.js";
import { go, hashOf, place, setQuery } from "./place.js";
import { Badge, Text } from "./parts.js";
import { readSpans } from "./ready.js";
import { clock, plural, safe, since } from "./text.js";

const HOUR_MS = 3_600_000;
const LIMIT = 2000; // spans read of a list
const FRESH_MS = 2000; // A changing list is read again at this pace.
const MAX_LISTS = 8;
const HEAD_PX = 128; // room for the names of the agents
const CHART_PX = 190;
const AHEAD = 0.18; // share of the width after now
const MIN_ZOOM_MS = 10_000;

/** The spans of time: title, and when it begins. */
const SPANS = {
  hour: ["1 h", (now) => now - HOUR_MS],
  day: ["today", (now) => Math.min(new Date(now).setHours(0, 0, 0, 0), now - HOUR_MS)],
  week: ["week", (now) => now - 7 * 24 * HOUR_MS],
};
const OUTCOMES = {
  completed: "done", failed: "failed", waits: "asks for a yes", running: "running, with its estimate", released: "given back",
};

const spanName = computed(() => (Object.hasOwn(SPANS, place.value.query.span) ? place.value.query.span : "day"));
/** The lists that are shown; empty for all. */
const names = computed(() =>
  place.value.name ? [place.value.name] : (place.value.query.lists ?? "").split(",").filter(Boolean).slice(0, MAX_LISTS));
const isShown = computed(() => place.value.screen === "timeline" || place.value.view === "timeline");

const data = signal(null); // { key, spans, totals, recent, cut, now, from }
const zoom = signal(null); // { from, to } of the part that is shown
const selection = signal(null); // [x, x] that is being drawn

const keyOf = () => `${spanName.value} ${names.value.join(",")}`;

let timer = 0;
let isReading = false;
async function read() {
  timer = 0;
  if (isReading || document.hidden) return readSoon();
  isReading = true;
  const [key, now] = [keyOf(), Date.now()];
  const from = SPANS[spanName.value][1](now);
  const lists = names.value.length ? names.value : [session.value.scope.list ?? ""];
  try {
    const results = await Promise.all(lists.map((name) => readSpans(name, from, now, LIMIT)));
    const spans = results.flatMap((result) => result.spans);
    const totals = addTotals(results.map((result) => result.totals));
    const recent = await Promise.all(lists.map((name) => readSpans(name, now - LOOKBACK_MS, now, 1)));
    const ready = forecast(addTotals(recent.map((result) => result.totals)), now);
    if (key === keyOf()) data.value = { key, spans, totals, ready, cut: results.some((result) => result.cut), now, from };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.kind !== "away") showToast(error.message, "bad");
    if (key === keyOf() && data.value?.key !== key) data.value = { key, problem: error.message };
  }
  isReading = false;
}
const readSoon = () => (timer ||= setTimeout(read, FRESH_MS));

effect(() => {
  const key = keyOf();
  if (!isShown.value || !session.value) return;
  if (place.value.name) list.value;
  else cards.value;
  if (data.peek()?.key === key) return void readSoon();
  zoom.value = null;
  clearTimeout(timer);
  timer = setTimeout(read, 0);
});

/** The whole time: from the first span on, with room for the forecast after now. */
const whole = computed(() => {
  const { spans, totals, now, from } = data.value;
  const first = Math.min(now - 60_000, spans[0]?.from_at ?? now, ...spans.map((span) => span.from_at));
  const begin = spans.length ? Math.max(from, first - (now - first) * 0.02) : from;
  return { from: begin, to: now + ((now - begin) * AHEAD) / (1 - AHEAD) };
});
/** The part of time that is shown. */
const view = computed(() => zoom.value ?? whole.value);

const fit = { run: () => (zoom.value = null) };
addCommands("timeline", { fit });
addCommands("list/timeline", { fit });

/** Round steps between the times of an axis. */
const STEPS_MS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400].map((seconds) => seconds * 1000);

function listTicks({ from, to }, wide) {
  const step = STEPS_MS.find((each) => (to - from) / each <= wide / 90) ?? STEPS_MS.at(-1);
  const shift = new Date(from).getTimezoneOffset() * 60_000;
  const first = Math.ceil((from - shift) / step) * step + shift;
  return Array.from({ length: Math.floor((to - first) / step) + 1 }, (_, at) => first + at * step);
}

/** A path through totals, which change in steps. */
const drawSteps = (points) => points.map(([x, y], at) => (at ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}`)).join("");

function Chart({ x, wide }) {
  const { totals, ready, now } = data.value;
  const most = Math.max(1, ...totals.map((each) => each.all));
  const y = (count) => CHART_PX - 26 - (count / most) * (CHART_PX - 48);
  const shown = totals.filter((each, at) => each.at <= now && (x(totals[at + 1]?.at ?? now) >= 0));
  const last = totals.at(-1) ?? { all: 0, done: 0 };
  const line = (name) => drawSteps([...shown.map((each) => [Math.max(0, x(each.at)), y(each[name])]), [x(now), y(last[name])]]);
  const area = (name) => shown.length > 0 && `${line(name)}V${y(0)}H${Math.max(0, x(shown[0].at)).toFixed(1)}z`;
  const aim = y(last.all - last.failed);
  const start = `M${x(now).toFixed(1)} ${y(last.done).toFixed(1)}L`;
  const reach = (at) => Math.min(x(at), 4 * wide).toFixed(1);
  const ticks = listTicks(view.value, wide);
  return html`<svg class="chart" width=${wide} height=${CHART_PX} aria-hidden="true">
    ${ticks.map((at) => html`<line key=${at} x1=${x(at)} x2=${x(at)} y1="14" y2=${CHART_PX - 20} />
      <text x=${x(at)} y=${CHART_PX - 6} text-anchor="middle">${clock(at)}</text>`)}
    <text x="4" y=${y(most) - 5}>${most.toLocaleString()} tasks</text>
    <path class="all" d=${area("all")} /><path class="done" d=${area("done")} />
    <path class="all line" d=${line("all")} /><path class="done line" d=${line("done")} />
    ${ready && html`<path class="cone" d=${`${start}${reach(ready.early)} ${aim}L${reach(ready.late)} ${aim}z`} />
      <path class="ahead" d=${`${start}${x(ready.at).toFixed(1)} ${aim}`} />
      <circle cx=${x(ready.at)} cy=${aim} r="4.5" />
      <text class="at" x=${x(ready.at)} y=${aim - 9} text-anchor="middle">${formatAhead(ready.at)}</text>`}
  </svg>`;
}

const target = ({ conversation: name, task }) => ({ name, task });

/** A block of a lane. One task is a link to it; several are a button that shows them larger. */
function Block({ block, now }) {
  const { spans, outcome, x, wide, room } = block;
  const [span] = spans;
  const style = { left: `${x}px`, width: `${Math.max(wide, Math.min(room, 260))}px`, "--wide": `${wide}px` };
  if (spans.length > 1) {
    const enlarge = () => {
      const [from, to] = [Math.min(...spans.map((each) => each.from_at)), Math.max(...spans.map((each) => endOf(each, now)))];
      zoom.value = widen({ from, to });
    };
    return html`<button class=${`block o-${outcome}`} style=${style} onClick=${enlarge}>${spans.length} tasks</button>`;
  }
  const estimated = outcome === "running" && span.estimate_ms;
  if (estimated) style["--estimate"] = `${Math.max(0, view.value.scale * (span.from_at + span.estimate_ms - now))}px`;
  const { name, task } = target(span);
  const when = `${clock(span.from_at)} to ${span.to_at === undefined ? "now" : clock(span.to_at)}`;
  return html`<a class=${`block o-${outcome}${estimated ? " estimated" : ""}`} style=${style} href=${hashOf({ name, task })}
    title=${`#${task} ${safe(span.title)}: ${OUTCOMES[outcome] ?? outcome}, ${when}, ${since(endOf(span, now) - span.from_at)}`}
    onClick=${(event) => event.ctrlKey || event.metaKey || (event.preventDefault(), go({ name, task }))}>
    <bdi>${safe(span.title)}</bdi><span class="sr">, ${OUTCOMES[outcome] ?? outcome}, ${when}</span></a>`;
}

/** Return a part of time with a little room on both sides. */
function widen({ from, to }) {
  const room = Math.max(MIN_ZOOM_MS, to - from) * 0.1;
  return { from: from - room, to: Math.max(to, from + MIN_ZOOM_MS) + room };
}

function Lane({ lane, now }) {
  const { owner, rows, busy } = lane;
  const [host, ...rest] = owner.split("/");
  const share = `${Math.round(100 * busy)} % busy`;
  return html`<section class="time-lane" aria-label=${`${safe(owner) || "nobody"}, ${share}, ${plural(lane.spans.length, "task")}`}>
    <div class="lane-head">${owner && html`<${Badge} of=${owner} />`}
      <span class="cut"><b><${Text} of=${host || "nobody"} /></b>${rest.length > 0 && html`<${Text} class="hush" of=${rest.join("/")} />`}</span>
      <span class="hush share">${share}</span></div>
    ${rows.map((blocks, at) => html`<div key=${at} class="lane-row">
      ${blocks.map((block) => html`<${Block} key=${`${block.spans[0].conversation} ${block.spans[0].version}`} block=${block} now=${now} />`)}</div>`)}
  </section>`;
}

const Figure = ({ value, children }) => html`<span><b>${value}</b> ${children}</span>`;

function Figures({ lanes }) {
  const { spans, totals, ready, now } = data.value;
  const last = totals.at(-1) ?? { all: 0, done: 0 };
  const { lost, asks } = findExtremes(spans, now);
  const isRunning = spans.some((span) => span.to_at === undefined);
  return html`<div class="figures">
    <${Figure} value=${`${last.done.toLocaleString()} of ${last.all.toLocaleString()}`}>done<//>
    ${ready && html`<${Figure} value=${`${Math.round(ready.perHour)} an hour`}>the last two hours<//>`}
    ${ready && isRunning && html`<${Figure} value=${formatAhead(ready.at)}>ready, at this speed (${formatRange(ready)})<//>`}
    ${!ready && lanes.length > 0 && last.done < last.all && html`<span>too few results for a forecast</span>`}
    ${lost >= 60_000 && html`<${Figure} value=${since(lost)}>lost to failures<//>`}
    ${asks > 0 && html`<${Figure} value=${asks}>asked for a yes<//>`}
  </div>`;
}

const Card = ({ title, children, value }) => html`<div><span class="hush">${title}</span><b class="cut">${children}</b>
  <span>${value}</span></div>`;
const TaskName = ({ of: span }) => html`<a href=${hashOf(target(span))}>#${span.task} <${Text} of=${span.title} /></a>`;

function Extremes({ lanes }) {
  const { spans, now } = data.value;
  const { slowest, most } = findExtremes(spans, now);
  const idlest = lanes.reduce((best, lane) => (lane.idle.ms > (best?.idle.ms ?? 0) ? lane : best), null);
  return html`<div class="extremes">
    ${slowest && html`<${Card} title="Slowest" value=${`${since(slowest.ms)}, ${OUTCOMES[slowest.span.outcome]?.split(",")[0] ?? ""}`}>
      <${TaskName} of=${slowest.span} /><//>`}
    ${most && html`<${Card} title="Most tries" value=${`${most.count} tries`}><${TaskName} of=${most.span} /><//>`}
    ${idlest && html`<${Card} title="Idle longest" value=${`${since(idlest.idle.ms)} from ${clock(idlest.idle.at)}`}>
      <${Text} of=${idlest.owner || "nobody"} /><//>`}
  </div>`;
}

function Plane() {
  const box = useRef(null);
  const wideSignal = useRef(null);
  wideSignal.current ??= signal(0);
  useLayoutEffect(() => {
    const measure = () => (wideSignal.current.value = Math.max(120, box.current.clientWidth - HEAD_PX));
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    measure();
    return () => watch.disconnect();
  }, []);
  const wide = wideSignal.current.value;
  const { now, spans, cut } = data.value;
  const { from, to } = view.value;
  const scale = wide / (to - from);
  view.value.scale = scale;
  const x = (at) => (at - from) * scale;
  const all = groupByOwner(spans, now);
  const lanes = wide ? layOutLanes(all.slice(0, MAX_LANES), x, now, wide) : [];
  const timeAt = (event) => from + (event.clientX - box.current.getBoundingClientRect().left - HEAD_PX) / scale;
  const onWheel = (event) => {
    if (!event.shiftKey) return;
    event.preventDefault();
    const at = timeAt(event);
    const factor = Math.max(MIN_ZOOM_MS / (to - from), 1.2 ** Math.sign(event.deltaY || event.deltaX));
    const wider = { from: at - (at - from) * factor, to: at + (to - at) * factor };
    zoom.value = wider.to - wider.from < whole.value.to - whole.value.from ? wider : null;
  };
  const onPointerDown = (event) => {
    if (event.button || event.pointerType === "touch" || event.target.closest("a, button")) return;
    const plane = event.currentTarget;
    const begin = timeAt(event);
    const move = (moved) => (selection.value = [begin, timeAt(moved)].sort((a, b) => a - b));
    const end = () => {
      const [left, right] = selection.value ?? [0, 0];
      if ((right - left) * scale > 8) zoom.value = { from: left, to: Math.max(right, left + MIN_ZOOM_MS) };
      selection.value = null;
      plane.removeEventListener("pointermove", move);
    };
    plane.setPointerCapture(event.pointerId);
    plane.addEventListener("pointermove", move);
    plane.addEventListener("lostpointercapture", end, { once: true });
  };
  const at = (time) => `${HEAD_PX + x(time)}px`;
  return html`<${Figures} lanes=${all} />
    <div class="plane" ref=${box} onPointerDown=${onPointerDown} onWheel=${onWheel}>
      ${wide > 0 && html`<${Chart} x=${x} wide=${wide} />`}
      ${lanes.map((lane) => html`<${Lane} key=${lane.owner} lane=${lane} now=${now} />`)}
      ${now >= from && now <= to && html`<div class="now-line" style=${{ left: at(now) }} aria-hidden="true"><b>${clock(now)}</b></div>`}
      ${selection.value && html`<div class="selected" aria-hidden="true" style=${{ left: at(selection.value[0]),
        width: `${(selection.value[1] - selection.value[0]) * scale}px` }}></div>`}
    </div>
    ${all.length > MAX_LANES && html`<p class="hush">and ${plural(all.length - MAX_LANES, "more agent")}</p>`}
    ${cut && html`<p class="hush">Only the newest ${LIMIT.toLocaleString()} spans of work are shown.</p>`}
    <p class="legend" aria-hidden="true">${Object.entries(OUTCOMES).map(([name, title]) => html`<span key=${name}>
      <i class=${`o-${name}`}></i>${title}</span>`)}<span>a gap: nothing was claimed</span></p>
    <${Extremes} lanes=${all} />`;
}

const Spans = () => html`<div class="segments" role="group" aria-label="Time">
  ${Object.entries(SPANS).map(([name, [title]]) => html`<button key=${name} aria-pressed=${spanName.value === name ? "true" : "false"}
    onClick=${() => setQuery({ span: name })}>${title}</button>`)}</div>
  <button disabled=${!zoom.value} onClick=${fit.run}>Fit</button>`;

/** The choice of a list. Several can be named in the address. */
function Lists() {
  const chosen = names.value;
  const title = (name) => safe(cards.value.has(name) ? nameOf(cards.value.get(name)) : name);
  const several = chosen.length > 1 && chosen.join(",");
  return html`<select aria-label="Lists" value=${chosen.join(",")} onChange=${(event) => setQuery({ lists: event.currentTarget.value })}>
    <option value="">All lists</option>
    ${several && html`<option value=${several}>${title(chosen[0])} + ${chosen.length - 1}</option>`}
    ${[...cards.value.keys()].map((name) => html`<option key=${name} value=${name}>${title(name)}</option>`)}
  </select>`;
}

function Content() {
  const current = data.value?.key === keyOf() ? data.value : null;
  if (!current) return html`<p class="hush" role="status">Reading what was worked on…</p>`;
  if (current.problem) return html`<p class="hush" role="alert">${safe(current.problem)}</p>`;
  if (!current.spans.length && !current.totals.some((each) => each.all))
    return html`<div class="teach"><h2>Nothing was worked on in this time</h2>
      <p>Each agent gets a line here as soon as it starts a task.</p></div>`;
  return html`<${Plane} />`;
}

export default function Timeline() {
  if (place.value.name)
    return html`<div class="tools"><${Spans} /></div><div class="timeline scroll" tabindex="0" role="group" aria-label="Timeline">
      <${Content} /></div>`;
  return html`<${Head} title="Timeline"><${Lists} /><${Spans} /><//>
    <main class="timeline" id="main" tabindex="0"><${Content} /></main>`;
}
