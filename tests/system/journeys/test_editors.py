"""Third-party clients: a shell, an editor's JSON-RPC library, an editor."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from punchlist_testing.daemon import Raw, Spawned, spawned_daemon
from punchlist_testing.optional import NODE, NPM, needs, require_program

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text("utf-8")
PATIENCE_S = 30


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spawned]:
    # The page names $XDG_RUNTIME_DIR/punchlist/daemon.sock.
    directory = tmp_path_factory.mktemp("runtime")
    (directory / "punchlist").symlink_to("run")
    with spawned_daemon(directory) as running:
        yield running


@pytest.fixture
def environment(daemon: Spawned, tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(daemon.directory),
        "PUNCHLIST_SOCKET": daemon.socket,
        "PUNCHLIST_DATA_DIR": daemon.data_dir,
        "PUNCHLIST_AUTOSTART": "0",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def block(page: str, language: str, marker: str) -> str:
    """Return the page's code block in this language that contains `marker`."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (found,) = [each for each in blocks if marker in each]
    return found


def titles(daemon: Spawned, conversation: str) -> list[str]:
    peer = Raw(daemon.socket)
    try:
        return [task["title"] for task in peer.result("task.list", conversation=conversation)["tasks"]]
    finally:
        peer.close()


def test_netcat_example_works(daemon: Spawned, environment: dict[str, str]) -> None:
    netcat = require_program("nc")
    if "-N" not in subprocess.run([netcat, "-h"], capture_output=True, text=True, check=False).stderr:
        pytest.skip("this nc does not close its side at the end of its input")
    command, *calls = block(PROTOCOL, "console", "nc -U").splitlines()
    assert command.startswith("$ nc -U ")
    said = subprocess.run(
        ["sh", "-c", command.removeprefix("$ ").replace("nc -U", "nc -N -U")],
        input="\n".join(calls) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment,
        check=True,
    ).stdout.splitlines()
    messages = [json.loads(line) for line in said]
    assert {message.get("id") for message in messages} >= {1, 2}
    assert "From a bare socket" in titles(daemon, "website")


EDITOR_LIBRARY = """
const net = require("net"), rpc = require("vscode-jsonrpc/node");
const socket = net.connect(process.env.PUNCHLIST_SOCKET);
const connection = rpc.createMessageConnection(
  new rpc.StreamMessageReader(socket), new rpc.StreamMessageWriter(socket));
const pushed = [];
connection.onNotification("list", (params) => pushed.push(params));
connection.listen();
(async () => {
  const hello = await connection.sendRequest("daemon.hello", { client: { name: "editor" } });
  await connection.sendRequest("event.subscribe", { conversation: "editor", view: "list" });
  const added = await connection.sendRequest("task.add", { conversation: "editor", title: "für später" });
  let refused;
  try { await connection.sendRequest("task.get", { conversation: "editor", task: "9" }); }
  catch (error) { refused = { code: error.code, kind: error.data.kind }; }
  await connection.sendNotification("task.add", { conversation: "editor", title: "unanswered" });
  while (pushed.length < 2) await new Promise((done) => setTimeout(done, 5));
  const titles = pushed[1].tasks.map((task) => task.title);
  console.log(JSON.stringify({ name: hello.name, id: added.task.id, refused, titles }));
  connection.dispose(); socket.end();
})();
"""


@needs("npm", present=True)
def test_vscode_jsonrpc_library_works(environment: dict[str, str], tmp_path: Path) -> None:
    install = [*NPM, "install", "--no-audit", "--no-fund", "--prefer-offline", "vscode-jsonrpc@8.2.1"]
    try:
        subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    except subprocess.TimeoutExpired:
        pytest.skip("the registry of npm does not answer")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"npm can't install vscode-jsonrpc: {error.stderr.strip().splitlines()[-1]}")
    (tmp_path / "client.js").write_text(EDITOR_LIBRARY, "utf-8")
    said = subprocess.run(
        [NODE, "client.js"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment,
        check=True,
    ).stdout
    assert json.loads(said) == {
        "name": "punchlistd",
        "id": "1",
        "refused": {"code": -32001, "kind": "not_found"},
        "titles": ["für später", "unanswered"],
    }


def test_neovim_example_shows_the_list(daemon: Spawned, environment: dict[str, str], tmp_path: Path) -> None:
    neovim = require_program("nvim")
    shown = tmp_path / "shown"
    source = block(PROTOCOL, "lua", "new_pipe").replace("print(data)", "shown(data)").replace('"default"', '"neovim"')
    script = f"""
local seen = ""
local function shown(data)
  seen = seen .. (data or "")
  local file = io.open("{shown}", "w"); file:write(seen); file:close()
end
{source}
"""
    (tmp_path / "client.lua").write_text(script, "utf-8")
    editor = subprocess.Popen(
        [neovim, "--headless", "--clean", "-c", f"luafile {tmp_path}/client.lua"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**environment, "TERM": "dumb"},
    )
    peer = Raw(daemon.socket)
    try:
        after = 0
        while not any(each["conversation"] == "neovim" for each in _subscriptions(peer)):
            assert editor.poll() is None, editor.communicate()[1]
            after = peer.result("event.wait", after=after, timeout_ms=10)["next"]
        peer.result("task.add", conversation="neovim", title="seen in the editor")
        while not (shown.exists() and "seen in the editor" in shown.read_text("utf-8")):
            peer.result("event.wait", after=peer.result("daemon.status")["seq"], timeout_ms=10)
    finally:
        peer.close()
        editor.kill()
        editor.communicate()
    lines = [json.loads(line) for line in shown.read_text("utf-8").splitlines()]
    assert [line.get("method", "answer") for line in lines] == ["answer", "list"]


def _subscriptions(peer: Raw) -> list[dict[str, str]]:
    return [each for each in peer.result("daemon.status")["subscriptions"] if "conversation" in each]
