"""The example of a custom agent: each turn is a process that calls a real server over MCP's HTTP transport."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.optional import require_package

require_package("agents")
require_package("mcp")

from punchlist import connect
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.scripted_model import Says, Script, last_user, serving

EXAMPLE = Path(__file__).resolve().parents[5] / "examples" / "chat" / "agent_over_mcp.py"
USER, OTHER = "user-123", "user-456"
TOKENS = {USER: "token-of-the-first-user", OTHER: "token-of-the-other-user"}
CALLER = {"user_id": USER}
TURN_S = 50
GIVING = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, "-m", "punchlist", *sys.argv[2:]])
"""


def assistant(messages: list[dict[str, Any]]) -> Says:  # noqa: PLR0911 - one return for each kind of message
    """A model that calls the tools as a task assistant should, and repeats their results."""
    text, told = last_user(messages), list_results(messages)
    tasks = [one for one in messages if one["role"] == "user"]
    if text == "hello, how are you?":
        return "Hello! I'm doing well, thank you."
    if text == "what is your name?":
        return "I'm your Todo AI Assistant."
    if text.startswith("show"):
        rows = json.loads(told[0]) if told else []
        listing = "\n".join(f"#{row['id']} {row['title']}" for row in rows)
        return f"You have {len(rows)} tasks:\n{listing}" if told else [("list_tasks", {**CALLER, "status": "all"})]
    if text.startswith("delete all"):
        if not told:
            return [("list_tasks", CALLER)]
        first, *also = [row["id"] for row in json.loads(told[0])]
        if len(told) == 1:
            return [("delete_task", {**CALLER, "task_id": first, "also": also})]
        return str(json.loads(told[1])["question"])
    assert text == "yes" and len(tasks) > 1
    if not told:
        return [("list_tasks", CALLER)]
    first, *also = [row["id"] for row in json.loads(told[0])]
    if len(told) == 1:
        return [("delete_task", {**CALLER, "task_id": first, "also": also, "user_words": "yes"})]
    if len(told) == 2:
        return [("list_tasks", CALLER)]
    left, gone = json.loads(told[2]), json.loads(told[1])
    return f"I've deleted all {len(gone['deleted'])} tasks. Verified: Your task list is now {left or 'empty'}."


def list_results(messages: list[dict[str, Any]]) -> list[str]:
    """Return the tools' results since the last user message, which the SDK sends as text or as parts."""
    at = max(number for number, one in enumerate(messages) if one["role"] == "user")
    contents = [one["content"] for one in messages[at:] if one["role"] == "tool"]
    return ["".join(part["text"] for part in one) if isinstance(one, list) else one for one in contents]


class Assistant:
    """The example with a daemon, its MCP server and a scripted model, each in its own process or thread."""

    def __init__(self, daemon: Spawned, script: Script, port: int, api: str) -> None:
        self.script = script
        self.daemon = daemon
        self.thread = "talk"
        self.tools: list[str] = []
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(one for one in sys.path if one),
            "PUNCHLIST_SOCKET": daemon.socket,
            "PUNCHLIST_AUTOSTART": "0",
            "MCP_URL": f"http://127.0.0.1:{port}/mcp",
            "MCP_TOKEN": TOKENS[USER],
            "OPENAI_BASE_URL": script.url,
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_API": api,
        }

    async def told(self, text: str, user: str = USER) -> str:
        """Send a message and return the answer."""
        with anyio.fail_after(TURN_S):
            done = await anyio.run_process(
                [sys.executable, "-W", "ignore", str(EXAMPLE), "scripted", user, self.thread, text],
                env=self._environment,
                check=False,
            )
        assert done.returncode == 0, done.stderr.decode()
        names = ["add_task", "list_tasks", "complete_task", "delete_task", "update_task"]
        assert f"MCP tools available to agent: {names}\n" in done.stderr.decode()
        self.tools = re.findall(r"^· (\w+)$", done.stderr.decode(), re.MULTILINE)
        return done.stdout.decode().removesuffix("\n")


@pytest.fixture(params=["chat", "responses"])
def assistant_at(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Assistant]:
    table = tmp_path / "users.json"
    table.touch(mode=0o600)
    table.write_text(json.dumps({token: [user] for user, token in TOKENS.items()}))
    with spawned_daemon(tmp_path) as daemon, serving(assistant) as script, socket.socket() as listening:
        script.one_id = False
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        served = ["agent", "mcp", "--http", "--dialect", "todo-v1", "--users", str(table), "-c", "todos"]
        # The socket is passed to the server as a service manager does, so an early request waits in its queue.
        process = subprocess.Popen(
            [sys.executable, "-c", GIVING, str(listening.fileno()), *served, "--socket", daemon.socket],
            pass_fds=(listening.fileno(),),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
            stderr=subprocess.PIPE,
        )
        port = listening.getsockname()[1]
        listening.close()
        try:
            yield Assistant(daemon, script, port, request.param)
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
            assert not any(token.encode() in errors for token in TOKENS.values())


@pytest.mark.timeout(400)
async def test_mcp_agent_follows_specification(assistant_at: Assistant) -> None:
    talk = assistant_at
    with connect(socket=talk.daemon.socket, autostart=False, user=USER) as client:
        mine = client.conversation("my:todos")
        mine.add_many([f"Task number {n}" for n in range(1, 13)])

        assert await talk.told("hello, how are you?") == "Hello! I'm doing well, thank you."
        assert talk.tools == []
        told = await talk.told("show me my tasks")
        assert told.splitlines() == ["You have 12 tasks:", *(f"#{task.id} {task.title}" for task in mine.list())]
        assert talk.tools == ["list_tasks"]
        asked = await talk.told("delete all my tasks")
        assert asked.startswith("Are you sure you want to delete tasks 1, 2, 3") and len(mine.list()) == 12
        told = await talk.told("yes")
        assert told == "I've deleted all 12 tasks. Verified: Your task list is now empty."
        assert talk.tools == ["list_tasks", "delete_task", "list_tasks"] and list(mine.list()) == []
        assert await talk.told("what is your name?") == "I'm your Todo AI Assistant."
        assert talk.tools == []

        sent = talk.script.asked[-1]
        history = sent.get("messages") or sent["input"]
        assert "You MUST use this user_id" in str(history[:2]) and "what is your name?" in str(history[-1])
        messages = client.conversation(talk.thread).messages(limit=100).messages
        assert [one.role for one in messages] == ["user", "assistant"] * 5
        assert len({one.message for one in messages}) == 10

    with connect(socket=talk.daemon.socket, autostart=False, user=OTHER) as client:
        client.conversation("my:todos").add("a secret")
    talk.script.profile = lambda messages: "".join(list_results(messages)) or [("list_tasks", {"user_id": OTHER})]
    told = await talk.told("show theirs")
    assert "a secret" not in told and "user" in told and talk.tools == ["list_tasks"]
