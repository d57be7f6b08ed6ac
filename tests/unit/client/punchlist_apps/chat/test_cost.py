"""What a turn costs, in calls of the daemon and in modules: `make bench ONLY=chat` measures the time of both."""

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
"""Of a turn that adds a task: said and queued, claimed, what was before and what is on the list, the step written down,
the call and what it did, its receipt, the answer, and the turn's end."""


class Counting(AsyncClient):
    """Notes the methods that are called."""

    seen: list[str]

    async def run(self, call: Call[Any]) -> Any:
        """Make a typed call."""
        self.seen.append(call.method)
        return await super().run(call)


async def test_a_turn_by_rules_takes_eleven_calls_however_many_were_before(daemon: Running) -> None:
    async with Counting(socket=daemon.socket, autostart=False, name="test") as client:
        client.seen = []
        talk = Talk(await Thread.open(client, "plan"), Worker())
        for number in range(12):
            client.seen.clear()
            assert await talk.told(f"add task {number}") == f"Created task: {number}"
            assert client.seen == CALLS.split()


async def test_a_turn_of_long_ago_is_read_with_what_was_before_it_alone(talk: Talk) -> None:
    turns: list[str] = []
    for number in range(60):
        await talk.say(f"hello {number}")
        turns.append(talk.turn)
    message, written, past = await talk.thread.load_turn(turns[1])
    assert (message.content["text"], past) == ("hello 1", [])
    assert written["a"]["text"].startswith("Hello")
    message, written, past = await talk.thread.load_turn(turns[40])
    assert [one.text for one in past] == [f"hello {number}" for number in range(30, 40)]


def test_rules_alone_load_nothing_of_models_of_settings_files_or_of_the_web() -> None:
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
