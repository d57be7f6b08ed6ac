// The model against a real daemon, while another client changes the list.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as net from "node:net";
import * as path from "node:path";
import { after, before, test } from "node:test";
import { belowFirst } from "../../../client/punchlist_apps/web/page/rows.js";
import { Board, type Change, Presence, TaskList, resolve } from "../src/model.ts";
import { findNews } from "../src/news.ts";
import { Connection, socketPath } from "../src/transport.ts";
import type { CallError, Row } from "../src/wire.ts";
import { Daemon, until } from "./daemon.ts";

const daemon = new Daemon();
let agent: Connection;

before(async () => {
  await daemon.start();
  agent = await daemon.agent();
});
after(() => daemon.end());

function follow(name: string, on: Daemon = daemon): { list: TaskList; changes: Change[] } {
  const list = new TaskList(on.connection(), name);
  const changes: Change[] = [];
  list.changed.listen((change) => void changes.push(change));
  list.follow();
  return { list, changes };
}

const add = (conversation: string, title: string, params: object = {}): Promise<any> => agent.change("task.add", { conversation, title, ...params });
const status = (conversation: string, task: string, to: string, params: object = {}): Promise<any> =>
  agent.change("task.set_status", { conversation, task, status: to, ...params });

/** Return the lines of `task.list`, in the format of `formatRows`. */
async function readRows(conversation: string): Promise<string[]> {
  const { tasks } = await agent.call("task.list", { conversation });
  return tasks.map((row: any) => `${row.id} ${row.title} ${row.status} ${row.parent ?? ""}`);
}
const formatRows = (list: TaskList): string[] => list.ids().map((id) => `${id} ${list.get(id)?.title} ${list.get(id)?.status} ${list.get(id)?.parent ?? ""}`);

test("list follows an agent with its exact changes", async () => {
  const { list, changes } = follow("website");
  await until(() => list.ready);
  for (let number = 1; number <= 50; number++) await add("website", `Task ${number}`, number === 4 || number === 5 ? { parent: "1" } : {});
  for (let number = 10; number < 20; number++) await status("website", String(number), "completed");
  await status("website", "30", "failed", { fail_reason: "no paper" });
  await until(() => list.get("30")?.status === "failed");
  assert.deepEqual(formatRows(list).sort(), (await readRows("website")).sort());
  assert.deepEqual(list.children("1").map((row) => row.id), ["4", "5"]);
  assert.deepEqual([list.open, list.size, list.parent("4")], [39, 50, "1"]);
  changes.length = 0;
  await status("website", "40", "in_progress");
  await until(() => list.get("40")?.status === "in_progress");
  assert.deepEqual(changes.map((change) => [[...change.before.keys()], [...change.groups]]), [[["40"], []]]);
  changes.length = 0;
  await agent.change("task.move", { conversation: "website", task: "5", before: "4" });
  await until(() => list.children("1")[0]?.id === "5");
  assert.deepEqual(changes.map((change) => [...change.groups]), [["1"]]);
  changes.length = 0;
  await agent.change("task.edit", { conversation: "website", task: "5", parent: "2" });
  await until(() => list.parent("5") === "2");
  assert.deepEqual(changes.flatMap((change) => [...change.groups]).sort(), ["1", "2"]);
  await agent.change("task.delete", { conversation: "website", task: "5" });
  await until(() => !list.get("5"));
  assert.ok(changes.at(-1)?.groups.has("2"));
});

test("presence survives a restart of the daemon", async () => {
  const daemon = await new Daemon().start();
  const connection = daemon.connection();
  const presence = new Presence(connection, "crowd", "vscode");
  const names = (): string => presence.others.map((peer) => `${peer.actor} ${peer.connections}`).join();
  presence.follow();
  for (const name of ["nvim", "vscode", "vscode"]) {
    const other = daemon.connection(name);
    other.listeners.add({ onConnected: () => void other.call("event.subscribe", { conversation: "crowd" }) });
    other.open();
  }
  await until(() => names().split(",").sort().join() === "nvim 1,vscode 2");
  await daemon.kill();
  await until(() => names() === "");
  await daemon.start();
  await until(() => names().split(",").sort().join() === "nvim 1,vscode 2");
  presence.dispose();
  await daemon.end();
});

test("list works without presence of an older daemon", async () => {
  class Unknown extends Presence {
    protected override params(): object {
      return { conversation: "old", view: "of a newer version" };
    }
  }
  const connection = daemon.connection();
  const presence = new Unknown(connection, "old", "vscode");
  const list = new TaskList(connection, "old");
  list.follow();
  presence.follow();
  await add("old", "One");
  await until(() => list.size === 1);
  assert.deepEqual([presence.others, presence.problem, list.problem], [[], null, null]);
});

test("board has every list and its tasks in progress", async () => {
  const board = new Board(daemon.connection());
  board.follow();
  await until(() => board.ready);
  await add("other", "One");
  await agent.change("task.claim", { conversation: "other", owner: "ann" });
  await until(() => board.get("other")?.running?.[0]?.owner === "ann");
  assert.equal(board.cards()[0]?.conversation, "other");
  await agent.change("task.delete", { conversation: "other", tasks: ["1"] }).catch(() => undefined);
});

test("list resumes without gaps or repeats after kills", async () => {
  const own = await new Daemon().start();
  try {
    const { list, changes } = follow("kills", own);
    const other = await own.agent();
    await until(() => list.ready);
    let seen = 0;
    list.changed.listen((change) => {
      for (const [id, was] of change.before) if (!was && list.get(id)) seen++;
    });
    const rounds = Number(process.env.KILLS ?? 10);
    for (let round = 1; round <= rounds; round++) {
      // The call is in flight while the daemon is killed. It is repeated with its key, so it takes effect only once.
      const sent = other.change("task.add", { conversation: "kills", title: `Task ${round}` });
      if (round % 2) await sent;
      await own.kill();
      await own.start();
      await sent;
      await until(() => other.connected && list.size === round);
    }
    const { tasks } = await other.call("task.list", { conversation: "kills", limit: rounds + 1 });
    assert.deepEqual(tasks.map((row: any) => row.title), Array.from({ length: rounds }, (_, at) => `Task ${at + 1}`));
    assert.deepEqual(formatRows(list), tasks.map((row: any) => `${row.id} ${row.title} pending `));
    assert.equal(seen, rounds);
    assert.equal(changes.filter((change) => change.reset).length, 1);
  } finally {
    await own.end();
  }
});

test("change fails without a daemon and waits for a suspended one", async () => {
  const own = await new Daemon().start();
  try {
    const { list } = follow("away", own);
    const connection = list.connection;
    await until(() => list.ready);
    own.pause();
    const waiting = connection.change("task.add", { conversation: "away", title: "One" });
    await own.kill();
    await until(() => !connection.connected);
    await assert.rejects(connection.change("task.add", { conversation: "away", title: "Two" }), (error: CallError) => error.kind === "connection");
    await own.start();
    assert.equal((await waiting).task.title, "One");
    await until(() => list.size === 1);
  } finally {
    await own.end();
  }
});

test("replaced log is read again", async () => {
  const own = await new Daemon().start();
  try {
    const { list, changes } = follow("restored", own);
    await until(() => list.ready);
    await list.connection.change("task.add", { conversation: "restored", title: "Old" });
    await until(() => list.size === 1);
    await own.kill();
    fs.rmSync(path.join(own.directory, "data"), { recursive: true });
    await own.start();
    await until(() => list.size === 0 && list.connection.connected);
    await list.connection.change("task.add", { conversation: "restored", title: "New" });
    await until(() => list.get("1")?.title === "New");
    assert.equal(changes.filter((change) => change.reset).length, 2);
  } finally {
    await own.end();
  }
});

test("ten thousand tasks arrive in parts as one change", async () => {
  for (let from = 0; from < 10_000; from += 1000) {
    const tasks = Array.from({ length: 1000 }, (_, at) => ({ title: `Task ${from + at + 1}` }));
    await agent.change("task.add_many", { conversation: "long", tasks });
  }
  const { list, changes } = follow("long");
  await until(() => list.ready);
  assert.deepEqual([list.ids().length, changes.length, changes[0]?.reset], [10_000, 1, true]);
  assert.equal(list.children().at(-1)?.title, "Task 10000");
  await status("long", "5000", "completed");
  await until(() => list.get("5000")?.status === "completed");
  assert.deepEqual([...(changes[1]?.before.keys() ?? [])], ["5000"]);
});

test("children are sorted before parents", () => {
  const tasks = [["1"], ["2", "1"], ["3", "2"], ["4", "1"], ["5"], ["6", "9"]].map(([id, parent]) => ({ id, parent }));
  assert.deepEqual(belowFirst(tasks as Row[]).map((row) => row.id), ["3", "2", "4", "1", "5", "6"]);
});

test("project file with another project's list is not allowed", async () => {
  const directory = path.join(daemon.directory, "project");
  fs.mkdirSync(directory);
  assert.equal((await resolve(agent, directory)).conversation, null);
  fs.writeFileSync(path.join(directory, ".punchlist.toml"), 'conversation = "website"\n');
  const resolved = await resolve(agent, directory);
  assert.deepEqual([resolved.conversation, resolved.allowed, resolved.root], ["website", false, directory]);
});

test("notifications follow the level and omit own changes", async () => {
  const { list, changes } = follow("news");
  await until(() => list.ready);
  await add("news", "One", { owner: "me" });
  await add("news", "Two", { blocked_by: ["1"] });
  await until(() => list.size === 2);
  changes.length = 0;
  await status("news", "1", "completed");
  await until(() => list.get("1")?.status === "completed");
  const reader = { counts: { pending: 2 }, own: new Map<string, number>(), owner: "me" };
  const change = changes.at(-1) as Change;
  assert.deepEqual(findNews(list, change, { ...reader, level: "all" }), ["#2 Two can start now"]);
  assert.deepEqual(findNews(list, change, { ...reader, level: "mine" }), []);
  await status("news", "2", "failed", { fail_reason: "no paper" });
  await until(() => list.get("2")?.status === "failed");
  const last = changes.at(-1) as Change;
  assert.deepEqual(findNews(list, last, { ...reader, level: "all" }), ["#2 Two failed: no paper", "all tasks of news are finished"]);
  assert.deepEqual(findNews(list, last, { ...reader, level: "off" }), []);
  const own = new Map([["2", list.get("2")?.version ?? 0]]);
  assert.deepEqual(findNews(list, last, { ...reader, own, level: "all" }), []);
});

test("long socket paths and split responses work", async () => {
  const far = path.join(daemon.directory, "a".repeat(100), "b".repeat(100));
  fs.mkdirSync(far, { recursive: true });
  const socket = path.join(far, "daemon.sock");
  const server = net.createServer((peer) => {
    const upstream = net.connect(daemon.socket);
    peer.pipe(upstream);
    upstream.on("data", (data) => data.forEach((byte) => peer.write(Buffer.from([byte]))));
    upstream.on("close", () => peer.destroy());
    peer.on("close", () => upstream.destroy());
  });
  process.chdir(far);
  await new Promise<void>((done) => server.listen("daemon.sock", done));
  const slow = new Connection({ client: "slow", version: "1", socket: () => socket });
  slow.open();
  await until(() => slow.connected);
  assert.equal((await slow.change("task.add", { conversation: "slow", title: "für später 🙂" })).task.title, "für später 🙂");
  slow.close();
  server.close();
});

test("socket path follows the environment", () => {
  assert.equal(socketPath({ PUNCHLIST_SOCKET: "/a/b" }), "/a/b");
  assert.equal(socketPath({ XDG_RUNTIME_DIR: "/run/me" }), "/run/me/punchlist/daemon.sock");
});
