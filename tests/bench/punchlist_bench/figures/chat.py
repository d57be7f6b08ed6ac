"""Cost of `punch chat`: a turn with rules, a whole process, and the latency of a model's first word in the panel.

The process is compared with a bare interpreter, in interleaved runs.
"""

import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from punchlist import AsyncClient
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_apps.common.http.keys import Scope
from punchlist_bench.process import cpu_seconds
from punchlist_bench.table import grid
from punchlist_testing.scripted_model import honest, serving
from punchlist_testing.stage import Stage, stage
from punchlist_testing.terminal import command, environment

TURNS, PROCESSES, WORDS = 300, 21, 40


class Figure(NamedTuple):
    """A measured value, its maximum, its format, and additional figures as text."""

    what: str
    value: float
    target: float
    form: str
    detail: str = ""


IN_TURN = """
import json, os, sys, time
programs, rounds = json.loads(sys.argv[1]), int(sys.argv[2])
sink = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
for number in range(rounds + 1):
    for words in programs:
        began = time.perf_counter()
        _, status, usage = os.wait4(os.posix_spawn(words[0], words, os.environ, file_actions=sink), 0)
        took = time.perf_counter() - began
        assert status == 0, words
        if number:
            print(json.dumps([took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""
"""Program that runs commands in turn, after a warm-up round, and prints wall seconds, processor seconds and peak MiB.

It is a small process because the memory of a parent counts towards the peak memory of its children.
"""


def measure_processes(server: Stage, directory: Path) -> list[Figure]:
    """Compare `punch chat "add milk"` with a bare interpreter, with bytecode files as in an installation."""
    env = environment(PYTHONPYCACHEPREFIX=str(directory / "bytecode"), PUNCHLIST_SOCKET=server.daemon.socket)
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    programs = [[*command("chat", "--rules", "--no-autostart", "-c", "processes"), "add milk"]]
    programs += [[sys.executable, "-c", "pass"]]
    words = [sys.executable, "-c", IN_TURN, json.dumps(programs), str(PROCESSES)]
    output = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    measured: list[list[float]] = [json.loads(line) for line in output]
    wall, work, memory = (statistics.median(column) for column in zip(*measured[::2], strict=True))
    bare_wall, _, bare_memory = (statistics.median(column) for column in zip(*measured[1::2], strict=True))
    return [
        Figure(
            '`punch chat "add milk"` as a process', wall, 0.25, "{:.2f} s",
            f"{wall / bare_wall:.0f} times a bare interpreter ({bare_wall * 1000:.0f} ms); {work:.2f} s of processor",
        ),
        Figure(
            "its peak memory", memory, 30, "{:.0f} MiB",
            f"{memory / bare_memory:.1f} times a bare interpreter ({bare_memory:.0f} MiB)",
        ),
    ]  # fmt: skip


async def measure_turns(server: Stage) -> list[Figure]:
    """Measure turns with rules on one connection, from the message to its answer."""
    assert server.daemon.process is not None
    pid, took = server.daemon.process.pid, list[float]()
    async with AsyncClient(socket=server.daemon.socket, autostart=False, name="bench") as client:
        thread, worker = await Thread.open(client, "turns"), Worker()
        before = time.process_time() + cpu_seconds(pid)
        for number in range(TURNS):
            began = time.perf_counter()
            await worker.answer(thread, await thread.send(f"add milk {number}"))
            took.append(time.perf_counter() - began)
        work = (time.process_time() + cpu_seconds(pid) - before) / TURNS
    best = min(took)
    median = statistics.median(took)
    return [
        Figure(
            "a turn by rules (median)",
            median * 1000,
            12,
            "{:.1f} ms",
            f"best {best * 1000:.1f} ms; {work * 1000:.1f} ms of processor time, including the daemon's",
        )
    ]


def measure_first_words(server: Stage, began_at: Callable[[], float]) -> list[Figure]:
    """Measure the time from the model's first word to its arrival at a client of the panel's stream."""
    session = server.keys.redeem(server.keys.issue_ticket(Scope()))
    assert session is not None
    headers = {"Authorization": f"Bearer {session.token}", "Content-Type": "application/json"}
    took: list[float] = []
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:

        def ask(verb: str, path: str, body: object = None) -> http.client.HTTPResponse:
            data = None if body is None else msgspec.json.encode(body)
            connection.request(verb, f"/api/v1/chats{path}", data, headers)
            return connection.getresponse()

        thread = msgspec.json.decode(ask("POST", "", {"list": "words"}).read())["thread"]
        for _ in range(WORDS):
            turn = msgspec.json.decode(ask("POST", f"/{thread}", {"text": "hello"}).read())["turn"]
            answer = ask("GET", f"/{thread}/turns/{turn}")
            while b"event: delta" not in answer.readline():
                pass
            took.append(time.monotonic() - began_at())
            answer.read()
    middle = statistics.median(took)
    return [
        Figure("delay of a model's first word on the panel's stream (median)", middle * 1000, 20,
               "{:.1f} ms", f"worst of {WORDS}: {max(took) * 1000:.0f} ms")
    ]  # fmt: skip


def measure(*, quick: bool) -> str:
    with serving(honest) as script, tempfile.TemporaryDirectory() as name:
        os.environ |= {"PUNCHLIST_CHAT_MODEL": "scripted", "PUNCHLIST_CHAT_BASE_URL": script.url}
        with stage(Path(name)) as server:
            figures = [
                *asyncio.run(measure_turns(server)),
                *measure_processes(server, Path(name)),
                *measure_first_words(server, lambda: script.began_at),
            ]
    rows = [
        (figure.what, f"≤ {figure.form.format(figure.target)}", figure.form.format(figure.value), figure.detail)
        for figure in figures
    ]
    return grid(("", "target", "measured", ""), rows)
