// Runs the pure modules of the page for page_modules.py: reads one JSON call per line, and prints one result per line.
import { createInterface } from "node:readline";

const PAGE = new URL("../../../client/punchlist_apps/web/page/", import.meta.url);
const load = (name) => import(new URL(name, PAGE));
const { Rows, buildRows, buildTree, isLate, ownerOf, stateOf } = await load("rows.js");
const { dayText, safe, safeBlock, sharedNote, since } = await load("text.js");
const { findLongest, findWay, layOut } = await load("layout.js");
const { readMarkdown } = await load("markdown.js");
const { readShorthand } = await load("shorthand.js");
const { GROUPS, compareRows, diffWords, findMoved } = await load("differences.js");
const { forecast } = await load("forecast.js");
const { groupByOwner, layOutLanes } = await load("lanes.js");
const { say } = await load("sentences.js");

let rows = new Rows();
const FUNCTIONS = {
  push: (push) => rows.take(push),
  cut: () => rows.begin(),
  list: () => rows.sorted().map((task) => [task.id, task.status, task.version, task.title, task.open_blockers ?? []]),
  is_order_cached: () => [...rows.tree()].join() === [...buildTree(rows.sorted())].join(),
  tree: (tasks) => [...buildTree(tasks)],
  holds: () => rows.sorted().filter((task) => rows.hasOpenParts(task)).map((task) => task.id),
  states: (tasks) => tasks.map(stateOf),
  owners: (tasks) => tasks.map(ownerOf),
  safe: (texts) => texts.map((text) => [safe(text), safeBlock(text)]),
  since: (times) => times.map(since),
  notes: (shared) => shared.map(sharedNote),
  late: ({ tasks, at }) => tasks.map((task) => isLate(task, at)),
  days: (tasks) => tasks.map((task) => dayText(task, "due")),
  shared: () => rows.shared,
  longest: ({ ids, edges, weights }) => findLongest(ids, edges, (id) => weights[id]),
  way: ({ start, goal, edges }) => findWay(start, goal, edges),
  shorthand: ({ lines, now, tasks }) =>
    lines.map((line) => readShorthand(line, { now: new Date(now), hasTask: (id) => tasks.includes(id) })),
  markdown: (texts) => texts.map(readMarkdown),
  time: (texts) => texts.map((text) => {
    const times = [1, 2, 3].map(() => {
      const before = performance.now();
      readMarkdown(text);
      return performance.now() - before;
    });
    return Math.min(...times);
  }),
  words: (pairs) => pairs.map(([before, after]) => diffWords(before, after)),
  moved: ({ before, after }) => [...findMoved(before, after)],
  compared: ([base, rows]) =>
    compareRows(...[base, rows].map((tasks) => buildRows({ tasks, version: 1 }))).map(({ group, task }) => [GROUPS[group][0], task.id]),
  forecast: ({ totals, now }) => forecast(totals, now),
  lanes: ({ spans, now, wide }) =>
    layOutLanes(groupByOwner(spans, now), (at) => (wide * at) / now, now, wide).map(({ owner, rows }) =>
      [owner, rows.map((row) => row.map(({ x, wide, room, spans, outcome }) => [x, wide, room, spans.length, outcome]))]),
  said: (events) => events.map(say),
  layered: ({ ids, edges }) => {
    const { place, routes } = layOut(ids, edges);
    return { place: [...place], routes: [...routes.values()] };
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const [[name, value]] = Object.entries(JSON.parse(line));
  console.log(JSON.stringify(FUNCTIONS[name](value) ?? null));
}
