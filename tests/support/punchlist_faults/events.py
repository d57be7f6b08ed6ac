"""Kills worker, daemon and hosts under 60 streams of MCP Events until SIZE resumes: no event is lost or doubled.

A host that was killed resumes its streams at the last cursor that it read; after the other kills the server does.
Changes are made right before and after each kill, and the next one waits until all streams have delivered them.
BUG=cursor lets the next worker continue at an older cursor, which the run must detect.
"""

import signal
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from random import Random
from threading import Condition, Thread
from typing import Any

import punchlist
from punchlist_faults.options import Figures, Options, Unavailable, need, workplace
from punchlist_faults.process import environment
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.workers import Host, find_worker, signal_worker

HOSTS = 3
STREAMS = 20
"""Streams of each host."""

RESUMES = {"worker": HOSTS * STREAMS, "host": STREAMS, "daemon": 0}
"""Process -> number of streams that are opened again with a cursor after it was killed."""

PATIENCE_S = 120.0

_FORGETFUL = """
import sys
if "punchlist_apps.worker" in sys.orig_argv:
    from punchlist_apps.worker import session
    advance, turns = session.Session._advance_stream, []

    def advance_sometimes(self, notification):
        turns.append(1)
        if not notification.method.endswith("/event") or len(turns) % 5:
            advance(self, notification)

    session.Session._advance_stream = advance_sometimes
"""
"""`sitecustomize` of workers that don't always record how far a stream is."""


class Reader:
    """A host with its streams, which a thread of its own reads.

    Attributes:
        seen: Ids of the tasks that each stream delivered.
        errors: Messages that no stream should get.
    """

    def __init__(self, place: Path, env: dict[str, str], moved: Condition) -> None:
        self.seen: list[list[int]] = [[] for _ in range(STREAMS)]
        self.errors: list[Any] = []
        self._cursors: list[str | None] = [None] * STREAMS
        self._place, self._env, self._moved = place, env, moved
        self.start()

    def start(self) -> None:
        self.host = Host(self._place, env=self._env).__enter__()
        numbers = dict[int, int]()
        for number, cursor in enumerate(self._cursors):
            numbers[self.host.request("events/stream", {"name": "task.added", "cursor": cursor})] = number
        self._thread = Thread(target=self._read, args=(self.host, numbers), daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return None not in self._cursors

    def _read(self, host: Host, numbers: dict[int, int]) -> None:
        with suppress(TimeoutError):
            while (message := next(host.messages(), None)) is not None:
                with self._moved:
                    self._take(message, numbers)
                    self._moved.notify_all()

    def _take(self, message: Any, numbers: dict[int, int]) -> None:
        kind, params = str(message.get("method")).rpartition("/")[2], message.get("params", {})
        if kind not in ("active", "event", "heartbeat") or params.get("truncated"):
            self.errors.append(message)
            return
        number = numbers[params["_meta"]["io.modelcontextprotocol/subscriptionId"]]
        self._cursors[number] = params["cursor"]
        if kind == "event":
            self.seen[number].append(int(params["data"]["task"]))

    def kill(self) -> None:
        self.host.process.kill()
        self._thread.join(PATIENCE_S)
        self.host.process.communicate()


def run(options: Options) -> Figures:
    if find_spec("mcp") is None:
        raise Unavailable(f"the MCP SDK, which {sys.executable} has not")
    env, chance, moved = environment(), options.random(), Condition()
    with workplace() as place, spawned_daemon(place) as daemon, ExitStack() as stack:
        if options.bug == "cursor":
            (place / "plant").mkdir()
            (place / "plant" / "sitecustomize.py").write_text(_FORGETFUL)
            env["PYTHONPATH"] = f"{place / 'plant'}:{env['PYTHONPATH']}"
        client = stack.enter_context(punchlist.connect(socket=daemon.socket, autostart=False, timeout_s=PATIENCE_S))
        work = client.conversation("work")
        readers = [Reader(place, env, moved) for _ in range(HOSTS)]
        for reader in readers:
            stack.callback(reader.kill)
        with moved:
            need(moved.wait_for(lambda: all(one.is_active for one in readers), PATIENCE_S), "the streams begin")
        kills, resumes, tasks = Counter[str](), 0, list[int]()
        while resumes < options.size:
            tasks += [int(work.add(f"task {len(tasks)}").id) for _ in range(chance.randint(1, 4))]
            kind = chance.choices(["worker", "daemon", "host"], [6, 1, 3])[0]
            if _kill(kind, daemon, readers, chance):
                resumes += RESUMES[kind]
                kills[kind] += 1
            tasks += [int(work.add(f"task {len(tasks)}").id) for _ in range(chance.randint(1, 4))]
            with moved:
                has_come = moved.wait_for(partial(_have_all, readers, tasks[-1]), PATIENCE_S)
            _judge(readers, tasks)
            need(has_come, f"lost: a stream didn't deliver task {tasks[-1]}")
    return {"resumes": resumes, "events": len(tasks), "frames": len(tasks) * HOSTS * STREAMS, **kills}


def _kill(kind: str, daemon: Spawned, readers: list[Reader], chance: Random) -> bool:
    """Kill a process, and return whether it was running."""
    if kind == "host":
        reader = chance.choice(readers)
        reader.kill()
        reader.start()
    elif kind == "daemon":
        daemon.restart()
    elif find_worker(daemon.directory / "run") is None:
        return False
    else:
        signal_worker(daemon.directory / "run", signal.SIGKILL)
    return True


def _have_all(readers: list[Reader], last: int) -> bool:
    return any(reader.errors for reader in readers) or all(
        seen and seen[-1] >= last for reader in readers for seen in reader.seen
    )


def _judge(readers: list[Reader], tasks: list[int]) -> None:
    for reader in readers:
        need(not reader.errors, f"unexpected: {reader.errors[:1]}")
        for seen in map(list, reader.seen):
            doubled = [task for task, times in Counter(seen).items() if times > 1]
            need(not doubled, f"doubled: {doubled[:5]}")
            need(seen == tasks[: len(seen)], f"lost or in the wrong order: {sorted({*tasks} - {*seen})[:5]}")
