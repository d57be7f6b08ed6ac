// Tests the pure functions for text and places.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { findPlaces, findTodo, formatPlace, placesOf } from "../src/places.ts";
import { compileFilter, escapeIcons, escapeLinks, formatDescription, formatDetails, formatLabel, formatPage, formatPresent, formatSummary, iconOf } from "../src/text.ts";
import type { Row, Status } from "../src/wire.ts";

const row = (members: Partial<Row>): Row => ({ id: "3", title: "Write", status: "pending", rank: "a", version: 1, created_at: 0, updated_at: 0, ...members });

test("hostile titles are escaped", () => {
  assert.equal(formatLabel(row({ title: "\x1b[31mred" })), "#3 \\x1b[31mred");
  assert.equal(formatLabel(row({ title: "left \u202egnp" })), "#3 left \\u202egnp");
  assert.equal(escapeLinks("[ok](command:x)"), "[ok] (command:x)");
  assert.equal(escapeIcons("$(alert)"), "$ (alert)");
  assert.ok(!formatDetails(row({ description: "\x1b[2J", notes: [{ at: 0, actor: "\x07", text: "\x1b" }] })).match(/[\x00-\x09\x0b-\x1f]/));
});

test("description has priority, owner, blockers and reason", () => {
  assert.equal(formatDescription(row({ priority: "high", owner: "ann", open_blockers: ["1", "2"], labels: ["web"] })), "!high  @ann  waits for #1, #2  +web");
  assert.equal(formatDescription(row({ status: "failed", fail_reason: "no paper", priority: "normal" })), "no paper");
});

test("task at its gate shows what it waits for", () => {
  assert.equal(formatDescription(row({ status: "paused", waits_for: "yes", gate: { yes: true } })), "waits for your yes");
  assert.equal(formatDescription(row({ status: "paused", waits_for: "yes", gate: { by: "ann\x1b" } })), "waits for ann\\x1b's yes");
  assert.match(formatDetails(row({ status: "paused", waits_for: "check", gate: { check: "tests" } })), /done, and +waits for the check tests/);
});

test("filter words must all match", () => {
  const rows = [
    row({ id: "1", title: "Pay Refund", owner: "codex/b2", priority: "high", labels: ["api v2"] }),
    row({ id: "2", status: "completed", description: "the refund" }),
    row({ id: "3", open_blockers: ["1"] }),
    row({ id: "4", status: "paused", waits_for: "yes" }),
  ];
  const fits = (filter: string): string => rows.filter(compileFilter(filter)).map(({ id }) => id).join("");
  const found = ["", "refund", "refund is:open", "@CODEX", "p:high", "+api.v2", "#3", "is:blocked", "is:asks", "is:nothing", "+", "@", "(["].map(fits);
  assert.deepEqual(found, ["1234", "12", "1", "1", "1", "1", "3", "3", "4", "", "", "", ""]);
});

test("task in full is Markdown without control characters", () => {
  const page = formatPage(row({ title: "a\x1b", description: "- **b**", result_summary: "c", notes: [{ at: 0, actor: "ann", text: "d\x1b" }] }));
  assert.match(page, /^# #3 a\\x1b\n\n- status: pending\n(- .*\n)*\n- \*\*b\*\*\n\n## Note by ann, .*\n\nd\\x1b\n$/);
});

test("owners, machines and presence are formatted", () => {
  const shared = row({ status: "in_progress", owner: "ann", machine: "laptop-ann\x1b" });
  assert.equal(formatDescription(shared), "@ann on laptop-ann\\x1b");
  assert.match(formatDetails(shared), /owner +@ann on laptop-ann\\x1b/);
  assert.equal(formatSummary({ conversation: "c", version: 1, updated_at: 0, counts: { in_progress: 1 }, running: [{ id: "3", title: "t", owner: "ann", machine: "m" }] }), "1 of 1 open  #3 @ann on m");
  assert.equal(formatPresent([{ actor: "claude\u202e", connections: 2 }, { actor: "nvim", connections: 1 }]), "claude\\u202e ×2, nvim");
});

test("unknown state of a newer daemon has an icon", () => {
  assert.deepEqual([iconOf("failed"), iconOf("frozen" as Status)], [["error", "errorForeground"], ["question"]]);
});

test("places are found in texts and links", () => {
  const places = placesOf(row({ title: "Fix src/a.py:12, /etc/b:3.", description: "see ~/c.txt:4", links: [{ kind: "path", to: "d.py:7" }, { kind: "path", to: "e.py" }, { kind: "url", to: "f:1" }] }), "/p");
  const home = os.homedir();
  assert.deepEqual(places, [
    { file: "/p/d.py", line: 7 },
    { file: "/p/e.py", line: 1 },
    { file: "/p/src/a.py", line: 12 },
    { file: "/etc/b", line: 3 },
    { file: path.join(home, "c.txt"), line: 4 },
  ]);
  assert.deepEqual(findPlaces("a.py:1", null), []);
  assert.deepEqual(findPlaces("at 12:36:53", "/p"), []);
  assert.deepEqual([formatPlace("/p/src/a.py", 3, "/p"), formatPlace("/q/a.py", 3, "/p")], ["src/a.py:3", "/q/a.py:3"]);
});

test("TODO comments are parsed", () => {
  assert.deepEqual(["# TODO(ann): mend this ", "/* FIXME mend this */", "<!-- XXX - mend this -->"].map(findTodo), Array(3).fill("mend this"));
  assert.deepEqual(["TODO", "// TODO:  ", "todo later", "/* TODO */"].map(findTodo), Array(4).fill(undefined));
});

test("hostile text does not slow down the search for places", () => {
  const began = process.cpuUsage().user;
  findPlaces("a/".repeat(100_000) + "a.".repeat(100_000), "/p");
  findTodo(`// TODO a${" ".repeat(100_000)}b`);
  assert.ok(process.cpuUsage().user - began < 2_000_000);
});

test("exactly the declared commands are registered", () => {
  const source = path.resolve(import.meta.dirname, "..");
  const declared = JSON.parse(fs.readFileSync(path.join(source, "package.json"), "utf8")).contributes.commands.map((declaration: { command: string }) => declaration.command.replace("punchlist.", ""));
  const code = ["actions.ts", "extension.ts"].map((name) => fs.readFileSync(path.join(source, "src", name), "utf8")).join("\n");
  const tables = [...code.matchAll(/^export const \w+ACTIONS: .*?= \{\n(.*?)^\};/gms)].flatMap((table) => [...(table[1] ?? "").matchAll(/^ {2}(\w+)[:,]/gm)].map((name) => name[1]));
  const single = [...code.matchAll(/register\("(\w+)"/g)].map((match) => match[1]);
  assert.deepEqual([...tables, ...single].sort(), declared.sort());
});

test("due days and importers of notes are shown", () => {
  assert.match(formatDetails(row({ due: 1_798_156_799_999, due_day: "2026-12-24" })), /^due +2026-12-24$/m);
  assert.match(formatDetails(row({ notes: [{ at: 0, actor: "ann", text: "hello", imported_by: "root\x1b" }] })), / ann \(imported by root\\x1b\): hello/);
});
