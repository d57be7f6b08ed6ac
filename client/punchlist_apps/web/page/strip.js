// The time machine: bars of a list's changes, with a handle for the version shown and one to compare it with.

import { computed, effect, html, signal, untracked, useEffect, useRef } from "./vendor.js";
import { copyToClipboard } from "./commands.js";
import { Icon } from "./frame.js";
import { Problem, call, session } from "./link.js";
import { ask, attempt, hashOf, isPast, list, listPath, place, showToast, versions } from "./model.js";
import { backToNow, formatVersions, isPlaying, showVersions } from "./past.js";
import { Key, Text, hueOf } from "./parts.js";
import { calls, readUpTo, sayCall } from "./story.js";
import { clock, plural, safe } from "./text.js";

const BUCKETS = 120;
const FRESH_MS = 2000; // The bars follow a changing list at this pace.
const STEP_MS = 125; // while playing: at most 8 versions a second
const MAX_NAMES = 4;
const TICKS = 6;
const CLICK_PX = 4; // A pointer that moved less has clicked.
const SPEEDS = [["1×", 1], ["10 min a second", 600], ["1 h a second", 3600]];

/** `{ name, version, start, width, ends, by }`: for each bucket its last version and its events by actor. */
const histogram = signal(null);
const speed = signal(600);
const held = signal(null); // { key, share, version } of the handle that was moved last: it stays under the pointer
const isDragging = signal(false);

async function readHistogram() {
  const { name } = list.value;
  const result = await attempt(() => call("GET", listPath(`/histogram?buckets=${BUCKETS}`)));
  if (!result?.buckets.length || list.value?.name !== name) return;
  const { buckets, version } = result;
  const width = buckets.length > 1 ? buckets[1].at - buckets[0].at : 1;
  const [ends, by] = [buckets.map((bucket) => bucket.to_version), buckets.map((bucket) => bucket.by)];
  histogram.value = { name, version, start: buckets[0].at, width, ends, by };
}

/** Return where a version stands in the strip, from 0 to 1. */
function shareOf(version) {
  const ends = histogram.value?.ends ?? [];
  const at = ends.findIndex((end) => end >= version);
  if (at < 0) return 1;
  const before = ends[at - 1] ?? 0;
  return (at + (version - before) / (ends[at] - before)) / ends.length;
}

/** Return the version at a place of the strip; null at its end, which is the present. */
function versionAt(share) {
  const { ends } = histogram.value;
  if (share >= 1) return null;
  const place = Math.max(0, share) * ends.length;
  const at = Math.floor(place);
  const before = ends[at - 1] ?? 0;
  return Math.max(1, Math.round(before + (place - at) * (ends[at] - before)));
}

const timeAt = (share) => histogram.value.start + share * histogram.value.width * histogram.value.ends.length;
const getPresent = () => list.value?.rows.version ?? 1;
const keyShare = (key) => {
  const version = versions.value[key];
  if (held.value?.key === key && held.value.version === version) return held.value.share;
  return version === null ? (key === "to" ? 1 : 0) : shareOf(version);
};
const shares = computed(() => ({ from: keyShare("from"), to: keyShare("to") }));

/** Return the call that made a version, if it has been read. */
const callOf = (version) => calls.value.find((call) => call.version >= version);
const isRead = (version) => calls.value.length > 0 && calls.value[0].key <= version;

/** Return the time of a version: exact if its event has been read. */
function timeOf(version) {
  if (version === null) return Date.now();
  return isRead(version) ? (callOf(version)?.at ?? timeAt(1)) : timeAt(shareOf(version));
}

effect(() => {
  const { from, to } = versions.value;
  const first = from ?? to;
  if (first !== null && calls.value.length) untracked(() => readUpTo(first));
});

/** Move a handle to a place in the strip. */
function moveTo(key, share) {
  share = Math.min(1, Math.max(0, share));
  const version = share <= 0 && key === "from" ? null : versionAt(share);
  showVersions({ [key]: version });
  held.value = { key, share, version: versions.value[key] };
}

const stepTo = (key, version) => showVersions({ [key]: version });

/** Return the version where the next or previous call by another actor ends. Without one, it is the present or stays. */
function findOtherActor(version, by) {
  const { actor } = callOf(version) ?? {};
  const ordered = by > 0 ? calls.value : calls.value.toReversed();
  const isBeyond = (call) => (by > 0 ? call.version > version : call.version < version);
  const found = ordered.find((call) => isBeyond(call) && call.actor !== actor);
  return found ? found.version : by > 0 ? null : version;
}

/** Return the version of the neighboring bucket that has another one. */
function findBucket(version, by) {
  const { ends } = histogram.value;
  return by > 0 ? ends.find((end) => end > version) ?? null : ends.findLast((end) => end < version) ?? 1;
}

const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };

const onKey = (key) => (event) => {
  const version = versions.value[key] ?? (key === "to" ? getPresent() : 0);
  const step = STEPS[event.key];
  const page = { PageUp: 1, PageDown: -1 }[event.key];
  if (step) stepTo(key, event.shiftKey ? findOtherActor(version, step) : version + step);
  else if (page) stepTo(key, findBucket(version, page));
  else if (event.key === "Home") stepTo(key, key === "to" ? 1 : null);
  else if (event.key === "End") stepTo(key, key === "to" ? null : (versions.value.to ?? getPresent()) - 1);
  else if (event.key === " ") isPlaying.value = !isPlaying.value;
  else return;
  event.preventDefault();
  event.stopPropagation();
};

// Playing moves the shown version through the recorded time.

effect(() => {
  if (!isPlaying.value) return;
  const { start, width, ends } = histogram.peek() ?? {};
  if (!ends) return void (isPlaying.value = false);
  let share = untracked(() => (versions.value.to === null ? shares.value.from : shares.value.to));
  const step = () => {
    if (document.hidden) return;
    share += (speed.value * STEP_MS) / (width * ends.length);
    const at = Math.floor(share * ends.length);
    // A time without changes is skipped.
    const next = ends.findIndex((end) => end > (ends[at - 1] ?? 0));
    if (next > at) share = next / ends.length;
    if (share >= 1) backToEnd();
    else moveTo("to", share);
  };
  const backToEnd = () => ((isPlaying.value = false), showVersions({ to: null }));
  const timer = setInterval(step, STEP_MS);
  return () => clearInterval(timer);
});

// The pointer: a handle, the part between both, or any other place, to which the handle of the shown version moves.

function onPointerDown(event) {
  if (event.button || !histogram.value) return;
  const track = event.currentTarget;
  const box = track.getBoundingClientRect();
  const shareAt = ({ clientX }) => (clientX - box.left) / box.width;
  const key = event.target.closest("[data-key]")?.dataset.key;
  const isBrush = !key && event.target.closest(".brush") && versions.value.from !== null;
  const begin = { ...shares.value };
  const move = (moved) => {
    if (!isBrush) return moveTo(key ?? "to", shareAt(moved));
    if (Math.abs(moved.clientX - event.clientX) < CLICK_PX) return;
    const by = Math.max(-begin.from + 1e-6, Math.min(1 - begin.to, shareAt(moved) - shareAt(event)));
    showVersions({ from: versionAt(begin.from + by), to: versionAt(begin.to + by) });
  };
  const end = (ended) => {
    if (isBrush && Math.abs(ended.clientX - event.clientX) < CLICK_PX) moveTo("to", shareAt(ended));
    isDragging.value = false;
    track.removeEventListener("pointermove", move);
  };
  [isPlaying.value, isDragging.value] = [false, true];
  track.setPointerCapture(event.pointerId);
  track.addEventListener("pointermove", move);
  track.addEventListener("lostpointercapture", end, { once: true });
  event.target.closest("[data-key]")?.focus();
  if (!isBrush && !key) move(event);
}

/** Move the handle of the shown version to the nearest end of a call. */
function snap() {
  const { to } = versions.value;
  if (to === null || !isRead(to)) return;
  const ends = calls.value.map((call) => call.version);
  showVersions({ to: ends.reduce((best, end) => (Math.abs(end - to) < Math.abs(best - to) ? end : best)) });
}

/** Preview the changes that would make the list what it was at a version, then make them if they are still the same. */
async function restore(version) {
  const send = (more, options) => call("POST", listPath("/undo"), { to_version: version, claims: true, ...more }, options);
  const preview = await attempt(() => send({ preview: true }));
  if (!preview) return;
  if (!preview.undone.length) return showToast(`The list is what it was at version ${version}.`);
  const title = `Make the list what it was at ${clock(timeOf(version))}?`;
  const text = [`This takes back ${plural(preview.undone.length, "change")}, whoever made them. You can undo it.`];
  const result = await ask({
    title, lines: preview.undone.map(safe), text, confirm: "Make it so", danger: true,
    send: async () => {
      const again = await send({ preview: true });
      if (`${again.undone}` !== `${preview.undone}`)
        throw new Problem("changed", "The list has changed since. Cancel, and look at the changes again.");
      return send({}, { match: again.version });
    },
  });
  if (result) backToNow(), showToast(`The list is what it was at version ${version}.`);
}

function copyAddress() {
  const at = formatVersions({ ...versions.value, to: versions.value.to ?? getPresent() });
  copyToClipboard(location.origin + location.pathname + hashOf({ ...place.value, query: { ...place.value.query, at } }));
}

/** The bars as a path for each hue. */
function drawBars({ by }) {
  const sums = by.map((actors) => actors.reduce((sum, [, count]) => sum + count, 0));
  const highest = Math.sqrt(Math.max(1, ...sums));
  const paths = new Map();
  by.forEach((actors, at) => {
    let y = 100;
    for (const [actor, count] of actors) {
      // Heights grow with the square root, since an imported plan would flatten everything else.
      const high = (98 * count) / (highest * Math.sqrt(sums[at]));
      const hue = actor ? `h${hueOf(actor)}` : "rest";
      y -= high;
      paths.set(hue, `${paths.get(hue) ?? ""}M${at + 0.08} ${y.toFixed(1)}h.84v${high.toFixed(1)}h-.84z`);
    }
  });
  return [...paths].map(([hue, d]) => html`<path key=${hue} class=${hue} d=${d} />`);
}

const bars = computed(() => histogram.value && drawBars(histogram.value));

/** The actors by their number of events, the most active first. */
const actors = computed(() => {
  const counts = new Map();
  for (const [actor, count] of histogram.value?.by.flat() ?? [])
    if (actor) counts.set(actor, (counts.get(actor) ?? 0) + count);
  return [...counts].sort(([, a], [, b]) => b - a);
});

function Handle({ of: key }) {
  const version = versions.value[key];
  const share = shares.value[key];
  const isTo = key === "to";
  const shown = version ?? (isTo ? getPresent() : 1);
  const when = isTo && version === null ? "now" : `${clock(timeOf(shown))}, version ${shown}`;
  const made = version !== null && isRead(version) && callOf(version);
  const text = !isTo && version === null ? "nothing to compare with" : `${when}${made ? `, ${safe(sayCall(made))}` : ""}`;
  const isCrowded = !isTo && shares.value.to - share < 0.16 && shares.value.to > 0.85;
  return html`<div class=${`handle of-${key}${version === null ? " at-rest" : ""}`} data-key=${key} role="slider" tabindex="0"
    aria-label=${isTo ? "Version shown" : "Compared with"} aria-valuemin="1" aria-valuemax=${getPresent()}
    aria-valuenow=${shown} aria-valuetext=${text} style=${{ left: `${share * 100}%` }} onKeyDown=${onKey(key)}>
    ${version !== null && !isCrowded && html`<span class=${(isTo ? share < 0.88 : share < 0.12) ? "right" : "left"}>
      <i>version ${version} · </i>${clock(timeOf(version))}</span>`}</div>`;
}

const Tick = ({ at }) => html`<time style=${{ left: `${(100 * at) / TICKS}%` }}>
  ${at === TICKS ? "now" : clock(timeAt(at / TICKS))}</time>`;

/** The bars in numbers, for screen readers. */
const Table = () => html`<div class="sr"><table><caption>Changes of the list</caption><tbody>
  ${actors.value.map(([actor, count]) => html`<tr key=${actor}><th scope="row">${safe(actor)}</th><td>${count}</td></tr>`)}</tbody></table></div>`;

export default function Strip() {
  const present = getPresent();
  const timer = useRef(0);
  const isKnown = histogram.value?.name === place.value.name;
  useEffect(() => {
    if (isKnown && (histogram.value.version >= present || isDragging.value || timer.current)) return;
    timer.current = setTimeout(() => readHistogram().finally(() => (timer.current = 0)), isKnown ? FRESH_MS : 0);
  }, [present, isKnown, isDragging.value, histogram.value]);
  useEffect(() => () => (clearTimeout(timer.current), (isPlaying.value = false)), []);
  const { from, to } = versions.value;
  const target = from ?? to;
  const [left, right] = [from === null ? 0 : shares.value.from, shares.value.to].map((share) => 100 * (isKnown ? share : 0));
  return html`<section class="time-machine" aria-label="Time machine">
    <div class="strip-head">
      <button class="round" aria-label=${isPlaying.value ? "Stop" : "Play"} title="Play (Space)"
        onClick=${() => (isPlaying.value = !isPlaying.value)}><${Icon} of=${isPlaying.value ? "stop" : "play"} /></button>
      <div class="segments" role="group" aria-label="Speed">${SPEEDS.map(([name, rate]) => html`<button key=${rate}
        aria-pressed=${speed.value === rate ? "true" : "false"} onClick=${() => (speed.value = rate)}>${name}</button>`)}</div>
      <ul class="who-is-who">${actors.value.slice(0, MAX_NAMES).map(([actor]) => html`<li key=${actor}>
        <i class=${`h${hueOf(actor)}`}></i><${Text} class="cut" of=${actor} /></li>`)}
        ${actors.value.length > MAX_NAMES && html`<li>and ${actors.value.length - MAX_NAMES} more</li>`}</ul>
      ${isPast.value && html`<span class="pill past-pill" role="status">
        Read only: ${from === null ? "as it was" : "two versions"}</span>`}
      <span class="room"></span>
      ${session.value.scope.mode !== "ro" && html`<button class="quiet" disabled=${target === null}
        onClick=${() => restore(target)}>Make the list what it was${target !== null && isKnown && html`<span class="wide-only"> at ${clock(timeOf(target))}</span>`}…</button>`}
      <button class="quiet" onClick=${copyAddress}>Copy address</button>
      <button disabled=${!isPast.value} onClick=${backToNow}>Back to now <${Key} of="n" /></button>
    </div>
    <div class="track" onPointerDown=${onPointerDown} onDblClick=${snap}>
      ${isKnown && html`<svg viewBox=${`0 0 ${histogram.value.ends.length} 100`} preserveAspectRatio="none" aria-hidden="true">
        <g opacity=".35">${bars.value}</g></svg>
        <svg class="bright" viewBox=${`0 0 ${histogram.value.ends.length} 100`} preserveAspectRatio="none" aria-hidden="true"
          style=${{ clipPath: `inset(0 ${100 - right}% 0 ${left}%)` }}>${bars.value}</svg>
        <div class=${`brush${from === null ? "" : " both"}`} style=${{ left: `${left}%`, width: `${right - left}%` }}></div>
        <${Handle} of="from" /><${Handle} of="to" />`}
    </div>
    <div class="axis" aria-hidden="true">${isKnown && Array.from({ length: TICKS + 1 }, (_, at) => html`<${Tick} key=${at} at=${at} />`)}</div>
    ${isKnown && html`<${Table} />`}
  </section>`;
}
