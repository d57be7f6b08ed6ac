"""Cost of a turn in calls and loaded modules. `make bench ONLY=chat` measures the time of both."""

import subprocess
import sys
from typing import Any

from punchlist import AsyncClient
from punchlist.calls.call import Call
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import Talk
from punchlist_testing.daemon import Running
from punchlist_testing.unmeasured import unmeasured

CALLS = """
message.append task.add task.claim message.list task.list message.append
task.add event.find message.append message.append task.set_status
"""
"""Calls of a turn that adds a task: message and queue, claim, history and list, step, call and its events, receipt,
answer, and the end of the turn."""


class Counting(AsyncClient):
    """Records the method of each call."""

    seen: list[str]

    async def run(self, call: Call[Any]) -> Any:
        self.seen.append(call.method)
        return await super().run(call)


async def test_rules_turn_takes_eleven_calls(daemon: Running) -> None:
    async with Counting(socket=daemon.socket, autostart=False, name="test") as client:
        client.seen = []
        talk = Talk(await Thread.open(client, "plan"), Worker())
        for number in range(12):
            client.seen.clear()
            assert await talk.told(f"add task {number}") == f"Created task: {number}"
            assert client.seen == CALLS.split()


async def test_old_turn_gets_only_earlier_exchanges(talk: Talk) -> None:
    turns: list[str] = []
    for number in range(60):
        await talk.say(f"hello {number}")
        turns.append(talk.turn)
    message, written, past = await talk.thread.load_turn(turns[1])
    assert (message.content["text"], past) == ("hello 1", [])
    assert written["a"]["text"].startswith("Hello")
    message, written, past = await talk.thread.load_turn(turns[40])
    assert [one.text for one in past] == [f"hello {number}" for number in range(30, 40)]


def test_rules_load_no_model_modules() -> None:
    names = "punchlist_apps.cli.commands.chat, punchlist_apps.chat.worker, punchlist_apps.chat.settings"
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, {names}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env=unmeasured(),
    ).stdout.split()
    for name in (
        "http.client",
        "tomllib",
        "starlette",
        "agents",
        "punchlist.clients.sync",
        "punchlist_apps.chat.claims",
    ):
        assert name not in loaded, name
    assert not [
        name for name in loaded if name.startswith(("punchlist_apps.chat.models.completions", "punchlist_apps.web"))
    ]
