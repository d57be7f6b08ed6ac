// Runs the pure modules of the page for page_modules.py: reads one JSON call per line, and prints one result per line.
import { createInterface } from "node:readline";

const PAGE = new URL("../../../client/punchlist_apps/web/page/", import.meta.url);
const [{ Rows, buildTree, isLate, ownerOf, stateOf }, { dayText, safe, safeBlock, sharedNote, since }, { findLongest, findWay, layOut }, { readMarkdown }, { readShorthand }] = await Promise.all(["rows.js", "text.js", "layout.js", "markdown.js", "shorthand.js"].map((name) => import(new URL(name, PAGE))));

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
  layered: ({ ids, edges }) => {
    const { place, routes } = layOut(ids, edges);
    return { place: [...place], routes: [...routes.values()] };
  },
};
for await (const line of createInterface({ input: process.stdin })) {
  const [[name, value]] = Object.entries(JSON.parse(line));
  console.log(JSON.stringify(FUNCTIONS[name](value) ?? null));
}
