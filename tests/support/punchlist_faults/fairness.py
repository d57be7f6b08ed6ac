"""One client makes expensive requests. Measures how long other clients wait, and how much memory the daemon needs.

SIZE is the number of events of the long list; with 38,000 the long responses are 6 MB (lists) and 18 MB (messages).
Each attack is made once without and once with a memory limit, which the daemon must survive.

A bystander's wait is measured in processor time that the daemon used between the call and the response, so that other
programs on the machine don't count. The wall time is printed as well.
"""

import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from punchlist_faults.crowd import percentile, request
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import PATIENCE_S, Daemon, environment, running_daemon
from punchlist_schemas.strict_json import MAX_VALUES
from punchlist_testing.daemon import Raw

FULL = 38_000
MAX_WAIT_MS = 50.0
"""Upper limit for the p99 of the daemon's processor time between a bystander's request and its response."""

MAX_BYTES = 32 << 20
"""Upper limit for the peak memory that one connection adds to the daemon."""

MAX_SUBSCRIBER_BYTES = 32 << 10
SUBSCRIBERS = 60
LIMIT_BYTES = 300 << 20
MANY = 60
"""Number of connections under the memory limit; each could have 6 MB of unread responses."""
CROWD = 120
MAX_CROWD_BYTES = 160 << 20
"""Upper limit for the memory that `CROWD` connections add, each with a frame full of values.

It allows for the accounted memory, for memory not yet returned to the system, and for the values of one frame. The
values of all frames would take 2 GiB.
"""

TASKS = 400
"""Number of tasks in the long lists, whose length is in their descriptions or their history."""

PARTS = 10_000
"""Number of changes in one call: the maximum. Runs with a shorter list make fewer."""

Attack = Callable[[Raw], None]

LONG, LIST, TALK, MINE, WIDE = "long", "list", "talk", "mine", "wide"


def _ask(link: Raw, *calls: tuple[str, dict[str, Any]]) -> None:
    link.sock.sendall(b"".join(request(method, id, **params) for id, (method, params) in enumerate(calls)))


def _answers(link: Raw, count: int) -> list[Any]:
    answers = [link.receive() for _ in range(count)]
    ended = answers.count(None)
    need(not ended, f"the connection was closed with {ended} of {count} calls unanswered")
    return answers


def _patient(daemon: Daemon) -> Raw:
    link = daemon.connect()
    link.sock.settimeout(PATIENCE_S * 4)
    return link


def _calls(calls: Sequence[tuple[str, dict[str, Any]]], *, unread: bool = False, member: str = "") -> Attack:
    """Return an attack of calls that must all succeed. The result's `member`, if given, must not be empty."""

    def attack(link: Raw) -> None:
        _ask(link, *calls)
        if unread:
            _unread(link)
        for answer in _answers(link, len(calls)):
            need("result" in answer and (not member or answer["result"][member]), f"{calls[-1]} got {answer}")

    return attack


def _pasts(link: Raw) -> None:
    version = link.result("conversation.get", conversation=LONG)["conversation"]["version"]
    versions = [version * (number * 7 % 20 + 1) // 21 for number in range(20)]
    _ask(link, *[("task.list", {"conversation": LONG, "at_version": at_version}) for at_version in versions])
    need([answer["result"]["version"] for answer in _answers(link, 20)] == versions, "not the versions asked for")


def _batch(link: Raw) -> None:
    calls = [{"jsonrpc": "2.0", "id": id, "method": "task.list", "params": {"conversation": LIST}} for id in range(100)]
    link.sock.sendall(msgspec.json.encode(calls) + b"\n")
    _unread(link)
    answers = link.receive()
    need(answers is not None, "the connection was closed before a batch was answered")
    need(len(answers) == 100 and "result" in answers[0], "a batch was not answered")
    kinds = {answer["error"]["data"]["kind"] for answer in answers if "error" in answer}
    need(kinds <= {"limit_exceeded"}, f"a batch was refused as {kinds}")


def _long_edits(link: Raw) -> None:
    _edit(link, [msgspec.json.encode(f"{number:09}" * 110_000) for number in range(100)])


def _dense(link: Raw) -> None:
    """Send frames of maximum decoding cost; most are rejected before they are decoded."""
    pieces = (b"{}", b'""', b"1", b'{"a":1}', b"1234567890123456", b"[[]]", b'"\\u003a"')
    most = [min(count, 1_000_000 // (len(piece) + 1)) for count in (1_000_000, MAX_VALUES // 4) for piece in pieces]
    _edit(link, [b"[%b]" % b",".join([piece] * count) for piece, count in zip(pieces * 2, most, strict=True)] * 3)


def _crowd(daemon: Daemon, many: int) -> int:
    """Return the memory, in bytes, that connections add when each sends a frame full of values."""
    dense = b"[%b]" % b",".join([b"[%b]" % b",".join([b'{"a":1}'] * 90)] * 1_000)
    params = b'{"conversation":"wide","task":"none","metadata":{"k":%b}}' % dense
    frame = b'{"jsonrpc":"2.0","id":1,"method":"task.edit","params":%b}\n' % params

    def ask(link: Raw) -> str:
        try:
            link.sock.sendall(frame)
            answer = link.receive()
        except OSError:  # the frame was rejected before all of it was sent
            return "limit_exceeded"
        need(answer is not None, "a connection was closed without a word")
        return answer["error"]["data"]["kind"]

    links = [_patient(daemon) for _ in range(many)]
    daemon.forget_peak()
    before = daemon.memory()
    with ThreadPoolExecutor(many) as pool:
        kinds = set(pool.map(ask, links))
    need("not_found" in kinds and kinds <= {"not_found", "limit_exceeded"}, f"frames were answered {kinds}")
    grown = daemon.memory("VmHWM") - before
    for link in links:
        link.close()
    return max(0, grown)


def _many_parts(count: int) -> Attack:
    """Return an attack of calls with `count` parts. Each call leaves a list of `count` tasks."""

    def numbered(**members: str) -> list[dict[str, str]]:
        return [{name: text.format(number) for name, text in members.items()} for number in range(1, count + 1)]

    def attack(link: Raw) -> None:
        for method, params in (
            ("task.add_many", {"tasks": numbered(title="a{}", ref="{}", owner="me")}),
            ("list.apply", {"changes": numbered(method="task.edit", task="{}", title="b{}")}),
            ("list.replace", {"tasks": numbered(title="c{}"), "keep_unfinished": False}),
            ("list.replace", {"tasks": numbered(title="c{}")[::-1]}),
            ("task.delete", {"tasks": [task["title"] for task in numbered(title="{}")[count // 2 :]]}),
        ):
            link.call(method, conversation="parts", **params)
        need("result" in link.call("list.clear", conversation="parts"), "a list was not cleared")

    return attack


def _edit(link: Raw, values: Sequence[bytes]) -> None:
    params = b'{"conversation":"wide","task":"1","metadata":{"k":%b}}'
    call = b'{"jsonrpc":"2.0","id":1,"method":"task.edit","params":%b}\n' % params
    with ThreadPoolExecutor(1) as pool:  # send while reading: the responses are equally long
        asked = pool.submit(link.sock.sendall, b"".join(call % value for value in values))
        answers = _answers(link, len(values))
        asked.result()
    kinds = {answer["error"]["data"]["kind"] for answer in answers if "error" in answer}
    need(kinds <= {"limit_exceeded"}, f"long edits were refused as {kinds}")


def _unread(link: Raw) -> None:
    """Read nothing until the daemon has had time to do all its work."""
    select.select([link.sock], [], [], PATIENCE_S)
    time.sleep(0.1)


ATTACKS: dict[str, Attack] = {
    "20 undos": _calls([("list.undo", {"conversation": LONG, "preview": number % 2 == 0}) for number in range(20)]),
    "an undo of everything": _calls([("list.undo", {"conversation": MINE, "of": "anonymous"})]),
    "20 past versions": _pasts,
    "a batch of 100 long lists": _batch,
    # All of them wait for the commit of the change.
    "64 long lists behind a change": _calls(
        [
            ("task.add", {"conversation": LIST, "title": "x"}),
            *[("task.list", {"conversation": LIST, "limit": 999})] * 63,
        ],
        unread=True,
    ),
    "64 pages of long messages": _calls(
        [("message.list", {"conversation": TALK, "limit": 1_000})] * 64, unread=True, member="messages"
    ),
    "64 pages of events": _calls([("event.read", {"after": 0, "limit": 10_000})] * 64, unread=True, member="events"),
}

LONG_FRAMES: dict[str, Attack] = {
    "100 edits of a mebibyte": _long_edits,
    "frames full of values": _dense,
}
"""Attacks that run only with lists of the full size, because they take just as long with small ones.

The wait during the second of these attacks has no limit: the densest accepted frame takes 30 ms on a busy processor,
and a bystander may wait for two of them.
"""


class Cost(NamedTuple):
    """Effect of an attack: a bystander's waits, and the growth of the daemon's memory."""

    wall_ms: list[float]
    daemon_ms: list[float]
    bytes: int

    def summary(self) -> str:
        return " | ".join(
            " ".join(f"{wait:.1f}" for wait in (percentile(waits, 0.5), percentile(waits, 0.99), max(waits)))
            for waits in (self.daemon_ms, self.wall_ms)
        )


Waits = list[tuple[float, float]]
"""Wall time and the daemon's processor time of each call, in milliseconds."""


@contextmanager
def bystander(daemon: Daemon, *, changes: bool = True) -> Generator[Callable[[], Waits]]:
    """Run a client in its own process that reads, and optionally makes changes, all the time.

    The yielded function returns the times of the client's calls since its previous call.
    """
    what = ["changes"] if changes else []
    command = [sys.executable, "-m", "punchlist_faults.fairness", daemon.socket, str(daemon.pid()), *what]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as process:

        def waits() -> Waits:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
            return msgspec.json.decode(process.stdout.readline(), type=Waits)

        try:
            yield waits
        finally:
            process.kill()


def _stand_by(socket: str, pid: int, *, changes: bool) -> None:
    clock = ~pid << 3 | 2  # the processor time of another process: clock_getcpuclockid(3)
    link, waits = Raw(socket), Waits()
    link.sock.settimeout(PATIENCE_S)
    link.result("task.add", conversation="aside", title="x")
    while True:
        calls = (("task.get", {"task": "1"}), ("task.edit", {"task": "1", "title": f"{time.time()}"}))
        for method, params in calls if changes else calls[:1]:
            began, used = time.perf_counter(), time.clock_gettime(clock)
            link.result(method, conversation="aside", **params)
            used, wall = time.clock_gettime(clock) - used, time.perf_counter() - began
            waits.append((wall * 1000, min(used, wall) * 1000))  # two threads may use more than the wall time
        if select.select([sys.stdin], [], [], 0.002)[0]:
            if not os.read(sys.stdin.fileno(), 1):
                return
            print(msgspec.json.encode(waits).decode(), flush=True)
            waits = []


def _measure(daemon: Daemon, aside: Callable[[], Waits], attack: Attack) -> Cost:
    link = _patient(daemon)
    aside()
    daemon.forget_peak()
    before = daemon.memory()
    attack(link)
    peak = daemon.memory("VmHWM")
    waits = aside()
    link.close()
    need(daemon.is_running, "the daemon ended")
    return _cost(waits, max(0, peak - before))


def _cost(waits: Waits, size: int = 0) -> Cost:
    return Cost([wall for wall, _ in waits], [used for _, used in waits], size)


def _fill(daemon: Daemon, size: int) -> None:
    link = daemon.connect()
    link.sock.settimeout(PATIENCE_S)
    link.result("task.add_many", conversation=LONG, tasks=[{"title": f"{number}"} for number in range(TASKS)])
    for first in range(0, size - TASKS, 100):
        calls = [
            {"task": str((first + index) % TASKS + 1), "status": ("pending", "in_progress")[(first // TASKS + 1) % 2]}
            for index in range(100)
        ]
        _ask(link, *[("task.set_status", {"conversation": LONG, **call}) for call in calls])
        _answers(link, len(calls))
    for first in range(0, size * 4_100 // FULL, 50):
        _ask(link, *[("task.add", {"conversation": MINE, "title": f"{first + index}"}) for index in range(50)])
        _answers(link, 50)
    link.result("task.add", conversation=WIDE, title="x")
    text = "d" * (6_000_000 * size // FULL // TASKS)
    for _ in range(TASKS):
        link.result("task.add", conversation=LIST, title="x", description=text[:60_000])
    text = "m" * (18_000_000 * size // FULL // 100)
    for _ in range(100):
        link.result("message.append", conversation=TALK, role="user", content=text)
    link.close()


def _subscribers(daemon: Daemon) -> int:
    """Return the memory, in bytes, that each subscriber to a long list takes if it never reads."""
    link = daemon.connect()
    link.result("task.get", conversation=LIST, task="1")
    warm = daemon.connect()
    warm.result("task.list", conversation=LIST)
    before = daemon.memory()
    stuck = [daemon.connect() for _ in range(SUBSCRIBERS)]
    for subscriber in stuck:
        _ask(subscriber, ("event.subscribe", {"conversation": LIST, "view": "list"}))
    for subscriber in stuck:
        select.select([subscriber.sock], [], [], PATIENCE_S)
    for number in range(5):
        link.result("task.edit", conversation=LIST, task="1", title=f"{number}")
    grown = daemon.memory() - before
    for client in (*stuck, link, warm):
        client.close()
    return max(0, grown) // SUBSCRIBERS


def run(options: Options) -> Figures:
    figures: Figures = {"events": options.size}
    full = options.size >= FULL
    with running_daemon() as daemon:
        _fill(daemon, options.size)
        with bystander(daemon) as aside:
            figures["p50, p99, worst ms of a bystander"] = "of the daemon's processor time | by the wall"
            figures["alone"] = _measure(daemon, aside, lambda _: time.sleep(options.size / FULL)).summary()
            for name, attack in (ATTACKS | (LONG_FRAMES if full else {})).items():
                cost = _measure(daemon, aside, attack)
                figures[name] = cost.summary()
                figures[f"{name}: bytes"] = cost.bytes
                need(cost.bytes <= MAX_BYTES, f"{name} cost {cost.bytes:,} bytes")
                late = percentile(cost.daemon_ms, 0.99) > MAX_WAIT_MS and attack is not _dense
                need(not late, f"{name}: others waited for the daemon: {cost.summary()}")
            # Only the waiting time of others' reads has a limit during long calls. The waiting time of changes is only
            # printed.
            with bystander(daemon, changes=False) as reader:
                parts = PARTS * min(options.size, FULL) // FULL
                name = f"five calls of {parts:,} parts"
                aside()
                cost = _measure(daemon, reader, _many_parts(parts))
                figures[f"{name}: a reader"] = cost.summary()
                figures[f"{name}: a writer"] = _cost(aside()).summary()
                figures[f"{name}: bytes"] = cost.bytes
                need(percentile(cost.daemon_ms, 0.99) <= MAX_WAIT_MS, f"{name}: others waited: {cost.summary()}")
        each = _subscribers(daemon)
        figures["a stuck subscriber to a long list"] = each
        need(each <= MAX_SUBSCRIBER_BYTES + MAX_BYTES // SUBSCRIBERS, f"a stuck subscriber cost {each:,} bytes")
        crowd = CROWD if full else CROWD // 4
        figures[f"{crowd} frames full of values: bytes"] = grown = _crowd(daemon, crowd)
        need(grown <= MAX_CROWD_BYTES, f"{crowd} frames full of values cost {grown:,} bytes")
        daemon.stop()
        figures["served under a limit of memory"] = _attack_under_limit(daemon, MANY if full else MANY // 10)
    return figures


def _attack_under_limit(daemon: Daemon, many: int) -> int:
    """Make the same attacks concurrently under a memory limit; return the number of successful calls."""
    daemon.start()
    resource.prlimit(daemon.pid(), resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    links = [_patient(daemon) for _ in range(many)]
    for link in links:
        _ask(
            link,
            *[("task.list", {"conversation": LIST, "at_version": TASKS})] * 4,
            *[("message.list", {"conversation": TALK, "limit": 1_000})] * 4,
            *[("task.list", {"conversation": LIST})] * 4,
        )
    for link in links:
        select.select([link.sock], [], [], PATIENCE_S)
    time.sleep(0.2)
    served = 0
    for link in links:
        for answer in _answers(link, 12):
            served += "result" in answer
            need("result" in answer or answer["error"]["data"]["kind"] == "limit_exceeded", f"answered {answer}")
        link.close()
    for attack in ATTACKS.values():
        link = _patient(daemon)
        attack(link)
        link.close()
    _crowd(daemon, many * CROWD // MANY)
    need(daemon.is_running, f"the daemon ended under a limit of memory: {daemon.output()[-2000:]}")
    return served


if __name__ == "__main__":
    _stand_by(sys.argv[1], int(sys.argv[2]), changes=len(sys.argv) > 3)
