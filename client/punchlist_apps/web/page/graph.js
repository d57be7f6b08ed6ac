// The dependency graph, from left to right.

import { html, signal, useEffect, useMemo, useRef } from "./vendor.js";
import { findConnected, findNear, layOut } from "./layout.js";
import { cursor, go, place, visibleTasks } from "./model.js";
import { isFinished, stateOf } from "./rows.js";
import { Mark, Spoken, Text } from "./parts.js";
import { plural } from "./text.js";

const WIDE = 200, HIGH = 44, GAP_X = 52, GAP_Y = 16, EDGE = 24;
const MAX_NODES = 300;
const showAll = signal(false);

export default function Graph() {
  const tasks = new Map(visibleTasks.value.map((task) => [task.id, task]));
  let edges = [];
  for (const { id, blocked_by: blockers } of tasks.values()) {
    for (const from of blockers ?? []) if (tasks.has(from)) edges.push([from, id]);
  }
  const linked = new Set(edges.flat());
  let ids = [...tasks.keys()].filter((id) => linked.has(id));
  const isLarge = ids.length > MAX_NODES;
  if (isLarge && !showAll.value) {
    const near = findNear(cursor.value && linked.has(cursor.value) ? cursor.value : ids[0], edges);
    ids = ids.filter((id) => near.has(id)).slice(0, MAX_NODES);
    const kept = new Set(ids);
    edges = edges.filter(([from, to]) => kept.has(from) && kept.has(to));
  }
  const shape = JSON.stringify([ids, edges]);
  const { layers, place: at, routes } = useMemo(() => layOut(ids, edges), [shape]);
  const box = useRef(null);
  const scrollToCursor = () =>
    box.current?.querySelector(".here")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  useEffect(scrollToCursor, [cursor.value, shape]);
  if (!ids.length)
    return html`<div class="teach"><h2>No dependencies</h2>
      <p>When one task has to be done before another, this view draws the order.</p>
      <p class="hush">From a terminal: <code>punch add "Write its tests" --blocked-by 1</code></p></div>`;
  const tallest = Math.max(...layers.map((nodes) => nodes.length));
  const x = (id) => EDGE + at.get(id)[0] * (WIDE + GAP_X);
  const y = (id) => EDGE + (at.get(id)[1] + (tallest - layers[at.get(id)[0]].length) / 2) * (HIGH + GAP_Y) + HIGH / 2;
  const unlinked = tasks.size - linked.size;
  const highlighted = cursor.value && at.has(cursor.value) ? findConnected(cursor.value, edges) : null;
  const path = (way) => {
    let d = `M${x(way[0]) + WIDE} ${y(way[0])}`;
    for (let step = 1; step < way.length; step++) {
      const [x0, y0, x1, y1] = [x(way[step - 1]) + WIDE, y(way[step - 1]), x(way[step]), y(way[step])];
      d += `C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`;
      if (step < way.length - 1) d += `h${WIDE}`;
    }
    return d;
  };
  const [wide, high] = [layers.length * (WIDE + GAP_X) - GAP_X, tallest * (HIGH + GAP_Y) - GAP_Y];
  const size = { width: `${2 * EDGE + wide}px`, height: `${2 * EDGE + high}px` };
  return html`<div class="graph scroll" ref=${box} tabindex="0" role="group" aria-label="Dependencies">
    ${(isLarge || unlinked > 0) && html`<p class="hush legend">
      ${unlinked > 0 ? `${plural(unlinked, "task")} without dependencies not shown. ` : ""}
      ${isLarge && html`<button class="text" onClick=${() => (showAll.value = !showAll.value)}>
        ${showAll.value ? "Show nearby tasks only" : `Show all ${linked.size.toLocaleString()}`}</button>`}</p>`}
    <div class="canvas" style=${size}>
      <svg aria-hidden="true" style=${size}>${edges.map(([from, to]) => {
        const light = !highlighted ? "" : highlighted.has(from) && highlighted.has(to) ? " lit" : " faint";
        const over = isFinished(tasks.get(from)) ? " over" : "";
        const edge = `${from} ${to}`;
        return html`<path key=${edge} d=${path(routes.get(edge))} class=${`edge${over}${light}`} />`;
      })}</svg>
      ${ids.map((id) => {
        const task = tasks.get(id);
        const state = stateOf(task);
        const here = cursor.value === id;
        const faint = highlighted && !highlighted.has(id) ? " faint" : "";
        const style = { left: `${x(id)}px`, top: `${y(id) - HIGH / 2}px`, width: `${WIDE}px`, height: `${HIGH}px` };
        return html`<button key=${id} class=${`node r-${state}${here ? " here" : ""}${faint}`} style=${style}
          aria-current=${here ? "true" : undefined} onClick=${() => go({ ...place.value, task: id }, { trail: false })}>
          <${Mark} state=${state} /><span class="id">#${id}</span><${Text} class="t" of=${task.title} />
          <${Spoken} of=${task} waits /></button>`;
      })}
    </div>
  </div>`;
}
