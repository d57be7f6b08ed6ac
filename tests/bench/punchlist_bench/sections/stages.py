"""Processor time of each step of a durable change, measured in this process, and of the whole call."""

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

import anyio

from punchlist_bench import process, table
from punchlist_bench.harness import Bench, middle
from punchlist_bench.requests import TITLE, call, statuses, tasks
from punchlist_bench.sections.reads import ECHO
from punchlist_bench.servers import Client, Server
from punchlist_bench.table import Row
from punchlist_schemas.events import AddedTask, TaskAdded
from punchlist_schemas.framing import Framer
from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import Mutation
from punchlist_testing.calls import parse_params
from punchlist_testing.memory_log import MemoryLog
from punchlistd.app.app import Engine
from punchlistd.domain.commands import Decision
from punchlistd.domain.decide import decide
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State, initial_state
from punchlistd.engine.calls import Write, stamp
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.replies import Outcome
from punchlistd.net import jsonrpc
from punchlistd.settings import Settings

T = TypeVar("T")

CLIENTS = 64
ROUNDS = 100
CALLS = CLIENTS * ROUNDS
GET = [call("task.get", conversation="c", task="{task}")]
DOMAIN = "decide and evolve (the domain)"
SETTINGS = Settings(socket="", data_dir="", index_events=1 << 30, index_delay_s=3600.0)


class _Caller:
    """A caller that counts responses; `done` is set when the last expected response arrives."""

    actor, user, confirm, holder = "anonymous", None, False, None

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self._expected = 0

    def begin(self, expected: int) -> None:
        """Expect this many responses before setting `done`."""
        self._expected = expected
        self.done.clear()

    def answer(self, id: bytes | None, outcome: Outcome) -> None:
        """Encode the response as a session does."""
        assert id is not None and isinstance(outcome, bytes)
        jsonrpc.response(id, outcome)
        self._expected -= 1
        if not self._expected:
            self.done.set()

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a no-op: this caller has no turns."""
        return nullcontext()

    def admit(self, outcome: Outcome) -> Outcome:
        """Return the outcome unchanged: this caller has no quota."""
        return outcome

    def flush(self) -> None:
        """Do nothing: the socket is measured separately."""


def run(bench: Bench) -> list[Row]:
    """Measure the steps of `task.add` and `task.set_status`, in microseconds of processor time per call."""
    echo = bench.serve(sys.executable, ECHO, "{socket}")
    kinds = {
        "task.add": [call("task.add", conversation="add-{conn}", title=TITLE + " {g}")],
        "task.set_status": statuses("status-{conn}"),
    }
    rows: list[Row] = []
    for name, requests in kinds.items():
        table.progress(f"the steps of {name}")
        rounds = [asyncio.run(_steps(requests)) for _ in range(bench.rounds)]
        steps = {step: middle([times[step] for times in rounds]) for step in rounds[0]}
        steps["read and write a socket (the bare protocol, whole call)"] = _processor(bench, echo, GET)
        steps["commit, as its share of a batch"], whole = _daemon(bench, requests)
        rows += [Row(f"{name}: {step}", f"{spent:.1f} µs") for step, spent in steps.items()]
        rows.append(Row(f"{name}: the daemon, whole call", f"{whole:.1f} µs", f"sum {sum(steps.values()):.1f} µs"))
    return rows


def _daemon(bench: Bench, requests: Sequence[str]) -> tuple[float, float]:
    """Return a daemon's time in commits, including the wait for the disk, and its processor time, both per call."""
    with bench.daemon() as daemon:
        with Client(daemon.socket) as client:
            for number in range(CLIENTS):
                client.call("task.add_many", conversation=f"status-{number}", tasks=tasks(50))
        spent = _processor(bench, daemon, requests)
        with Client(daemon.socket) as client:
            status = client.call("daemon.status")
    commits = status["commits"]
    return commits["p50_us"] * commits["count"] / status["calls"], spent


def _ignore_totals(*_: object) -> None:
    pass


def _processor(bench: Bench, server: Server, requests: Sequence[str]) -> float:
    """Return the processor time of a server per call."""

    def sample() -> float:
        begin = process.cpu_seconds(server.pid)
        load = bench.load(server, requests, CLIENTS, count=5 * CALLS)
        return (process.cpu_seconds(server.pid) - begin) / load.count * 1e6

    return middle(bench.in_turn({"": sample})[""])


async def _steps(requests: Sequence[str]) -> dict[str, float]:
    """Return the processor time of each step, run separately over the same calls."""
    frames = [
        (request.replace("{id}", str(round)).replace("{conn}", str(conn)).replace("{g}", str(round))).encode() + b"\n"
        for round in range(ROUNDS)
        for conn in range(CLIENTS)
        for request in [requests[round % len(requests)].replace("{task}", str(round // len(requests) % 50 + 1))]
    ]
    spent: dict[str, float] = {}

    def time_step(step: str, work: Callable[[], T]) -> T:
        begin = time.process_time()
        result = work()
        spent[step] = (time.process_time() - begin) / CALLS * 1e6
        return result

    framer = Framer(1 << 20)
    payloads = time_step("framing", lambda: [payload for data in frames for payload in framer.feed(data)])
    decoded = time_step(
        "guard and envelope", lambda: [jsonrpc.decode(payload, SETTINGS.limits) for payload in payloads]
    )
    calls = [call for call in decoded if isinstance(call, jsonrpc.Call)]
    parsed = time_step("params", lambda: [parse_params(METHODS[call.method], call.params) for call in calls])
    params = [mutation for mutation in parsed if isinstance(mutation, Mutation)]
    assert len(params) == CALLS
    lists = {mutation.conversation: _list(mutation.conversation) for mutation in params}
    time_step(DOMAIN, lambda: _domain(lists, params))
    whole = await _engine(list(zip(calls, params, strict=True)))
    return {**spent, "queue, seal, respond (the engine)": whole - spent[DOMAIN]}


def _list(conversation: str) -> State:
    """Return a list of fifty tasks, like the daemon's lists."""
    state = initial_state(conversation)
    for number in range(1, 51):
        evolve(state, TaskAdded(AddedTask(str(number), TITLE, "pending", "normal")), number, number, 1)
    return state


def _domain(lists: dict[str, State], params: Sequence[Mutation]) -> None:
    caller = _Caller()
    for seq, mutation in enumerate(params, 1):
        state = lists[mutation.conversation]
        (decision,) = decide(state, stamp(caller, mutation))
        assert isinstance(decision, Decision), decision
        for event in decision.events:
            evolve(state, event, seq, state.version + 1, seq)


async def _engine(calls: Sequence[tuple[jsonrpc.Call, Mutation]]) -> float:
    """Return the processor time per call from the queue to the encoded response, with an in-memory log."""

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        group.start_soon(lambda: work)

    log = MemoryLog(at_once=True)
    engine = Engine(log, SETTINGS, spawn=spawn, show=_ignore_totals)
    caller = _Caller()
    spent = 0.0
    async with anyio.create_task_group() as group:
        group.start_soon(engine.writer.run)
        for name in {params.conversation for _, params in calls}:
            engine.conversations.loaded[name] = LoadedConversation(_list(name), "", 0, 0)
        begin = time.process_time()
        for start in range(0, len(calls), CLIENTS):
            batch = calls[start : start + CLIENTS]
            caller.begin(len(batch))
            for call, params in batch:
                engine.writer.submit(Write(caller, call.id, METHODS[call.method], params, stamp(caller, params)))
            await caller.done.wait()
        spent = time.process_time() - begin
        engine.inbox.close()
    return spent / len(calls) * 1e6
