// Finds out whether VS Code starts punchlist's MCP server from a configuration file, as `punch setup vscode` writes it.

import * as fs from "node:fs";

/** Return whether one of the `mcp.json` files has a server named punchlist. Comments in such a file are allowed. */
export function isConfigured(files: readonly string[]): boolean {
  return files.some((file) => {
    try {
      return /^(?!\s*\/\/).*"punchlist"\s*:\s*\{/m.test(fs.readFileSync(file, "utf8"));
    } catch {
      return false; // VS Code reports a file that it can't read.
    }
  });
}
