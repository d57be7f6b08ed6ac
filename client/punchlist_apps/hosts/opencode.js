// Adds open tasks, and changes by others, to the context of OpenCode's sessions.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";

const COMMAND = $COMMAND;
const TIMEOUT_MS = 10_000;

function ask(event, session, directory) {
  return new Promise((resolve) => {
    const [program, ...words] = COMMAND;
    const child = execFile(program, words, { cwd: directory, timeout: TIMEOUT_MS }, (error, output) =>
      resolve(error ? "" : output.trim()),
    );
    child.stdin?.on("error", () => {}); // the program is missing, or has ended
    child.stdin?.end(JSON.stringify({ hook_event_name: event, session_id: session, cwd: directory }));
  });
}

export const Punchlist = async ({ directory }) => {
  const started = new Set();
  return {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const event = started.has(sessionID) ? "UserPromptSubmit" : "SessionStart";
      started.add(sessionID);
      const text = await ask(event, sessionID, directory);
      if (text) {
        const id = `prt_punchlist${Date.now().toString(36)}${randomUUID().replaceAll("-", "")}`;
        parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true });
      }
    },
  };
};
