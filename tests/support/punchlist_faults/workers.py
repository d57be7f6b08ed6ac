"""Kills the worker of 5 sessions at random moments while they make SIZE calls: none fails, is lost or is made twice.

Each session has its own thread. The worker is killed whenever a random number of calls has been answered, while others
are running. BUG=keys lets each worker use new keys for repeated calls,
which the run must detect.
"""

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from queue import Queue
from random import Random
from threading import Thread

from punchlist_faults.options import Figures, Options, Unavailable, need, workplace
from punchlist_faults.process import environment
from punchlist_testing.daemon import Raw, Spawned, spawned_daemon
from punchlist_testing.workers import Host, find_worker, signal_worker

SESSIONS = 5
MEAN_CALLS = 25
"""Mean number of answered calls between two kills."""

_FORGETFUL = """
import sys
if "punchlist_apps.worker" in sys.orig_argv:
    from contextlib import nullcontext
    from punchlist_apps.worker import session
    session.derived_keys = lambda name: nullcontext()
"""
"""`sitecustomize` of workers whose repeated calls get new keys."""


def _write(host: Host, name: str, count: int, done: "Queue[str]") -> None:
    """Rename the first task, which all sessions do, or add a task, in turn."""
    for number in range(count):
        title = f"{name}/{number}"
        tool, arguments = (
            ("plan", {"tasks": [{"title": title}]}) if number % 2 else ("update", {"id": "1", "title": title})
        )
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


def run(options: Options) -> Figures:
    if find_spec("mcp") is None:
        raise Unavailable(f"the MCP SDK, which {sys.executable} has not")
    env, done, each = environment(), Queue[str](), max(1, options.size // SESSIONS)
    with workplace() as place, spawned_daemon(place) as daemon, ExitStack() as stack:
        if options.bug == "keys":
            (place / "plant").mkdir()
            (place / "plant" / "sitecustomize.py").write_text(_FORGETFUL)
            env["PYTHONPATH"] = f"{place / 'plant'}:{env['PYTHONPATH']}"
        hosts = [stack.enter_context(Host(place, env=env)) for _ in range(SESSIONS)]
        threads = [Thread(target=_write, args=(host, f"s{n}", each, done), daemon=True) for n, host in enumerate(hosts)]
        hosts[0].call("plan", tasks=[{"title": "first"}])
        for thread in threads:
            thread.start()
        errors, kills = _kill_between(done, each * SESSIONS, place / "run", options.random())
        made = Counter(_read_titles(daemon))
    expected = {f"s{n}/{number}" for n in range(SESSIONS) for number in range(each)}
    need(not errors, f"{len(errors)} calls failed, such as {errors[:1]}")
    need(max(made.values()) == 1, f"made twice: {[title for title, times in made.items() if times > 1][:5]}")
    need(made.keys() >= expected, f"lost: {sorted(expected - made.keys())[:5]}")
    return {"calls": each * SESSIONS, "kills": kills}


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
