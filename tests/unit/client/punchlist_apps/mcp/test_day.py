"""A day on one list: a plan with three levels, three agents with their own servers, and a person in a shell."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from punchlist_apps.hosts.sessions import build_agent_name, hash_session
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository, worktree

require_package("mcp")
mcp: Any = import_module("mcp")

PLAN = """\
# Launch

## Backend
- [ ] Schema
- [ ] API
  - [ ] Login
  - [ ] Tests

## Docs
- [ ] Guide
- [ ] Tests
"""
PATIENCE_S = 60


def environment(**more: str) -> dict[str, str]:
    own = ("CLAUDE", "PUNCHLIST")
    bare = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return {**bare, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one), **more}


class Day:
    """A daemon, a repository with the plan, and a person in it."""

    def __init__(self, daemon: Spawned, directory: Path) -> None:
        self.daemon = daemon
        self.site = repository(directory / "website")
        self.branch = worktree(self.site, directory / "branch")
        (self.site / "PLAN.md").write_text(PLAN)

    def command(self, *words: str) -> list[str]:
        places = ["--socket", self.daemon.socket, "--data-dir", self.daemon.data_dir, "--no-autostart"]
        return [sys.executable, "-m", "punchlist", *words, *places]

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        env = environment(**{"PUNCHLIST_ACTOR": "ann"} | variables)
        return subprocess.Popen(
            self.command(*words),
            cwd=self.site,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    async def ann(self, *words: str, code: int = 0, **variables: str) -> str:
        """Run a command as ann and return its output, or its errors if it must fail."""
        process = self.start(*words, **variables)
        out, err = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=PATIENCE_S))
        assert process.returncode == code, (words, process.returncode, out, err)
        return err if code else out

    async def task(self, number: str) -> dict[str, Any]:
        return json.loads(await self.ann("show", number, "--json"))["task"]

    @asynccontextmanager
    async def window(self, session: str, directory: Path) -> AsyncGenerator["Window"]:
        """Open a window of Claude Code in a directory."""
        pid = self.daemon.directory / f"{session}.pid"
        server = mcp.StdioServerParameters(
            command="sh",
            args=["-c", f'echo $$ > "{pid}"; exec "$@"', "sh", *self.command("agent", "mcp")],
            env=environment(CLAUDECODE="1", CLAUDE_CODE_SESSION_ID=session),
            cwd=str(directory),
        )
        info = mcp.types.Implementation(name="claude-code", version="2")
        async with mcp.Client(server, client_info=info) as client:
            yield Window(client, build_agent_name("claude-code", hash_session(session)), pid)


class Window:
    """An agent in a window of Claude Code, which can be killed."""

    def __init__(self, client: Any, name: str, pid: Path) -> None:
        self._client = client
        self._pid = pid
        self.name = name

    async def call(self, tool: str, **arguments: Any) -> str:
        with anyio.fail_after(PATIENCE_S):
            reply = await self._client.call_tool(tool, arguments)
        return reply.content[0].text

    def kill(self) -> None:
        os.kill(int(self._pid.read_text()), signal.SIGKILL)


@pytest.fixture
async def day(tmp_path: Path) -> AsyncGenerator[Day]:
    with spawned_daemon(tmp_path) as daemon:
        yield Day(daemon, tmp_path)


async def test_three_agents_and_a_person_finish_a_day(day: Day) -> None:
    assert "imported 8 tasks" in await day.ann("import", "PLAN.md")
    finished = day.start("wait")
    async with AsyncExitStack() as windows:
        a = await windows.enter_async_context(day.window("morning", day.site))
        b = await windows.enter_async_context(day.window("noon", day.branch))
        async with day.window("evening", day.site) as c:
            await check_that_work_is_handed_out(day, a, b, c)
            await check_that_notes_arrive(day, a)
            c.kill()
            await check_that_who_is_gone_is_seen(day, b, c)
        await check_that_assigned_work_goes_to_its_owner(day, a)
        await check_that_an_agents_work_is_undone_by_name(day, a, b)
        await check_that_a_gate_waits_for_a_person(day, a, b)
    await check_that_a_day_is_the_same_everywhere(day)
    await check_that_a_mistyped_command_helps(day)
    await day.ann("rm", "10")
    out, err = await anyio.to_thread.run_sync(lambda: finished.communicate(timeout=PATIENCE_S))
    assert finished.returncode == 0, (out, err)


async def check_that_work_is_handed_out(day: Day, a: Window, b: Window, c: Window) -> None:
    assert "Now #2: Backend › Schema" in await a.call("next")
    assert "Now #4: Backend › API › Login" in await b.call("next")
    assert "Now #5: Backend › API › Tests" in await c.call("next")
    who = await day.ann("who")
    assert all(window.name in who for window in (a, b, c))
    refused = await day.ann("done", "1", code=1)
    assert "#2, #3" in refused


async def check_that_notes_arrive(day: Day, a: Window) -> None:
    await day.ann("note", "2", "use the new names")
    await day.ann("note", "7", "keep it short")
    reply = await a.call("next", result="three tables")
    assert "use the new names" in reply
    assert "Now #7: Docs › Guide" in reply
    assert "keep it short" in reply
    assert "keep it short" not in await a.call("tasks", since="last"), "the change was already reported"


async def check_that_who_is_gone_is_seen(day: Day, b: Window, c: Window) -> None:
    with anyio.fail_after(PATIENCE_S):
        while "left" not in await day.ann("why", "5"):  # the daemon notices the agent's departure later
            pass
    assert "left" in await day.ann("list")
    assert c.name in await day.ann("who")
    await day.ann("assign", "8", "ann")
    offered = await b.call("next", result="by a token")
    assert f"Task 5 belongs to {c.name}" in offered
    assert "#5 is yours" in await b.call("update", id="5", status="in_progress")
    assert "Now #3: Backend › API" in await b.call("next", result="twelve pass")
    assert "#1" not in await b.call("next", result="checked as a whole"), "a heading has no owner"
    assert (await day.task("1"))["status"] == "completed"


async def check_that_assigned_work_goes_to_its_owner(day: Day, a: Window) -> None:
    assert "reserved for ann" in await day.ann("why", "8", PUNCHLIST_ACTOR="bob")
    assert "#8 is reserved for ann" in await a.call("next", result="two pages")
    await day.ann("assign", "8", a.name[:-2])
    assert "Now #8: Docs › Tests" in await a.call("next")
    await a.call("next", result="links are checked")
    assert (await day.task("6"))["status"] == "completed"


async def check_that_an_agents_work_is_undone_by_name(day: Day, a: Window, b: Window) -> None:
    preview = await day.ann("undo", "--of", b.name, "--preview")
    assert "checked as a whole" in preview
    await day.ann("undo", "--of", b.name)
    assert [(await day.task(one))["status"] for one in ("1", "3", "8")] == ["pending", "in_progress", "completed"]
    await day.ann("redo")
    assert (await day.task("1"))["status"] == "completed"
    assert "nothing to undo" not in await day.ann("undo", "--of", a.name, "--preview")


async def check_that_a_gate_waits_for_a_person(day: Day, a: Window, b: Window) -> None:
    await day.ann("add", "Deploy", "--gate", "yes")
    assert "Now #9: Deploy" in await a.call("next")
    assert "a person says yes" in await a.call("next", result="deployed")
    for window in (a, b):
        assert "waits for a person's yes" in await window.call("update", id="9", status="in_progress")
    await day.ann("approve", "9", "--yes")
    assert (await day.task("9"))["status"] == "completed"


async def check_that_a_day_is_the_same_everywhere(day: Day) -> None:
    await day.ann("add", "Announce", "--due", "2126-12-24", TZ="Europe/Berlin")
    for zone in ("Europe/Berlin", "America/New_York", "Pacific/Kiritimati"):
        assert "2126-12-24" in await day.ann("show", "10", TZ=zone)


async def check_that_a_mistyped_command_helps(day: Day) -> None:
    assert "did you mean" in await day.ann("lsit", code=2)
