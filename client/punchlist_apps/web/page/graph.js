// The dependency graph, from left to right: open work, the critical path, and what holds things up.

import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor.js";
import { addCommands, changeEach, run } from "./commands.js";
import { call } from "./link.js";
import { findConnected, findLongest, findNear, findWay, layOut } from "./layout.js";
import { canChange, cursor, go, place, showToast, taskPath, visibleRows, visibleTasks } from "./model.js";
import { stateOf } from "./rows.js";
import { Mark, Spoken, Text } from "./parts.js";
import { plural, since } from "./text.js";

const WIDE = 204, HIGH = 58, GAP_X = 52, GAP_Y = 22, EDGE = 28;
const MAX_NODES = 300;
const MIN_MAPPED = 12; // nodes from which there is a map of the whole graph
const MAX_CULPRITS = 4;
const MAX_DRAWN = 60; // nodes up to which all are drawn
const MARGIN = 200; // pixels around the visible part that are drawn as well
const MIN_SCALE = 0.25, MAX_SCALE = 2, STEP = 1.25;

const showAll = signal(false);
const showDone = signal(false);
const scale = signal(1);
const drawing = signal(null); // the edge being drawn: { from, x, y, onto }

const selectTask = (id) => go({ ...place.value, task: id }, { trail: false });

/** Return the tasks of the graph by id, their edges, and the number of tasks without edges. */
function readGraph() {
  const isShown = (task) => showDone.value || task.status !== "completed" || task.id === cursor.value;
  const tasks = new Map(visibleTasks.value.filter(isShown).map((task) => [task.id, task]));
  let edges = [];
  for (const { id, blocked_by: blockers } of tasks.values())
    for (const from of blockers ?? []) if (tasks.has(from)) edges.push([from, id]);
  const linked = new Set(edges.flat());
  let ids = [...tasks.keys()].filter((id) => linked.has(id));
  const isLarge = ids.length > MAX_NODES;
  if (isLarge && !showAll.value) {
    const near = findNear(linked.has(cursor.value) ? cursor.value : ids[0], edges);
    ids = ids.filter((id) => near.has(id)).slice(0, MAX_NODES);
    const kept = new Set(ids);
    edges = edges.filter(([from, to]) => kept.has(from) && kept.has(to));
  }
  return { tasks, edges, ids, isLarge, linked, unlinked: tasks.size - linked.size };
}

/** Return the critical path: the longest chain of unfinished tasks by estimate, where a task without one is average. */
function findCritical(tasks, edges, ids) {
  const estimates = [...tasks.values()].map((task) => task.estimate_ms).filter(Boolean).sort((a, b) => a - b);
  const median = estimates[estimates.length >> 1] ?? 1;
  const open = new Set(ids.filter((id) => tasks.get(id).status !== "completed"));
  const weightOf = (id) => tasks.get(id).estimate_ms || median;
  const path = findLongest([...open], edges.filter(([from, to]) => open.has(from) && open.has(to)), weightOf);
  return { path, ms: estimates.length ? path.reduce((sum, id) => sum + weightOf(id), 0) : 0 };
}

/** Return the numbers of the circle that an edge would close, as text; empty if it closes none. */
function findCircle(from, to, edges) {
  const way = from === to ? [from] : findWay(to, from, edges);
  return way ? [...way, to].map((id) => `#${id}`).join(" → ") : "";
}

/** Let one task wait for another, or no longer. */
function connect(from, to, isAdded) {
  const body = isAdded ? { add_blocked_by: [from] } : { remove_blocked_by: [from] };
  const verb = `#${to} ${isAdded ? "waits" : "no longer waits"} for #${from}`;
  return changeEach(verb, [visibleRows.value.tasks.get(to)], () => call("PATCH", taskPath(to), body));
}

const fitted = signal(0); // rises to fit the graph into its box
addCommands("list/graph", { fit: { run: () => fitted.value++, title: "Fit the graph" } });

export default function Graph() {
  const { tasks, edges, ids, isLarge, linked, unlinked } = readGraph();
  const shape = JSON.stringify([ids, edges]);
  const layout = useMemo(() => layOut(ids, edges), [shape]);
  const box = useRef(null);
  const [view, setView] = useState([0, 0, innerWidth, innerHeight]);
  const readView = () => {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = box.current;
    setView([scrollLeft, scrollTop, clientWidth, clientHeight].map((length) => length / scale.value));
  };
  const tallest = Math.max(1, ...layout.layers.map((nodes) => nodes.length));
  const size = [2 * EDGE + layout.layers.length * (WIDE + GAP_X) - GAP_X, 2 * EDGE + tallest * (HIGH + GAP_Y) - GAP_Y];
  useLayoutEffect(() => {
    if (!box.current || !fitted.value) return;
    const { clientWidth, clientHeight } = box.current;
    zoomTo(Math.min(1, clientWidth / size[0], clientHeight / size[1]));
    box.current.scrollTo(0, 0);
  }, [fitted.value]);
  useEffect(() => {
    if (!ids.length) return;
    box.current.querySelector(".here")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    readView();
  }, [cursor.value, shape, scale.value]);
  const unshown = unlinked > 0 && html`<span class="hush">${plural(unlinked, "task waits", "tasks wait")} for nothing:
    ${" "}<button class="text" onClick=${() => go({ ...place.value, view: "list" })}>as a list</button></span>`;
  const toggles = html`<div class="legend">
    <button aria-pressed=${showDone.value ? "true" : "false"} onClick=${() => (showDone.value = !showDone.value)}>
      With done</button>
    ${isLarge && html`<button aria-pressed=${showAll.value ? "true" : "false"}
      onClick=${() => (showAll.value = !showAll.value)}>All ${linked.size.toLocaleString()}</button>`}
    ${unshown}</div>`;
  if (!ids.length)
    return html`${toggles}<div class="teach"><h2>No dependencies</h2>
      <p>When one task has to be done before another, this view draws the order.</p>
      <p class="hush">From a terminal: <code>punch add "Write its tests" --blocked-by 1</code></p></div>`;
  const critical = findCritical(tasks, edges, ids);
  const x = (id) => EDGE + layout.place.get(id)[0] * (WIDE + GAP_X);
  const y = (id) => {
    const [layer, row] = layout.place.get(id);
    return EDGE + (row + (tallest - layout.layers[layer].length) / 2) * (HIGH + GAP_Y) + HIGH / 2;
  };
  const [left, top, wide, high] = view;
  /** Whether a rectangle is near the part of a graph that is seen; the rest of a large graph isn't drawn. */
  const isNear = (fromX, fromY, toX, toY) => ids.length <= MAX_DRAWN ||
    (toX > left - MARGIN && fromX < left + wide + MARGIN && toY > top - MARGIN && fromY < top + high + MARGIN);
  const scene = { tasks, edges, ids, x, y, critical, isNear, routes: layout.routes };
  const shown = ids.filter((id) =>
    id === cursor.value || isNear(x(id), y(id) - HIGH / 2, x(id) + WIDE, y(id) + HIGH / 2));
  const zoomWheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const rect = box.current.getBoundingClientRect();
    zoomAt(box.current, event.deltaY < 0 ? STEP : 1 / STEP, [event.clientX - rect.left, event.clientY - rect.top]);
  };
  const zoomMiddle = (factor) => zoomAt(box.current, factor, [box.current.clientWidth / 2, box.current.clientHeight / 2]);
  return html`${toggles}
    <div class="graph scroll" ref=${box} tabindex="0" role="group" aria-label="Dependencies" onScroll=${readView}
      onWheel=${zoomWheel} ...${panning(box)}>
      <div style=${{ width: `${size[0] * scale.value}px`, height: `${size[1] * scale.value}px` }}>
        <div class="canvas" style=${{ width: `${size[0]}px`, height: `${size[1]}px`, scale: String(scale.value) }}
          ...${drawingHandlers(scene)}>
          <${Edges} scene=${scene} size=${size} />
          ${shown.map((id) => html`<${Node} key=${id} id=${id} scene=${scene} />`)}
        </div></div>
    </div>
    <div class="zoom"><button aria-label="Smaller" onClick=${() => zoomMiddle(1 / STEP)}>−</button>
      <button onClick=${() => run("fit")}>Fit</button>
      <button aria-label="Larger" onClick=${() => zoomMiddle(STEP)}>+</button></div>
    <div class="corner"><${Culprits} scene=${scene} />
      ${ids.length >= MIN_MAPPED && html`<${Overview} scene=${scene} size=${size} view=${view} box=${box} />`}</div>`;
}

const zoomTo = (value) => (scale.value = Math.min(MAX_SCALE, Math.max(MIN_SCALE, value)));

/** Zoom by a factor, with the point of the box staying where it is. */
function zoomAt(box, factor, [left, top]) {
  const before = scale.value;
  zoomTo(before * factor);
  const ratio = scale.value / before;
  const [x, y] = [(box.scrollLeft + left) * ratio - left, (box.scrollTop + top) * ratio - top];
  requestAnimationFrame(() => box.scrollTo(x, y));
}

/** Return handlers that pan the box by dragging its ground. Touch scrolls it anyway. */
const panning = (box) => ({
  onPointerDown: (event) => {
    if (event.pointerType === "touch" || event.button || event.target.closest(".node, .edge, .edge-grip")) return;
    box.current.setPointerCapture(event.pointerId);
  },
  onPointerMove: (event) => {
    if (!box.current.hasPointerCapture(event.pointerId)) return;
    box.current.scrollBy(-event.movementX, -event.movementY);
  },
});

/** Return handlers for an edge that is drawn from the grip of one task to another task. */
function drawingHandlers({ edges }) {
  const locate = (event) => {
    const { left, top } = event.currentTarget.getBoundingClientRect();
    return [(event.clientX - left) / scale.value, (event.clientY - top) / scale.value];
  };
  return {
    onPointerDown: (event) => {
      const from = event.target.closest(".edge-grip")?.dataset.task;
      if (!from) return;
      event.preventDefault();
      event.currentTarget.setPointerCapture(event.pointerId);
      const [x, y] = locate(event);
      drawing.value = { from, x, y, onto: null };
    },
    onPointerMove: (event) => {
      if (!drawing.value) return;
      const [x, y] = locate(event);
      const onto = document.elementFromPoint(event.clientX, event.clientY)?.closest(".node")?.dataset.task ?? null;
      drawing.value = { ...drawing.value, x, y, onto };
    },
    onPointerUp: () => {
      if (!drawing.value) return;
      const { from, onto } = drawing.value;
      drawing.value = null;
      if (!onto || onto === from) return;
      const circle = findCircle(from, onto, edges);
      if (circle) return showToast(`#${onto} can't wait for #${from}: ${circle} would be a circle.`, "bad");
      connect(from, onto, true);
    },
    onPointerCancel: () => (drawing.value = null),
  };
}

/** Return the path of an edge along its nodes and dummy nodes. */
function drawPath(way, x, y) {
  let d = `M${x(way[0]) + WIDE} ${y(way[0])}`;
  for (let step = 1; step < way.length; step++) {
    const [x0, y0, x1, y1] = [x(way[step - 1]) + WIDE, y(way[step - 1]), x(way[step]), y(way[step])];
    d += `C${(x0 + x1) / 2} ${y0} ${(x0 + x1) / 2} ${y1} ${x1} ${y1}`;
    if (step < way.length - 1) d += `h${WIDE}`;
  }
  return d;
}

function Edges({ scene: { tasks, edges, critical, isNear, routes, x, y, ids }, size: [width, height] }) {
  const near = ids.includes(cursor.value) ? findConnected(cursor.value, edges) : null;
  const isCritical = ([from, to]) => critical.path.includes(from) && critical.path[critical.path.indexOf(from) + 1] === to;
  const remove = ([from, to]) => canChange.value && connect(from, to, false);
  return html`<svg aria-hidden="true" width=${width} height=${height}>
    ${edges.map((edge) => {
      const [from, to] = edge;
      const [high, low] = [Math.min(y(from), y(to)), Math.max(y(from), y(to))];
      if (!isNear(x(from) + WIDE, high, x(to), low)) return null;
      const kinds = [
        tasks.get(from).status === "completed" && "over", isCritical(edge) && "critical",
        near && (near.has(from) && near.has(to) ? "lit" : "faint"),
      ].filter(Boolean).join(" ");
      return html`<g key=${edge.join(" ")} class=${`edge ${kinds}`} onClick=${() => remove(edge)}>
        <title>${`#${to} waits for #${from}${canChange.value ? ": click to remove" : ""}`}</title>
        <path class="hit" d=${drawPath(routes.get(edge.join(" ")), x, y)} />
        <path d=${drawPath(routes.get(edge.join(" ")), x, y)} /></g>`;
    })}
    ${drawing.value && html`<path class="drawn" d=${`M${x(drawing.value.from) + WIDE} ${y(drawing.value.from)}L${drawing.value.x} ${drawing.value.y}`} />`}
  </svg>`;
}

function Node({ id, scene: { tasks, edges, critical, x, y } }) {
  const task = tasks.get(id);
  const state = stateOf(task);
  const freed = visibleRows.value.freesOf(id);
  const isBarred = drawing.value && findCircle(drawing.value.from, id, edges);
  const kinds = [
    `r-${state}`, cursor.value === id && "here", critical.path.includes(id) && "critical", isBarred && "faint",
    drawing.value?.onto === id && !isBarred && "onto",
  ].filter(Boolean).join(" ");
  const style = { left: `${x(id)}px`, top: `${y(id) - HIGH / 2}px`, width: `${WIDE}px`, height: `${HIGH}px` };
  return html`<div class=${`node ${kinds}`} data-task=${id} style=${style}>
    <button aria-current=${cursor.value === id ? "true" : undefined} onClick=${() => selectTask(id)}>
      <${Mark} state=${state} /><span class="t"><span class="id">#${id}</span> <${Text} of=${task.title} /></span>
      <${Spoken} of=${task} waits /></button>
    ${freed > 0 && task.status !== "completed" && html`<span class="frees">frees ${freed}</span>`}
    ${canChange.value && html`<span class="edge-grip" data-task=${id} title="Drag to a task that should wait for this one"></span>`}
  </div>`;
}

const ANSWERS = { failed: ["reopen", "Retry"], asks: ["approve", "Approve"] };

/** The tasks that hold up most others, with what can be done about them. */
function Culprits({ scene: { tasks, ids, critical } }) {
  const isStart = (id) => tasks.get(id).status !== "completed" && !tasks.get(id).open_blockers?.length;
  const culprits = ids.filter(isStart).map((id) => [visibleRows.value.freesOf(id), id]).filter(([freed]) => freed)
    .sort((a, b) => b[0] - a[0]).slice(0, MAX_CULPRITS);
  const answer = (name, id) => (selectTask(id), run(name));
  return html`<section class="culprits" aria-labelledby="culprits"><h2 id="culprits">What holds things up</h2>
    <ul>${culprits.map(([freed, id]) => {
      const task = tasks.get(id);
      const [name, label] = ANSWERS[stateOf(task)] ?? [];
      return html`<li key=${id}><button class="task-link" onClick=${() => selectTask(id)}>
          <${Mark} state=${stateOf(task)} /><${Text} class="cut" of=${task.title} /></button>
        <span class="hush">frees ${freed}</span>
        ${name && canChange.value && html`<button onClick=${() => answer(name, id)}>${label}</button>`}</li>`;
    })}</ul>
    ${critical.path.length > 1 && html`<p class="hush">Longest way: ${plural(critical.path.length, "task")}${
      critical.ms > 0 ? `, about ${since(critical.ms)}` : ""}.</p>`}
  </section>`;
}

const MAP_WIDTH = 168, MAP_HEIGHT = 88;

/** A small map of the whole graph. A click goes there. */
function Overview({ scene: { tasks, ids, x, y }, size: [width, height], view: [left, top, wide, high], box }) {
  const ratio = Math.min(MAP_WIDTH / width, MAP_HEIGHT / height);
  const jump = (event) => {
    const rect = event.currentTarget.getBoundingClientRect();
    const [toX, toY] = [(event.clientX - rect.left) / ratio, (event.clientY - rect.top) / ratio];
    box.current.scrollTo((toX - wide / 2) * scale.value, (toY - high / 2) * scale.value);
  };
  return html`<svg class="overview" aria-hidden="true" width=${width * ratio} height=${height * ratio} onClick=${jump}>
    ${ids.map((id) => html`<rect key=${id} class=${`r-${stateOf(tasks.get(id))}`} x=${x(id) * ratio}
      y=${(y(id) - HIGH / 2) * ratio} width=${WIDE * ratio} height=${HIGH * ratio} />`)}
    <rect class="window" x=${left * ratio} y=${top * ratio} width=${Math.min(wide, width) * ratio}
      height=${Math.min(high, height) * ratio} /></svg>`;
}
