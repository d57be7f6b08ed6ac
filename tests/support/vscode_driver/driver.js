// Runs the code that a test sends, in the extension host of a real VS Code. `punchlist` is the activation's return value.

const net = require("node:net");
const readline = require("node:readline");
const vscode = require("vscode");

const AsyncFunction = (async () => {}).constructor;

exports.activate = async () => {
  const punchlist = await vscode.extensions.getExtension("punchlist.punchlist").activate();
  const socket = net.connect(process.env.PUNCHLIST_TEST_DRIVER);
  const lines = readline.createInterface({ input: socket });
  lines.on("line", async (line) => {
    const { id, code, given } = JSON.parse(line);
    let answer;
    try {
      answer = { id, result: (await new AsyncFunction("vscode", "punchlist", "given", code)(vscode, punchlist, given)) ?? null };
    } catch (error) {
      answer = { id, error: String(error?.stack ?? error) };
    }
    socket.write(JSON.stringify(answer) + "\n");
  });
};
