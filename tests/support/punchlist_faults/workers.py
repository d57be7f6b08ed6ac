"""Kills the worker of sessions while they make SIZE calls: none fails, is lost or is made twice.

ONLY=hosts: 5 sessions of hand-written hosts, each in its own thread. The worker is killed whenever a random number of
calls has been answered, while others are running.
ONLY=sdk: 50 sessions of the SDK's client, in both eras of the protocol. The worker is killed after 2 s and 100 replies
each time.
BUG=keys lets each worker use new keys for repeated calls, which the run must detect.
"""

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Queue
from random import Random
from threading import Thread
from typing import Any

import anyio
from anyio import to_thread

from punchlist_faults.options import Figures, Options, Unavailable, need, workplace
from punchlist_faults.process import environment
from punchlist_testing.daemon import Raw, Spawned, spawned_daemon
from punchlist_testing.served_mcp import arguments
from punchlist_testing.workers import Host, find_worker, signal_worker, stop_workers

HOSTS = 5
SDK_SESSIONS = 50
SDK_REPLIES, SDK_S = 100, 2.0
"""Lower limits for the replies and the time between two kills under the SDK's clients."""

SDK_TIMEOUT_S = 900.0
MEAN_CALLS = 25
"""Mean number of answered calls between two kills."""

_FORGETFUL = """
import os, sys
if "punchlist_apps.worker" in sys.orig_argv:
    from punchlist.connection import core
    core.new_key = lambda method="": os.urandom(16).hex()
"""
"""`sitecustomize` of workers whose repeated calls get new keys."""


def _choose_call(number: int, title: str) -> tuple[str, dict[str, Any]]:
    """Rename the first task, which all sessions do, or add a task, in turn."""
    return ("plan", {"tasks": [{"title": title}]}) if number % 2 else ("update", {"id": "1", "title": title})


def _write(host: Host, name: str, count: int, done: "Queue[str]") -> None:
    for number in range(count):
        title = f"{name}/{number}"
        tool, arguments = _choose_call(number, title)
        reply = host.wait_for(host.request("tools/call", {"name": tool, "arguments": arguments}))
        is_error = "error" in reply or reply["result"].get("isError", False)
        done.put(f"{title}: {reply}" if is_error else "")


def _kill_between(done: "Queue[str]", count: int, folder: Path, chance: Random) -> tuple[list[str], int]:
    """Return the errors of the calls, and the number of kills."""
    errors: list[str] = []
    kills, left = 0, chance.randrange(2 * MEAN_CALLS)
    for _ in range(count):
        if error := done.get(timeout=120):
            errors.append(error)
        left -= 1
        # The answers of the calls that ran at the last kill may come before the next worker listens.
        if left <= 0 and find_worker(folder) is not None:
            signal_worker(folder, signal.SIGKILL)
            kills, left = kills + 1, chance.randint(1, 2 * MEAN_CALLS)
    return errors, kills


def _run_hosts(place: Path, env: dict[str, str], each: int, chance: Random) -> tuple[list[str], int]:
    """Make calls in hand-written sessions. Return the errors, and the number of kills."""
    done = Queue[str]()
    with ExitStack() as stack:
        hosts = [stack.enter_context(Host(place, env=env)) for _ in range(HOSTS)]
        threads = [Thread(target=_write, args=(host, f"s{n}", each, done), daemon=True) for n, host in enumerate(hosts)]
        for thread in threads:
            thread.start()
        return _kill_between(done, each * HOSTS, place / "run", chance)


async def _run_sdk(daemon: Spawned, env: dict[str, str], each: int) -> tuple[list[str], int]:
    """Make calls in sessions of the SDK's client. Return the errors, and the number of kills."""
    mcp: Any = import_module("mcp")
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments(daemon), env=env)
    errors: list[str] = []
    replies, kills, killed_at = 0, 0, time.monotonic()
    killing = anyio.Lock()

    async def kill_when_due() -> None:
        nonlocal replies, kills, killed_at
        replies += 1
        if replies < SDK_REPLIES or time.monotonic() < killed_at + SDK_S or killing.locked():
            return
        async with killing:
            # The next worker may not listen yet.
            if await to_thread.run_sync(find_worker, Path(daemon.socket).parent) is not None:
                await to_thread.run_sync(signal_worker, Path(daemon.socket).parent, signal.SIGKILL)
                replies, kills, killed_at = 0, kills + 1, time.monotonic()

    async def write(name: str, mode: str) -> None:
        async with mcp.Client(server, mode=mode) as session:
            for number in range(each):
                title = f"{name}/{number}"
                try:
                    reply = await session.call_tool(*_choose_call(number, title))
                except mcp.MCPError as error:
                    errors.append(f"{title}: {error}")
                else:
                    errors.extend([f"{title}: {reply.content}"] if reply.is_error else [])
                await kill_when_due()

    with anyio.fail_after(SDK_TIMEOUT_S):
        async with anyio.create_task_group() as group:
            for number in range(SDK_SESSIONS):
                group.start_soon(write, f"s{number}", ("legacy", "auto")[number % 2])
    return errors, kills


def run(options: Options) -> Figures:
    if find_spec("mcp") is None:
        raise Unavailable(f"the MCP SDK, which {sys.executable} has not")
    figures: Figures = {}
    for part, sessions in {"hosts": HOSTS, "sdk": SDK_SESSIONS}.items():
        if options.only in ("", part):
            figures |= {f"{part}: {name}": value for name, value in _run_part(part, sessions, options).items()}
    return figures


def _run_part(part: str, sessions: int, options: Options) -> Figures:
    env, each = environment(), max(1, options.size // sessions)
    with workplace() as place, spawned_daemon(place) as daemon:
        if options.bug == "keys":
            (place / "plant").mkdir()
            (place / "plant" / "sitecustomize.py").write_text(_FORGETFUL)
            env["PYTHONPATH"] = f"{place / 'plant'}:{env['PYTHONPATH']}"
        with Host(place, env=env) as host:
            host.call("plan", tasks=[{"title": "first"}])
        if part == "hosts":
            errors, kills = _run_hosts(place, env, each, options.random())
        else:
            errors, kills = anyio.run(_run_sdk, daemon, env, each)
        made = Counter(_read_titles(daemon))
        stop_workers(place / "run")
    expected = {f"s{n}/{number}" for n in range(sessions) for number in range(each)}
    need(not errors, f"{len(errors)} calls failed, such as {errors[:1]}")
    need(max(made.values()) == 1, f"made twice: {[title for title, times in made.items() if times > 1][:5]}")
    need(made.keys() >= expected, f"lost: {sorted(expected - made.keys())[:5]}")
    return {"calls": each * sessions, "kills": kills}


def _read_titles(daemon: Spawned) -> Iterator[str]:
    """Yield the titles that events gave to tasks."""
    raw, position = Raw(daemon.socket), 0
    raw.call("daemon.hello", client={"name": "judge"})
    while records := (page := raw.call("event.read", conversation="work", after=position)["result"])["events"]:
        for event in (record["event"] for record in records):
            if event["type"] == "TaskAdded":
                yield event["task"]["title"]
            elif "title" in event:
                yield event["title"]
        position = page["next"]
