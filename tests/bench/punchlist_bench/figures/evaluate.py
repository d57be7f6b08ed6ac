"""Scores rules or a model on cases in the shape of τ²-bench's: by the list at the end, the calls, and what was said.

CASES names the file, RUNS how often each case runs, and PUNCHLIST_CHAT_MODEL and its like a model. A case has
`initial_state` (the titles of a list), `turns` (what is said, in order) and `evaluation_criteria`: `list` (title →
status at the end), `actions` (the tools that must have been called, in any order, with `arguments` that matter),
`communicate_info` (texts that some answer holds), `never` (tools that must not have changed anything), and
`reward_basis`: which of DB, ACTION, COMMUNICATE and TRUE count. TRUE always holds the log against what was said.
"""

import asyncio
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any

import msgspec

from punchlist.clients.aio import AsyncClient
from punchlist.errors import ConfirmationRequired, NotFound
from punchlist_apps.chat.claims import find_untrue
from punchlist_apps.chat.receipts import ToolResult
from punchlist_apps.chat.settings import build_model, load_settings
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_bench.harness import ROOT
from punchlist_bench.table import grid
from punchlist_testing.daemon import spawned_daemon

BASES = ("DB", "ACTION", "COMMUNICATE", "TRUE")


class Action(msgspec.Struct, frozen=True):
    """A call that must have been made; arguments that are left out may be any."""

    name: str
    arguments: dict[str, Any] = {}


class Criteria(msgspec.Struct, frozen=True):
    """What must have come of a case."""

    list: dict[str, str] | None = None
    actions: tuple[Action, ...] = ()
    communicate_info: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    reward_basis: tuple[str, ...] = BASES


class Case(msgspec.Struct, frozen=True):
    """One conversation to be scored."""

    id: str
    turns: tuple[str, ...]
    initial_state: tuple[str, ...] = ()
    evaluation_criteria: Criteria = Criteria()


class Score(msgspec.Struct):
    """What came of one run of a case: the bases that failed, with why."""

    case: str
    failed: dict[str, str] = {}

    @property
    def passed(self) -> bool:
        return not self.failed


def cases_of(data: bytes) -> list[Case]:
    """The cases of a file: a JSON array, or one JSON object a line.

    Raises:
        ValueError: They have another form.
    """
    if data.lstrip()[:1] == b"[":
        return msgspec.json.decode(data, type=list[Case])
    return [msgspec.json.decode(line, type=Case) for line in data.splitlines() if line.strip()]


async def scored(client: AsyncClient, case: Case, worker: Worker) -> Score:
    """Run a case on a list and in a thread of its own; both are erased afterwards."""
    thread = await Thread.open(client, f"eval-{uuid.uuid4().hex}", title=case.id[:200])
    try:
        if case.initial_state:
            await thread.tasks.add_many(case.initial_state)
        seen = _Seen()
        for text in case.turns:
            turn = await thread.send(text)
            answer = await worker.answer(thread, turn)
            await seen.take(thread, turn, answer)
        tasks = {task.title: task.status for task in await thread.tasks.list()}
        return _judged(case, seen, tasks)
    finally:
        for conversation in (thread.tasks, thread.queue):
            await _erased(client, conversation.id)


class _Seen:
    """What was called and said over the turns of a case."""

    def __init__(self) -> None:
        self.calls: list[ToolResult] = []
        self.said: list[str] = []
        self.false: list[str] = []

    async def take(self, thread: Thread, turn: str, answer: dict[str, Any]) -> None:
        written = await thread.load_records(turn)
        done = [msgspec.convert(content, ToolResult) for id, content in written.items() if id.startswith("c")]
        self.calls += done
        text = str(answer.get("text", ""))
        self.said.append(text)
        seqs = {
            event.seq for id in written if id[0] == "c" for event in await thread.tasks.find(thread.call_key(turn, id))
        }
        if {int(one["seq"]) for one in answer.get("receipts", ())} != seqs:
            self.false.append(f"{text!r}: its receipts are not the events of the turn")
        if answer.get("source") == "model":
            self.false += find_untrue(str(answer.get("model_text") or text), done)


def _judged(case: Case, seen: _Seen, tasks: dict[str, str]) -> Score:
    wanted = case.evaluation_criteria
    failed: dict[str, str] = {}
    if wanted.list is not None and tasks != wanted.list:
        failed["DB"] = f"the list is {tasks}"
    missing = [one.name for one in wanted.actions if not any(_is(one, done) for done in seen.calls)]
    done_all_the_same = [one.tool for one in seen.calls if one.tool in wanted.never and one.changes]
    if missing or done_all_the_same:
        failed["ACTION"] = f"missing: {missing}; must not be: {done_all_the_same}"
    unsaid = [text for text in wanted.communicate_info if not any(text.lower() in said.lower() for said in seen.said)]
    if unsaid:
        failed["COMMUNICATE"] = f"not said: {unsaid}"
    if seen.false:
        failed["TRUE"] = "; ".join(seen.false)
    return Score(case.id, {name: why for name, why in failed.items() if name in wanted.reward_basis})


def _is(wanted: Action, done: ToolResult) -> bool:
    return wanted.name == done.tool and all(
        str(done.arguments.get(name)) == str(value) for name, value in wanted.arguments.items()
    )


async def _erased(client: AsyncClient, name: str) -> None:
    conversation = client.conversation(name)
    try:
        await conversation.erase()
    except ConfirmationRequired as error:
        await conversation.erase(confirm=error.token, answered=True)
    except NotFound:
        return


async def evaluate(client: AsyncClient, cases: list[Case], worker: Worker, runs: int) -> list[tuple[str, str, str]]:
    """Run each case; return its name, how many runs passed, and why others failed."""
    rows: list[tuple[str, str, str]] = []
    for case in cases:
        scores = [await scored(client, case, worker) for _ in range(runs)]
        failed = {name: why for score in scores for name, why in score.failed.items()}
        told = "; ".join(f"{name}: {why}" for name, why in failed.items())
        rows.append((case.id, f"{sum(score.passed for score in scores)}/{runs}", told))
    return rows


def measure(*, quick: bool) -> str:
    path = Path(os.environ.get("CASES") or ROOT / "examples/chat/cases.jsonl")
    runs = 1 if quick else int(os.environ.get("RUNS") or 1)
    worker = Worker(build_model(load_settings(os.environ), os.environ))

    async def work(socket: str) -> list[tuple[str, str, str]]:
        async with AsyncClient(socket=socket, autostart=False, name="evaluate") as client:
            return await evaluate(client, cases_of(path.read_bytes()), worker, runs)  # noqa: ASYNC240 - a small file

    with tempfile.TemporaryDirectory() as place, spawned_daemon(Path(place)) as daemon:
        return grid(("case", "runs that passed", "why others failed"), asyncio.run(work(daemon.socket)))
