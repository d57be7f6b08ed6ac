"""Scores rules or a model on cases in the format of τ²-bench: by the final list, the calls, and the answers.

CASES is the file, RUNS the number of runs of each case, and PUNCHLIST_CHAT_MODEL and related variables select a model.
A case has `initial_state` (titles of a list), `turns` (user messages) and `evaluation_criteria`:

- `list`: Title -> status at the end.
- `actions`: Tool calls that must occur, in any order, with the relevant `arguments`.
- `communicate_info`: Texts that must occur in some answer.
- `never`: Tools that must not change anything.
- `reward_basis`: Criteria that apply, out of DB, ACTION, COMMUNICATE and TRUE. TRUE compares the answers with the log.
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
    """A required call; omitted arguments may have any value."""

    name: str
    arguments: dict[str, Any] = {}


class Criteria(msgspec.Struct, frozen=True):
    """Expected result of a case."""

    list: dict[str, str] | None = None
    actions: tuple[Action, ...] = ()
    communicate_info: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    reward_basis: tuple[str, ...] = BASES


class Case(msgspec.Struct, frozen=True):
    """A chat to be scored."""

    id: str
    turns: tuple[str, ...]
    initial_state: tuple[str, ...] = ()
    evaluation_criteria: Criteria = Criteria()


class Score(msgspec.Struct):
    """Result of one run of a case: the failed criteria with reasons."""

    case: str
    failed: dict[str, str] = {}

    @property
    def passed(self) -> bool:
        return not self.failed


def parse_cases(data: bytes) -> list[Case]:
    """Parse a file of cases: a JSON array, or one JSON object per line.

    Raises:
        ValueError: The file has another format.
    """
    if data.lstrip()[:1] == b"[":
        return msgspec.json.decode(data, type=list[Case])
    return [msgspec.json.decode(line, type=Case) for line in data.splitlines() if line.strip()]


async def score_case(client: AsyncClient, case: Case, worker: Worker) -> Score:
    """Run a case with a new list and thread, and erase both afterwards."""
    thread = await Thread.open(client, f"eval-{uuid.uuid4().hex}", title=case.id[:200])
    try:
        if case.initial_state:
            await thread.tasks.add_many(case.initial_state)
        record = _Record()
        for text in case.turns:
            turn = await thread.send(text)
            answer = await worker.answer(thread, turn)
            await record.add(thread, turn, answer)
        tasks = {task.title: task.status for task in await thread.tasks.list()}
        return _judge(case, record, tasks)
    finally:
        for conversation in (thread.tasks, thread.queue):
            await _erase(client, conversation.id)


class _Record:
    """Calls, answers and false claims of all turns of a case."""

    def __init__(self) -> None:
        self.calls: list[ToolResult] = []
        self.answers: list[str] = []
        self.false: list[str] = []

    async def add(self, thread: Thread, turn: str, answer: dict[str, Any]) -> None:
        written = await thread.load_records(turn)
        done = [msgspec.convert(content, ToolResult) for id, content in written.items() if id.startswith("c")]
        self.calls += done
        text = str(answer.get("text", ""))
        self.answers.append(text)
        seqs = {
            event.seq for id in written if id[0] == "c" for event in await thread.tasks.find(thread.call_key(turn, id))
        }
        if {int(receipt["seq"]) for receipt in answer.get("receipts", ())} != seqs:
            self.false.append(f"{text!r}: its receipts are not the events of the turn")
        if answer.get("source") == "model":
            self.false += find_untrue(str(answer.get("model_text") or text), done)


def _judge(case: Case, record: _Record, tasks: dict[str, str]) -> Score:
    expected = case.evaluation_criteria
    failed: dict[str, str] = {}
    if expected.list is not None and tasks != expected.list:
        failed["DB"] = f"the list is {tasks}"
    missing = [action.name for action in expected.actions if not any(_matches(action, done) for done in record.calls)]
    forbidden = [done.tool for done in record.calls if done.tool in expected.never and done.changes]
    if missing or forbidden:
        failed["ACTION"] = f"missing: {missing}; must not be: {forbidden}"
    unsaid = [
        text
        for text in expected.communicate_info
        if not any(text.lower() in answer.lower() for answer in record.answers)
    ]
    if unsaid:
        failed["COMMUNICATE"] = f"not said: {unsaid}"
    if record.false:
        failed["TRUE"] = "; ".join(record.false)
    return Score(case.id, {name: why for name, why in failed.items() if name in expected.reward_basis})


def _matches(expected: Action, done: ToolResult) -> bool:
    return expected.name == done.tool and all(
        str(done.arguments.get(name)) == str(value) for name, value in expected.arguments.items()
    )


async def _erase(client: AsyncClient, name: str) -> None:
    conversation = client.conversation(name)
    try:
        await conversation.erase()
    except ConfirmationRequired as error:
        await conversation.erase(confirm=error.token, answered=True)
    except NotFound:
        return


async def evaluate(client: AsyncClient, cases: list[Case], worker: Worker, runs: int) -> list[tuple[str, str, str]]:
    """Run each case; return its id, the number of passed runs, and the reasons for failures."""
    rows: list[tuple[str, str, str]] = []
    for case in cases:
        scores = [await score_case(client, case, worker) for _ in range(runs)]
        failed = {name: why for score in scores for name, why in score.failed.items()}
        reasons = "; ".join(f"{name}: {why}" for name, why in failed.items())
        rows.append((case.id, f"{sum(score.passed for score in scores)}/{runs}", reasons))
    return rows


def measure(*, quick: bool) -> str:
    path = Path(os.environ.get("CASES") or ROOT / "examples/chat/cases.jsonl")
    runs = 1 if quick else int(os.environ.get("RUNS") or 1)
    worker = Worker(build_model(load_settings(os.environ), os.environ))

    async def work(socket: str) -> list[tuple[str, str, str]]:
        async with AsyncClient(socket=socket, autostart=False, name="evaluate") as client:
            return await evaluate(client, parse_cases(path.read_bytes()), worker, runs)  # noqa: ASYNC240 - a small file

    with tempfile.TemporaryDirectory() as place, spawned_daemon(Path(place)) as daemon:
        return grid(("case", "runs that passed", "why others failed"), asyncio.run(work(daemon.socket)))
