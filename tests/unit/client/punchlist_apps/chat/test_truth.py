"""Every claim shown is an event in the log, whatever a model writes and wherever a turn is killed."""

import re
from contextlib import suppress
from random import Random, SystemRandom
from typing import Any

import anyio

from punchlist import AsyncClient
from punchlist_apps.chat.claims import find_untrue
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.models.requests import Limits
from punchlist_apps.chat.receipts import ToolResult
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import POINTS, Talk, TurnKilled, TurnKiller
from punchlist_testing.daemon import Running
from punchlist_testing.scripted_model import results, serving
from punchlist_testing.unmeasured import mostly_untraced

TURNS = 60

PERSON = (
    "add task {n}", "add a{n}; b{n}", "complete task {k}", "delete task {k}", "delete task {k}, yes I'm sure",
    "yes", "yes", "no",
    "show my tasks", "what is left?", "undo that", "hello", "rename task {k} to New {n}", "delete all my tasks",
    "reopen task {k}", "make task {k} urgent", "maybe",
)  # fmt: skip
LIES = (
    "Created task: lie {n}", "Done! I've deleted task {k}.", "You have {n} tasks.", "Your list is now empty.",
    "Hello there.",
    "I have completed everything for you.", "Shall I delete task {k}?", "Task {k} has been renamed.",
)  # fmt: skip
CLAIMS = {
    r"Created task: (.*)": ("TaskAdded", ""),
    r"Completed task: (.*)": ("StatusChanged", "completed"),
    r"Reopened task: (.*)": ("StatusChanged", "pending"),
    r"Deleted task: (.*)": ("Deleted", ""),
    r"Renamed task \d+: (.*)": ("TaskEdited", "title"),
}


def build_random_model(random: Random) -> Any:
    """A model with random calls and random texts."""

    def profile(messages: list[dict[str, Any]]) -> Any:
        fill = {"n": random.randrange(1, 30), "k": random.randrange(1, 9)}
        if random.random() < (0.7 if results(messages) else 0.4):
            return random.choice(LIES).format(**fill)
        one: dict[str, Any] = {"task_id": fill["k"]}
        return [
            random.choice(
                [
                    ("create_todo_task", {"title": f"by model {fill['n']}"}),
                    ("complete_todo_task", one),
                    ("reopen_todo_task", one),
                    ("delete_todo_task", {**one, "user_words": "yes"}),
                    ("update_todo_task", {**one, "title": f"renamed {fill['n']}"}),
                    ("list_todo_tasks", {}),
                    ("get_todo_task", one),
                    ("no_such_tool", {}),
                ]
            )
            for _ in range(random.randrange(1, 4))
        ]

    return profile


async def test_claims_match_log_events(daemon: Running, client: AsyncClient) -> None:
    seed = SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    random = Random(seed)
    with serving(build_random_model(random)) as script:
        limits = Limits(first_s=2, silent_s=2)
        thread = await Thread.open(client, "plan")
        for number in mostly_untraced(TURNS):
            model = Completions("m", script.url, limits=limits) if random.random() < 0.7 else None
            script.status = 503 if random.random() < 0.1 else 200
            script.fault = random.choice(("", "", "", "", "cut", "malformed"))
            text = random.choice(PERSON).format(n=number, k=random.randrange(1, 9))
            with anyio.fail_after(30):
                turn = await thread.send(text)
                if random.random() < 0.4:
                    async with AsyncClient(socket=daemon.socket, autostart=False, name="victim") as victim:
                        with suppress(TurnKilled, BaseExceptionGroup):
                            dying = Worker(model, TurnKiller(random.choice(POINTS)))
                            await dying.answer(Thread(victim, thread.id, "plan"), turn)
                await Worker(model).answer(thread, turn)
            await check_turn(Talk(thread, Worker()), turn, f"seed {seed}, turn {number}: {text!r}")


async def check_turn(talk: Talk, turn: str, where: str) -> None:
    answer = await talk.check(turn)
    written = await talk.thread.load_records(turn)
    read = [ToolResult(one["tool"], data=one.get("data")) for id, one in written.items() if id.startswith("c")]
    lists = [len(one.rows) for one in read if one.tool == "list_todo_tasks"]
    events = [(one["type"], one.get("to", ""), one.get("title", "")) for one in answer.get("receipts", ())]
    there = {change.seq for change in await talk.thread.client.read(0, "plan", limit=10_000)}
    assert all(one["seq"] in there for one in answer.get("receipts", ())), where
    for line in answer["text"].splitlines():
        for pattern, (kind, to) in CLAIMS.items():
            if (found := re.fullmatch(pattern, line)) is not None:
                assert (kind, to if to else "", found[1]) in events, (where, line, events)
        if (found := re.match(r"You have (\d+) tasks?:", line)) is not None:
            # a list read before a change in the same turn is shown in its state at that time
            assert int(found[1]) in (lists if events else [len(await talk.open())]), (where, line)
    if answer["source"] == "model":
        assert find_untrue(answer.get("model_text") or answer["text"], read) == [], where


async def test_receipt_names_task_added_in_step(client: AsyncClient) -> None:
    calls = [("create_todo_task", {"title": "eggs"}), ("complete_todo_task", {"task_id": 1})]
    with serving(lambda messages: "Done." if results(messages) else calls) as script:
        talk = Talk(await Thread.open(client, "plan"), Worker(Completions("m", script.url)))
        answer = await talk.say("eggs are done")
    assert answer["text"] == "Created task: eggs\nCompleted task: eggs"
