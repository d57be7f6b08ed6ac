"""Chats about tasks that wait for approval, have an owner, or are due."""

from typing import Any

import pytest

from punchlist import AsyncClient
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.worker import Worker
from punchlist_schemas.things import Gate
from punchlist_testing.chat import Talk
from punchlist_testing.scripted_model import Says, results, serving


@pytest.fixture
async def gated(client: AsyncClient, talk: Talk) -> Talk:
    """A thread about three tasks. An agent has completed two of them, which wait for approval."""
    plan = client.conversation("plan", actor="codex/1a2b3c")
    for title in ("one", "two", "three"):
        await plan.add(title, gate=Gate(yes=True))
    for task in "12":
        await plan.complete(task)
    return talk


async def test_list_shows_tasks_waiting_for_approval(gated: Talk) -> None:
    assert (await gated.told("what's next")).splitlines() == [
        "You have 3 pending tasks:",
        "  ‖ #1 one (waits for a person's yes)",
        "  ‖ #2 two (waits for a person's yes)",
        "  ☐ #3 three",
    ]
    assert (await gated.told("what is waiting for me?")).splitlines() == [
        "You have 2 tasks waiting for your yes:",
        "  ‖ #1 one (waits for a person's yes)",
        "  ‖ #2 two (waits for a person's yes)",
    ]


async def test_a_person_approves_in_a_chat(gated: Talk) -> None:
    assert await gated.told("approve 2") == "Completed task: two"
    assert await gated.told("what is waiting for me?") == (
        "You have 1 task waiting for your yes:\n  ‖ #1 one (waits for a person's yes)"
    )
    assert "it does not wait for a yes" in await gated.told("approve 3")
    await gated.told("undo")
    assert (await gated.thread.tasks.get("2")).waits_for == "yes"


async def test_model_approval_needs_person(gated: Talk) -> None:
    def approve(messages: list[dict[str, Any]]) -> Says:
        return "Done." if results(messages) else [("approve_todo_task", {"task_id": 2})]

    with serving(approve) as script:
        talk = Talk(gated.thread, Worker(Completions("m", script.url)))
        assert (await talk.say("is the second one good?"))["asks"]
        assert (await gated.thread.tasks.get("2")).waits_for == "yes"
        assert await talk.told("yes") == "Completed task: two"


async def test_assigned_task_shows_owner(talk: Talk, client: AsyncClient) -> None:
    plan = client.conversation("plan", actor="codex/1a2b3c")
    await plan.add_many(["one", "two"])
    assert await talk.told("assign 1 to ann") == "Assigned to ann: one"
    assert (await talk.thread.tasks.get("1")).owner == "ann"
    assert await talk.told("assign 1 to ann") == "Nothing changed: task 1 (one) already has this owner."
    assert "one owner at a time" in await talk.told("assign 1 to bob and 2 to ann")
    await talk.told("assign 1 to nobody")
    assert (await talk.thread.tasks.get("1")).owner == ""
    await talk.told("assign 1 to ann")
    await plan.take("codex/1a2b3c")
    assert (await talk.told("who is working?")).splitlines() == [
        "You have 1 running task:",
        "  ● #2 two (@codex/1a2b3c)",
    ]
    assert "is in progress" in await talk.told("assign 2 to ann")


async def test_new_task_takes_due_date(talk: Talk) -> None:
    assert await talk.told("add buy milk due 2126-12-24") == "Created task: buy milk (due 2126-12-24)"
    (task,) = await talk.thread.tasks.list()
    assert (task.title, task.due_day) == ("buy milk", "2126-12-24")
    assert (await talk.told("add pay rent, due on friday")).startswith("Created task: pay rent (due 20")
    assert await talk.told("add read what is due soon") == "Created task: read what is due soon"
