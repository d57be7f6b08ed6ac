// What waits for what, from left to right.

import { html, signal, useEffect, useMemo, useRef } from "./vendor.js";
import { around, layered, stream } from "./layout.js";
import { cursor, go, place, shown } from "./model.js";
import { isFinished, stateOf } from "./rows.js";
import { Mark, Spoken, Text } from "./parts.js";

const WIDE = 200, HIGH = 44, GAP_X = 52, GAP_Y = 16, EDGE = 24;
const MOST = 300;
const showAll = signal(false);

export function Graph() {
  const tasks = new Map(shown.value.map((one) => [one.id, one]));
  let edges = [];
  for (const { id, blocked_by: blockers } of tasks.values()) {
    for (const from of blockers ?? []) if (tasks.has(from)) edges.push([from, id]);
  }
  const joined = new Set(edges.flat());
  let ids = [...tasks.keys()].filter((id) => joined.has(id));
  const many = ids.length > MOST;
  if (many && !showAll.value) {
    const near = around(cursor.value && joined.has(cursor.value) ? cursor.value : ids[0], edges);
    ids = ids.filter((id) => near.has(id)).slice(0, MOST);
    const kept = new Set(ids);
    edges = edges.filter(([from, to]) => kept.has(from) && kept.has(to));
  }
  const shape = JSON.stringify([ids, edges]);
  const { layers, place: at, routes } = useMemo(() => layered(ids, edges), [shape]);
  const box = useRef(null);
  const showHere = () => box.current?.querySelector(".here")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  useEffect(showHere, [cursor.value, shape]);
  if (!ids.length)
    return html`<div class="teach"><h2>Nothing waits for anything</h2>
      <p>When one task has to be done before another, this draws the way through.</p>
      <p class="hush">From a terminal: <code>punch add "Write its tests" --blocked-by 1</code></p></div>`;
  const tallest = Math.max(...layers.map((nodes) => nodes.length));
  const x = (id) => EDGE + at.get(id)[0] * (WIDE + GAP_X);
  const y = (id) => EDGE + (at.get(id)[1] + (tallest - layers[at.get(id)[0]].length) / 2) * (HIGH + GAP_Y) + HIGH / 2;
  const alone = tasks.size - joined.size;
  const bright = cursor.value && at.has(cursor.value) ? stream(cursor.value, edges) : null;
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
  return html`<div class="graph scroll" ref=${box} tabindex="0" role="group" aria-label="What waits for what">
    ${(many || alone > 0) && html`<p class="hush legend">
      ${alone > 0 ? `${alone.toLocaleString()} that wait for nothing are not drawn. ` : ""}
      ${many && html`<button class="text" onClick=${() => (showAll.value = !showAll.value)}>
        ${showAll.value ? "Only what is near" : `Draw all ${joined.size.toLocaleString()}`}</button>`}</p>`}
    <div class="canvas" style=${size}>
      <svg aria-hidden="true" style=${size}>${edges.map(([from, to]) => {
        const light = !bright ? "" : bright.has(from) && bright.has(to) ? " lit" : " faint";
        const over = isFinished(tasks.get(from)) ? " over" : "";
        const edge = `${from} ${to}`;
        return html`<path key=${edge} d=${path(routes.get(edge))} class=${`edge${over}${light}`} />`;
      })}</svg>
      ${ids.map((id) => {
        const one = tasks.get(id);
        const state = stateOf(one);
        const here = cursor.value === id;
        const faint = bright && !bright.has(id) ? " faint" : "";
        const style = { left: `${x(id)}px`, top: `${y(id) - HIGH / 2}px`, width: `${WIDE}px`, height: `${HIGH}px` };
        return html`<button key=${id} class=${`node r-${state}${here ? " here" : ""}${faint}`} style=${style}
          aria-current=${here ? "true" : undefined} onClick=${() => go({ ...place.value, task: id }, { trail: false })}>
          <${Mark} state=${state} /><span class="id">#${id}</span><${Text} class="t" of=${one.title} />
          <${Spoken} of=${one} waits /></button>`;
      })}
    </div>
  </div>`;
}
