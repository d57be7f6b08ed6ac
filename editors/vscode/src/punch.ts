// The command `punch`: finds it, starts a daemon with it, and offers its MCP server to agent mode.

import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { isConfigured } from "./servers.ts";

const PASSED_VARIABLES = ["PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "PUNCHLIST_AUTOSTART"] as const;

/** Return the path of the command from the settings, PATH, or the directory of pipx and uv; null if not found. */
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

/** Start a daemon, if the user allows it, by running a command that calls the daemon. */
export function startDaemon(): void {
  const isAllowed = process.env.PUNCHLIST_AUTOSTART !== "0" && vscode.workspace.getConfiguration("punchlist").get("autostart", true);
  const command = isAllowed ? punch() : null;
  if (!command) return;
  const child = spawn(command, ["daemon", "status"], { stdio: "ignore", detached: true });
  child.on("error", () => undefined); // The views show the failure.
  child.unref();
}

/**
 * Register `punch agent mcp` for agent mode, without a configuration file. If a file configures the server, offer none,
 * because agents would have each tool twice.
 */
export function registerMcpServer(version: string, storage: vscode.Uri): vscode.Disposable[] {
  const user = vscode.Uri.joinPath(storage, "../.."); // VS Code's directory `User`
  const watchers = [vscode.workspace.createFileSystemWatcher("**/.vscode/mcp.json"), vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(user, "mcp.json"))];
  const changed = new vscode.EventEmitter<void>();
  const provider: vscode.McpServerDefinitionProvider = {
    onDidChangeMcpServerDefinitions: changed.event,
    provideMcpServerDefinitions: () => {
      const command = punch();
      const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => path.join(folder.uri.fsPath, ".vscode"));
      if (!command || isConfigured([user.fsPath, ...folders].map((place) => path.join(place, "mcp.json")))) return [];
      const env = Object.fromEntries(PASSED_VARIABLES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
      const server = new vscode.McpStdioServerDefinition("punchlist", command, ["agent", "mcp", "--dialect", "native"], env, version);
      const folder = vscode.workspace.workspaceFolders?.[0];
      if (folder) server.cwd = folder.uri;
      return [server];
    },
  };
  return [
    vscode.lm.registerMcpServerDefinitionProvider("punchlist", provider),
    ...watchers,
    ...watchers.flatMap((watcher) => [watcher.onDidCreate, watcher.onDidChange, watcher.onDidDelete].map((on) => on(() => changed.fire()))),
    vscode.workspace.onDidChangeWorkspaceFolders(() => changed.fire()),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("punchlist.command") && changed.fire()),
  ];
}
