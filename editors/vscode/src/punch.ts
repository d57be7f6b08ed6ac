// The command `punch`: where it is, what starts a daemon, and the MCP server that it is for agent mode.

import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";

const PASSED_ON = ["PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "PUNCHLIST_AUTOSTART"] as const;

/** The command: as the settings say, else in PATH, else where pipx and uv put it; null where there is none. */
export function punch(): string | null {
  const chosen = vscode.workspace.getConfiguration("punchlist").get("command", "");
  if (chosen) return chosen;
  const folders = [...(process.env.PATH ?? "").split(path.delimiter), path.join(os.homedir(), ".local/bin")];
  for (const folder of folders.filter(path.isAbsolute)) {
    const file = path.join(folder, "punch");
    try {
      fs.accessSync(file, fs.constants.X_OK);
      return file;
    } catch {
      continue;
    }
  }
  return null;
}

/** Start a daemon where the person allows it; any command of punch that asks it something does. */
export function startDaemon(): void {
  const isAllowed = process.env.PUNCHLIST_AUTOSTART !== "0" && vscode.workspace.getConfiguration("punchlist").get("autostart", true);
  const command = isAllowed ? punch() : null;
  if (!command) return;
  const started = spawn(command, ["daemon", "status"], { stdio: "ignore", detached: true });
  started.on("error", () => undefined); // the views say that nobody listens
  started.unref();
}

/** Brings `punch agent mcp` to agent mode; no file is written. */
export function registerMcpServer(version: string): vscode.Disposable[] {
  const changed = new vscode.EventEmitter<void>();
  const provider: vscode.McpServerDefinitionProvider = {
    onDidChangeMcpServerDefinitions: changed.event,
    provideMcpServerDefinitions: () => {
      const command = punch();
      if (!command) return [];
      const env = Object.fromEntries(PASSED_ON.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
      const server = new vscode.McpStdioServerDefinition("punchlist", command, ["agent", "mcp", "--dialect", "native"], env, version);
      const folder = vscode.workspace.workspaceFolders?.[0];
      if (folder) server.cwd = folder.uri;
      return [server];
    },
  };
  return [
    vscode.lm.registerMcpServerDefinitionProvider("punchlist", provider),
    vscode.workspace.onDidChangeWorkspaceFolders(() => changed.fire()),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("punchlist.command") && changed.fire()),
  ];
}
