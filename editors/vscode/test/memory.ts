// Prints the memory usage of a list with 10,000 tasks, in bytes per task: node --expose-gc test/memory.ts

import { TaskList } from "../src/model.ts";
import { Daemon, until } from "./daemon.ts";

const TASKS = 10_000;
const collect = globalThis.gc;
if (!collect) throw new Error("run it with node --expose-gc");

const daemon = await new Daemon().start();
const agent = await daemon.agent();
for (let from = 0; from < TASKS; from += 1000) {
  const tasks = Array.from({ length: 1000 }, (_, at) => ({ title: `Write part ${from + at} of the handbook`, description: "What it says, and to whom." }));
  await agent.change("task.add_many", { conversation: "long", tasks });
}
const usedHeap = (): number => {
  collect();
  return process.memoryUsage().heapUsed;
};
const list = new TaskList(daemon.connection(), "long");
const before = usedHeap();
list.follow();
await until(() => list.ready);
list.ids();
list.children();
console.log(Math.round((usedHeap() - before) / TASKS));
await daemon.end();
