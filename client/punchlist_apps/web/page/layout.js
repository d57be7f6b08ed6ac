// Layered layout of the graph: layers by longest path, rows by barycenter sweeps, dummy nodes on long edges.

const SWEEPS = 8;

/**
 * Place tasks in layers.
 *
 * @param {string[]} ids  the tasks, in the order of their list
 * @param {[string, string][]} edges  from a blocker to the task that waits for it
 * @returns {{layers: string[][], place: Map<string, [number, number]>, routes: Map<string, string[]>}}
 *   the layers, each node's layer and row, and for each edge "a b" the nodes along it
 */
export function layOut(ids, edges) {
  const into = new Map(ids.map((id) => [id, []]));
  const outOf = new Map(ids.map((id) => [id, []]));
  for (const [from, to] of edges) into.get(to).push(from), outOf.get(from).push(to);

  const layer = new Map();
  const left = new Map(ids.map((id) => [id, into.get(id).length]));
  const free = ids.filter((id) => !left.get(id));
  for (const id of free) {
    layer.set(id, Math.max(-1, ...into.get(id).map((from) => layer.get(from))) + 1);
    for (const to of outOf.get(id)) {
      left.set(to, left.get(to) - 1);
      if (!left.get(to)) free.push(to);
    }
  }
  // Cycles shouldn't exist, but if one does, it must not hide tasks.
  for (const id of ids) if (!layer.has(id)) layer.set(id, 0);

  const layers = [];
  const put = (id, at) => ((layers[at] ??= []), layers[at].push(id));
  for (const id of ids) put(id, layer.get(id));
  const before = new Map(ids.map((id) => [id, []]));
  const after = new Map(ids.map((id) => [id, []]));
  const join = (a, b) => (after.get(a).push(b), before.get(b).push(a));
  const routes = new Map();
  for (const [from, to] of edges) {
    const route = [from];
    for (let at = layer.get(from) + 1; at < layer.get(to); at++) {
      const dummy = `${from}>${to}@${at}`;
      before.set(dummy, []), after.set(dummy, []);
      put(dummy, at);
      join(route.at(-1), dummy);
      route.push(dummy);
    }
    join(route.at(-1), to);
    routes.set(`${from} ${to}`, [...route, to]);
  }

  const row = new Map();
  const number = () => layers.forEach((nodes) => nodes.forEach((id, at) => row.set(id, at - nodes.length / 2)));
  number();
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const near = sweep % 2 ? after : before;
    for (const nodes of sweep % 2 ? layers.toReversed() : layers) {
      const mean = (others) => others.reduce((sum, other) => sum + row.get(other), 0) / others.length;
      const target = new Map(nodes.map((id) => [id, near.get(id).length ? mean(near.get(id)) : row.get(id)]));
      nodes.sort((a, b) => target.get(a) - target.get(b));
      nodes.forEach((id, at) => row.set(id, at - nodes.length / 2));
    }
  }
  const place = new Map();
  layers.forEach((nodes, x) => nodes.forEach((id, y) => place.set(id, [x, y])));
  return { layers, place, routes };
}

/** Return the tasks within `steps` edges of a task, in either direction. */
export function findNear(start, edges, steps = 2) {
  const near = new Set([start]);
  for (let step = 0; step < steps; step++) {
    for (const [from, to] of edges) if (near.has(from) !== near.has(to)) near.add(from), near.add(to);
  }
  return near;
}

/** Return all tasks upstream or downstream of a task. */
export function findConnected(start, edges) {
  const reach = (from, to) => {
    const next = Map.groupBy(edges, (edge) => edge[from]);
    const seen = new Set([start]);
    for (const id of seen) for (const edge of next.get(id) ?? []) seen.add(edge[to]);
    return seen;
  };
  return new Set([...reach(0, 1), ...reach(1, 0)]);
}

/**
 * Return the chain of tasks with the greatest total weight, in order; empty without edges.
 *
 * @param {(id: string) => number} weightOf  the weight of a task, which is positive
 */
export function findLongest(ids, edges, weightOf) {
  const into = Map.groupBy(edges, ([, to]) => to);
  const outOf = Map.groupBy(edges, ([from]) => from);
  const left = new Map(ids.map((id) => [id, into.get(id)?.length ?? 0]));
  const best = new Map(); // by task: the weight of the heaviest chain that ends there, and the task before it
  const free = ids.filter((id) => !left.get(id));
  for (const id of free) {
    const before = (into.get(id) ?? []).map(([from]) => from);
    const last = before.reduce((a, b) => (a === null || best.get(b).weight > best.get(a).weight ? b : a), null);
    best.set(id, { weight: (last === null ? 0 : best.get(last).weight) + weightOf(id), last });
    for (const [, to] of outOf.get(id) ?? []) {
      left.set(to, left.get(to) - 1);
      if (!left.get(to)) free.push(to);
    }
  }
  let end = null;
  for (const [id, { weight, last }] of best)
    if (last !== null && (end === null || weight > best.get(end).weight)) end = id;
  const chain = [];
  for (; end !== null; end = best.get(end).last) chain.unshift(end);
  return chain;
}

/** Return the tasks along the shortest way from one task to another; null if there is none. */
export function findWay(start, goal, edges) {
  const outOf = Map.groupBy(edges, ([from]) => from);
  const before = new Map([[start, null]]);
  for (const id of before.keys()) {
    if (id === goal) {
      const way = [];
      for (let at = goal; at !== null; at = before.get(at)) way.unshift(at);
      return way;
    }
    for (const [, to] of outOf.get(id) ?? []) if (!before.has(to)) before.set(to, id);
  }
  return null;
}
