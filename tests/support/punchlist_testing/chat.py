"""Chat turns for tests, their scenarios, and a check of each answer against the log."""

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
    """A chat thread and its worker; `turn` is the id of the last turn."""

    def __init__(self, thread: Thread, worker: Worker) -> None:
        self.thread = thread
        self.worker = worker
        self.turn = ""

    async def say(self, text: str, **options: Any) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_S):
            self.turn = await self.thread.send(text, **options)
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
        """Check that an answer's receipts are exactly the events that its calls appended; return the answer."""
        answer = await self.thread.find_answer(turn)
        assert answer is not None
        written = await self.thread.load_records(turn)
        seqs = set[int]()
        for id in written:
            if id.startswith("c"):
                seqs |= {event.seq for event in await self.thread.tasks.find(self.thread.call_key(turn, id))}
        for receipt in answer.get("receipts", ()):
            events = await self.thread.tasks.find(receipt["key"])
            assert receipt["key"].startswith(f"{turn}/")
            assert receipt["seq"] in {event.seq for event in events}, receipt
        assert {receipt["seq"] for receipt in answer.get("receipts", ())} == seqs
        return answer


MESSAGES = ("hello, how are you?", "add eggs; flour", "complete task 2", "what is left?", "delete task 1", "yes")
"""User messages of the documented session, in which the model talks, calls tools, makes a false claim, and deletes a
task."""

PAGE = Path(__file__).parents[3] / "docs/chat.md"


def mostly_honest(messages: list[dict[str, Any]]) -> Says:
    """Return the model's output in the documented session: a false claim for "what is left?", else honest output."""
    return "You have 7 tasks." if last_user(messages) == "what is left?" else honest(messages)


async def record_transcript(talk: Talk) -> str:
    """Run the documented session; return its transcript: calls, tool results, events, model text and answers."""
    lines: list[str] = []
    for text in MESSAGES:
        answer = await talk.say(text)
        written = await talk.thread.load_records(talk.turn)
        words = answer.get("model_text") or (answer["text"] if answer["source"] == "model" else "")
        model_text = [f"  model  {words}"] if words else []
        # After a false claim the rules answer instead, so the model's text comes before their calls.
        lines += [f"› {text}", *(model_text if answer.get("untrue") else ())]
        for step in (written[id] for id in sorted(written) if id.startswith("s")):
            for at, call in enumerate(step["calls"], start=1):
                who = "rules" if step["source"] == "rules" else "yes" if step["source"] == "answer" else "model"
                lines.append(f"  {who:6} {call['tool']} {json.dumps(call.get('arguments', {}))}")
                done = written[f"c1.{at}"]
                lines.append(f"  tool   {done['text']}")
                lines += [
                    f"  log    {change['type']} #{change['task']}"
                    for change in done.get("changes", ())
                    if change.get("task")
                ]
        lines += () if answer.get("untrue") else model_text
        lines += [f"  note   {note}" for note in answer.get("notes", ())]
        lines += [f"  answer {line}" for line in answer["text"].splitlines()]
        lines += [f"  mark   {answer['mark']}"] if "mark" in answer else []
    return "\n".join([*lines, ""])


def read_documented_transcript() -> str:
    """Return the transcript in docs/chat.md."""
    return PAGE.read_text("utf-8").partition("```text\n")[2].partition("```")[0]


class TurnKilled(BaseException):
    """Raised inside a turn to end it as a crash would."""


class TurnKiller(Live):
    """Kills the first turn that emits the event `point`."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self.point = point
        self.has_killed = False

    def start(self, turn: str) -> Publish:
        """Return the turn's event callback, which raises at the chosen point."""
        tell = super().start(turn)

        def dying(name: str, data: dict[str, Any]) -> None:
            tell(name, data)
            if name == self.point and not self.has_killed:
                self.has_killed = True
                raise TurnKilled(name)

        return dying


POINTS = ("turn.started", "model", "step", "tool.started", "tool", "tool.completed", "answer", "message")
"""Events at which a turn can be killed: after the user's message, after the model's output, after the recorded calls,
before a call, after it, after its receipt, and before and after the answer is written."""


class Scenario(NamedTuple):
    """A message to a list of two tasks, and its expected effects.

    Attributes:
        before: Message sent first; "" for none.
        text: The message.
        answer: Expected answer to the message.
        after: Expected titles of the open tasks.
    """

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
    """Create a thread and a list, and send the messages that come before the scenario's."""
    thread = await Thread.open(client, f"plan-{uuid.uuid4().hex}")
    await thread.tasks.add_many(["milk", "bread"])
    talk = Talk(thread, Worker())
    if scenario.before:
        await talk.say(scenario.before)
    return talk
