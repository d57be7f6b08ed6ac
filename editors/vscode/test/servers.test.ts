// Configured servers, in files as VS Code and `punch setup vscode` write them.

import assert from "node:assert/strict";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { test } from "node:test";
import { isConfigured } from "../src/servers.ts";

test("only a server named punchlist counts as configured", () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "punchlist-"));
  const file = path.join(folder, "mcp.json");
  const configured = (text: string): boolean => {
    fs.writeFileSync(file, text);
    return isConfigured([path.join(folder, "missing.json"), file]);
  };
  try {
    assert.equal(configured('{\n\t// ours\n\t"servers": {\n\t\t"punchlist": {\n\t\t\t"command": "punch",\n\t\t},\n\t}\n}'), true);
    assert.equal(configured('{"servers":{"punchlist":{"command":"punch"}}}'), true);
    assert.equal(configured('{\n"servers": {\n// "punchlist": {"command": "punch"}\n}}'), false);
    assert.equal(configured('{"servers":{"other":{"command":"punchlist","args":["punchlist"]}}}'), false);
    assert.equal(isConfigured([folder]), false);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
