"""Conversations turn by turn: everyday phrases, and phrases that must not change the tasks they name."""

import uuid
from pathlib import Path
from typing import Any

import msgspec

from punchlist import AsyncClient
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import Talk
from punchlist_testing.unmeasured import mostly_untraced

_ABOUT, *CORPUS = [
    msgspec.json.decode(line) for line in Path(__file__).with_name("conversations.jsonl").read_bytes().splitlines()
]


async def test_no_conversation_changes_a_wrong_task(client: AsyncClient) -> None:
    wrong: list[str] = []
    missed: list[str] = []
    for number in mostly_untraced(len(CORPUS)):
        line = CORPUS[number]
        changes, answer = await run_conversation(client, line)
        allowed = line["changes"] | line.get("may", {})
        if not changes.items() <= allowed.items():
            wrong.append(f"{line['said']}: {changes}")
        elif not line["changes"].items() <= changes.items() or any(one not in answer for one in line.get("answer", ())):
            missed.append(f"{line['said']}: {changes}, {answer!r}")
    assert not wrong, wrong
    assert len(missed) <= 0.1 * len(CORPUS), missed


async def run_conversation(client: AsyncClient, line: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Run a conversation about a new list. Return the changed tasks with their new state, and the last answer."""
    name = f"talk-{uuid.uuid4().hex}"
    await client.conversation(name, actor="ann").add_many(line.get("list", _ABOUT["list"]))
    talk = Talk(await Thread.open(client, name), Worker())
    before = await state(talk)
    answer = ""
    for text in line["said"]:
        answer = await talk.told(text)
    after = await state(talk)
    return {
        title: after.get(title, "gone") for title in before | after if before.get(title) != after.get(title)
    }, answer


async def state(talk: Talk) -> dict[str, str]:
    """Return the status of each task by title, followed by its priority if that isn't normal."""
    return {
        task.title: task.status if task.priority == "normal" else f"{task.status} {task.priority}"
        for task in await talk.thread.tasks.list()
    }
