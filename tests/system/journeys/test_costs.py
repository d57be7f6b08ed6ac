"""Costs of operations, counted instead of timed: commits, hops to the database's thread, encodings, calls, memory.

Calls are counted on the event loop's thread: calls of our own functions, and the C functions that these call. The
counts are the same on every machine, so every run reveals a loop over a whole list, an encoding per subscriber, or a
second hop.
"""

import os
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import anyio.abc
import msgspec
import pytest

from punchlist_testing.daemon import Raw, Running, running_daemon
from punchlist_testing.optional import needs
from punchlist_testing.unmeasured import unmeasured
from punchlistd.store.sqlite import DatabaseThread

OURS = ("/punchlistd/", "/punchlist_schemas/")
UNCOUNTED = "/punchlistd/process/status_file.py"
"""Module that writes the status file 0.1 s after a change. On a slow machine this falls into the next count."""

QUIET = {"index_delay_s": 3600.0, "index_events": 1 << 30, "watch_s": 3600.0}
"""Settings for a daemon that does only what is requested."""

PATIENCE_S = 30


class Calls:
    """Counts how often each of our functions was called, and each C function that one of ours called."""

    def __init__(self) -> None:
        self.python: Counter[str] = Counter()
        self.c: Counter[str] = Counter()

    def note(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if not any(folder in code.co_filename for folder in OURS) or code.co_filename.endswith(UNCOUNTED):
            return
        if event == "call":
            self.python[code.co_qualname] += 1
        elif event == "c_call":
            self.c[arg.__name__] += 1

    @property
    def total(self) -> int:
        return self.python.total() + self.c.total()

    @property
    def encodings(self) -> int:
        return self.c["encode"] + self.c["json_encode"]

    def beyond(self, other: "Calls") -> str:
        """Describe the difference for the message of a failed assertion."""
        more = (self.python + self.c) - (other.python + other.c)
        return f"{self.total} calls, not {other.total}: {more.most_common(8)}"


@contextmanager
def counted() -> Generator[Calls]:
    calls = Calls()
    sys.setprofile(calls.note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@contextmanager
def hops(monkeypatch: pytest.MonkeyPatch) -> Generator[list[str]]:
    """Record the names of the operations that are passed to the database's thread."""
    seen: list[str] = []
    run = DatabaseThread.run

    async def noted(thread: DatabaseThread, operation: Any, *args: Any) -> Any:
        seen.append(" ".join(each.__name__ for each in (operation, *args) if callable(each)))
        return await run(thread, operation, *args)

    with monkeypatch.context() as patch:
        patch.setattr(DatabaseThread, "run", noted)
        yield seen


class Line:
    """A client in this process that sends lines and awaits their replies."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._rest = b""

    async def send(self, *requests: dict[str, Any]) -> None:
        await self._stream.send(b"".join(msgspec.json.encode({"jsonrpc": "2.0", **each}) + b"\n" for each in requests))

    async def receive(self, count: int = 1) -> list[Any]:
        with anyio.fail_after(PATIENCE_S):
            while self._rest.count(b"\n") < count:
                self._rest += await self._stream.receive(1 << 16)
        *lines, self._rest = self._rest.split(b"\n", count)
        return [msgspec.json.decode(line) for line in lines]

    async def close(self) -> None:
        await self._stream.aclose()

    async def call(self, method: str, **params: Any) -> Any:
        await self.send({"id": 1, "method": method, "params": params})
        (answer,) = await self.receive()
        assert "result" in answer, answer
        return answer["result"]


@asynccontextmanager
async def connected(daemon: Running, number: int = 1) -> AsyncGenerator[list[Line]]:
    lines: list[Line] = []
    try:
        for _ in range(number):
            lines.append(Line(await anyio.connect_unix(daemon.socket)))
        yield lines
    finally:
        for line in lines:
            await line.close()


async def finish_start(client: Line) -> None:
    """Wait until the daemon has finished the work after its start, so that later counts don't include it.

    A reply with all lists waits for the indexing that it requests. The indexing requested at the start may still
    follow. It has finished when the writer gets to the second of two changes.
    """
    await client.call("conversation.list")
    for _ in range(2):
        await client.call("conversation.configure", conversation="settled", title="settled")


def adds(conversation: str, count: int) -> Iterable[dict[str, Any]]:
    for number in range(count):
        params = {"conversation": conversation, "title": f"task {number}"}
        yield {"id": number, "method": "task.add", "params": params}


def titles(count: int) -> list[dict[str, str]]:
    return [{"title": f"task {number}"} for number in range(count)]


async def test_commit_takes_one_hop_and_bursts_share_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_daemon(tmp_path, **QUIET) as daemon, connected(daemon) as (client,):
        await client.call("task.add", conversation="c", title="the first")
        await finish_start(client)
        before = (await client.call("daemon.status"))["commits"]["count"]
        with hops(monkeypatch) as seen:
            await client.send(*adds("c", 64))
            await client.receive(64)
        burst = (await client.call("daemon.status"))["commits"]["count"] - before
        assert burst <= 2
        assert len(seen) <= burst + 1  # one more hop if the WAL is checkpointed into the database
        with hops(monkeypatch) as seen:
            for _ in range(10):
                await client.call("task.add", conversation="c", title="alone")
        assert len(seen) <= 10 + 1


async def test_read_takes_no_hop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_daemon(tmp_path, **QUIET) as daemon, connected(daemon) as (client,):
        await client.call("task.add_many", conversation="c", tasks=titles(50))
        await finish_start(client)
        with hops(monkeypatch) as seen:
            await client.call("task.list", conversation="c")
            await client.call("task.get", conversation="c", task="7")
        assert seen == []


@pytest.mark.parametrize(
    ("method", "params", "alone", "of_many"),
    [
        ("task.add", {"title": "one more"}, 187, 106),
        ("task.set_status", {"task": "7", "status": "in_progress"}, 103, 71),
        ("task.get", {"task": "7"}, 40, 37),
        ("task.list", {}, 48, 48),
    ],
)
async def test_function_calls_of_a_request_do_not_grow(
    tmp_path: Path, method: str, params: dict[str, Any], alone: int, of_many: int
) -> None:
    burst = [{"id": number, "method": method, "params": {"conversation": "c", **params}} for number in range(64)]
    async with running_daemon(tmp_path, **QUIET) as daemon, connected(daemon) as (client,):
        await client.call("task.add_many", conversation="c", tasks=titles(50))
        await finish_start(client)
        await client.call(method, conversation="c", **params)
        with counted() as calls:
            await client.call(method, conversation="c", **params)
        assert calls.total <= alone, calls.beyond(Calls())
        await client.send(*burst)
        await client.receive(64)
        with counted() as calls:
            await client.send(*burst)
            await client.receive(64)
        assert calls.total <= 64 * of_many, calls.beyond(Calls())


async def test_change_cost_is_independent_of_list_length(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, **QUIET) as daemon, connected(daemon) as (client,):
        costs: dict[int, list[Calls]] = {}
        peaks: dict[int, int] = {}
        for length in (10, 10_000):
            place = {"conversation": f"of-{length}"}
            await client.call("task.add_many", **place, tasks=titles(length))
            # The first response with a next task builds the queue of ready tasks.
            await client.call("task.set_status", **place, task="1", status="completed")
            await client.call("task.list", **place)
            changes: list[tuple[str, dict[str, Any]]] = [
                ("task.add", {"title": "one more"}),
                ("task.set_status", {"task": "7", "status": "in_progress"}),
                ("task.set_status", {"task": "7", "status": "completed"}),
                ("task.edit", {"task": "5", "title": "another title"}),
                ("task.get", {"task": "5"}),
            ]
            for method, params in changes:
                with counted() as calls:
                    await client.call(method, **place, **params)
                costs.setdefault(length, []).append(calls)
            tracemalloc.start()
            await client.call("task.add", **place, title="the last")
            peaks[length] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        for short, long in zip(costs[10], costs[10_000], strict=True):
            assert long.total <= short.total + 10, long.beyond(short)
        # Encoding the whole list is one call, but it takes far more memory than the 256 KiB for reading a socket.
        assert peaks[10_000] <= peaks[10] + 20_000


async def test_page_cost_is_independent_of_list_length(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, **QUIET) as daemon, connected(daemon) as (client,):
        costs: dict[int, tuple[Calls, int]] = {}
        for length in (100, 10_000):
            place = {"conversation": f"of-{length}"}
            await client.call("task.add_many", **place, tasks=titles(length))
            tracemalloc.start()
            with counted() as calls:
                page = await client.call("task.list", **place, limit=5, offset=50)
            costs[length] = calls, tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert [task["id"] for task in page["tasks"]] == ["51", "52", "53", "54", "55"] and page["total"] == length
        assert costs[10_000][0].total <= costs[100][0].total + 10, costs[10_000][0].beyond(costs[100][0])
        assert costs[10_000][1] <= costs[100][1] + 20_000  # listing all tasks would take 80,000


async def test_row_push_cost_is_independent_of_list_length(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, **QUIET) as daemon, connected(daemon, 2) as (client, reader):
        costs: dict[int, tuple[Calls, int]] = {}
        for length in (100, 10_000):
            place = {"conversation": f"of-{length}"}
            await client.call("task.add_many", **place, tasks=titles(length))
            subscription = (await reader.call("event.subscribe", **place, view="rows"))["subscription"]
            while (await reader.receive())[0]["params"].get("more"):
                pass
            await client.call("task.set_status", **place, task="7", status="in_progress")
            await reader.receive()
            with counted() as calls:
                await client.call("task.edit", **place, task="5", title="another title")
                (push,) = await reader.receive()
            assert [row["id"] for row in push["params"]["rows"]] == ["5"]
            costs[length] = calls, len(msgspec.json.encode(push))
            await reader.call("event.unsubscribe", subscription=subscription)
        assert costs[10_000][0].total <= costs[100][0].total + 10, costs[10_000][0].beyond(costs[100][0])
        assert costs[10_000][1] <= 1.2 * costs[100][1]


async def test_list_is_encoded_once_for_all_readers(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, **QUIET) as daemon, connected(daemon) as (client,):
        await client.call("task.add_many", conversation="c", tasks=titles(1_000))
        with counted() as first:
            await client.call("task.list", conversation="c")
        with counted() as again:
            await client.call("task.list", conversation="c")
        # Includes the accounting of bytes that the peer doesn't read immediately.
        assert again.total <= 78, again.beyond(Calls())
        assert first.encodings > 0 == again.encodings


async def test_event_is_encoded_once_for_all_watchers(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, **QUIET) as daemon:
        costs: dict[int, Calls] = {}
        for watchers in (1, 41):
            conversation = f"watched-by-{watchers}"
            async with connected(daemon) as (client,), connected(daemon, watchers) as watching:
                await client.call("task.add", conversation=conversation, title="the first")
                for each in watching:
                    await each.call("event.subscribe", conversation=conversation)
                with counted() as calls:
                    await client.call("task.add", conversation=conversation, title="seen by all")
                    for each in watching:
                        (told,) = await each.receive()
                        assert told["method"] == "events"
                costs[watchers] = calls
        assert costs[41].encodings <= costs[1].encodings + 2, costs[41].beyond(costs[1])
        each = (costs[41].total - costs[1].total) / 40
        assert each <= 1, costs[41].beyond(costs[1])


QUIET_DAEMON = """
import sys
from pathlib import Path
import anyio
from punchlist_testing.daemon import running_daemon
from punchlistd.store.sqlite import SqliteLog

SqliteLog.open.__kwdefaults__["slow_s"] = {slow_s}

async def main():
    async with running_daemon(Path(sys.argv[1]), **{settings}) as daemon:
        print(daemon.socket, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
"""A daemon whose work for a call is the same on slow and fast machines.

It doesn't write the index while it serves calls, which would add a flush every 0.25 s, and the choice of the
committing thread doesn't depend on the speed of the disk."""


@contextmanager
def quiet_process(directory: Path, slow_s: float) -> Generator[tuple[int, str]]:
    """Run a daemon with the settings in `QUIET` as a process; return its process id and socket."""
    command = [sys.executable, "-c", QUIET_DAEMON.format(settings=QUIET, slow_s=slow_s), str(directory)]
    env = {**unmeasured(), "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.kill()


@needs("strace")
@pytest.mark.parametrize(("slow_s", "wakeups"), [(60.0, 3), (0.0, None)], ids=["in the loop", "in the thread"])
def test_durable_reply_takes_one_flush(tmp_path: Path, slow_s: float, wakeups: float | None) -> None:
    """The number of times the loop wakes for a commit depends on which of the two threads is faster."""
    changes = 100
    with quiet_process(tmp_path, slow_s) as (pid, path):
        client = Raw(path)
        client.result("task.add", conversation="c", title="the first")
        report = tmp_path / "report"
        tracer = subprocess.Popen(
            ["strace", "-c", "-f", "-p", str(pid), "-o", str(report)],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert tracer.stderr is not None
        if "attached" not in (said := tracer.stderr.readline()):
            tracer.wait(PATIENCE_S)
            pytest.skip(f"strace may not attach here: {said}")
        for number in range(changes):
            client.result("task.add", conversation="c", title=f"task {number}")
        client.close()
        tracer.terminate()
        tracer.wait(PATIENCE_S)
        tracer.stderr.close()
    counts = system_calls(report.read_text())
    assert changes <= counts["fdatasync"] <= changes + 8, counts
    each = {
        name: counts[name] / changes for name in ("fdatasync", "pwrite64", "epoll_wait", "epoll_pwait", "newfstatat")
    }
    assert each["pwrite64"] <= 4, each
    assert wakeups is None or each["epoll_wait"] + each["epoll_pwait"] <= wakeups, each
    assert each["newfstatat"] <= 4, each


def system_calls(report: str) -> Counter[str]:
    """Return the number of calls by name, from the output of `strace -c`."""
    rows = (line.split() for line in report.splitlines())
    return Counter({row[-1]: int(row[3]) for row in rows if len(row) >= 5 and row[3].isdigit() and row[-1] != "total"})
