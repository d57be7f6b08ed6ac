"""A person who talks to a list, and the log as the witness of what is answered."""

import json
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from punchlist import AsyncClient
from punchlist_apps.chat.live import Live, Publish
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.scripted_model import Says, honest, last_user

PATIENCE_S = 30


class Talk:
    """A thread and who works on it."""

    def __init__(self, thread: Thread, worker: Worker) -> None:
        self.thread = thread
        self.worker = worker
        self.turn = ""

    async def say(self, text: str, **given: Any) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_S):
            self.turn = await self.thread.send(text, **given)
            return await self.worker.answer(self.thread, self.turn)

    async def told(self, text: str) -> str:
        return str((await self.say(text))["text"])

    async def open(self) -> list[str]:
        return [task.title for task in await self.thread.tasks.list()]

    async def tools(self) -> list[tuple[str, dict[str, Any]]]:
        written = await self.thread.load_records(self.turn)
        steps = [written[id] for id in sorted(written) if id.startswith("s")]
        return [(call["tool"], call.get("arguments", {})) for step in steps for call in step["calls"]]

    async def check(self, turn: str) -> dict[str, Any]:
        """See that an answer is proved by the log: each receipt is an event of the list with its key, and all are."""
        answer = await self.thread.find_answer(turn)
        assert answer is not None
        written = await self.thread.load_records(turn)
        seqs = set[int]()
        for id in written:
            if id.startswith("c"):
                seqs |= {event.seq for event in await self.thread.tasks.find(self.thread.call_key(turn, id))}
        for receipt in answer.get("receipts", ()):
            found = await self.thread.tasks.find(receipt["key"])
            assert receipt["key"].startswith(f"{turn}/")
            assert receipt["seq"] in {event.seq for event in found}, receipt
        assert {receipt["seq"] for receipt in answer.get("receipts", ())} == seqs
        return answer


SAID = ("hello, how are you?", "add eggs; flour", "complete task 2", "what is left?", "delete task 1", "yes")
"""A session that shows what a model may do: talk, call tools, claim what is not so, and ask for what is destroyed."""

PAGE = Path(__file__).parents[3] / "docs/chat.md"


def with_a_lie(messages: list[dict[str, Any]]) -> Says:
    """A model of that session: it is honest but for what is left."""
    return "You have 7 tasks." if last_user(messages) == "what is left?" else honest(messages)


async def transcript(talk: Talk) -> str:
    """That session as it is written down: calls, results of tools, events of the log, words, and what is answered."""
    lines: list[str] = []
    for text in SAID:
        answer = await talk.say(text)
        written = await talk.thread.load_records(talk.turn)
        words = answer.get("model_text") or (answer["text"] if answer["source"] == "model" else "")
        spoken = [f"  model  {words}"] if words else []
        lines += [f"› {text}", *(spoken if answer.get("untrue") else ())]
        for step in (written[id] for id in sorted(written) if id.startswith("s")):
            for at, call in enumerate(step["calls"], start=1):
                who = "rules" if step["source"] == "rules" else "yes" if step["source"] == "answer" else "model"
                lines.append(f"  {who:6} {call['tool']} {json.dumps(call.get('arguments', {}))}")
                done = written[f"c1.{at}"]
                lines.append(f"  tool   {done['text']}")
                lines += [
                    f"  log    {one['type']} #{one['task']}" for one in done.get("changes", ()) if one.get("task")
                ]
        lines += () if answer.get("untrue") else spoken
        lines += [f"  note   {note}" for note in answer.get("notes", ())]
        lines += [f"  answer {line}" for line in answer["text"].splitlines()]
        lines += [f"  mark   {answer['mark']}"] if "mark" in answer else []
    return "\n".join([*lines, ""])


def shown_transcript() -> str:
    """The session as docs/chat.md shows it."""
    return PAGE.read_text("utf-8").partition("```text\n")[2].partition("```")[0]


class Died(BaseException):
    """What kills a turn."""


class Deadly(Live):
    """Lets the first turn that comes to a point die there."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self.point = point
        self.has_killed = False

    def start(self, turn: str) -> Publish:
        """What the turn says its events to, until it dies."""
        tell = super().start(turn)

        def dying(name: str, data: dict[str, Any]) -> None:
            tell(name, data)
            if name == self.point and not self.has_killed:
                self.has_killed = True
                raise Died(name)

        return dying


POINTS = ("turn.started", "model", "step", "tool.started", "tool", "tool.completed", "answer", "message")
"""Where a turn may die: behind the person's message, the model's answer, the calls as they are written down, before a
call and behind it, behind its receipt, before the answer is written and behind it."""


class Scenario(NamedTuple):
    """What is said to a list of two tasks, and what has to come of it."""

    name: str
    before: str
    text: str
    answer: str
    after: list[str]


SCENARIOS = (
    Scenario("add", "", "add eggs", "Created task: eggs", ["milk", "bread", "eggs"]),
    Scenario(
        "two", "", "add eggs; flour", "Created task: eggs\nCreated task: flour", ["milk", "bread", "eggs", "flour"]
    ),
    Scenario("complete", "", "complete task 1", "Completed task: milk", ["milk", "bread"]),
    Scenario("delete", "delete task 1", "yes", "Deleted task: milk", ["bread"]),
)


async def prepared(client: AsyncClient, scenario: Scenario) -> Talk:
    """A thread of its own about a list of its own, up to what is said in the scenario."""
    thread = await Thread.open(client, f"plan-{uuid.uuid4().hex}")
    await thread.tasks.add_many(["milk", "bread"])
    talk = Talk(thread, Worker())
    if scenario.before:
        await talk.say(scenario.before)
    return talk
