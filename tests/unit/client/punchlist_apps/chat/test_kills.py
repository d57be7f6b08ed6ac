"""Turns killed at any point: the next worker finishes them with exactly one change and one true answer.

These tests raise in the subscriber to the turn's events and close the connection; `make fault NAME=chat` kills
processes with kill -9. The log is the oracle, also for random scripts.
"""

from contextlib import suppress
from typing import Any

import anyio
import pytest

from punchlist import AsyncClient
from punchlist.errors import NotFound
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import POINTS, SCENARIOS, Talk, TurnKilled, TurnKiller, prepared
from punchlist_testing.daemon import Running

PATIENCE_S = 30


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
async def test_killed_turn_changes_and_answers_once(
    daemon: Running, client: AsyncClient, scenario: Any, point: str
) -> None:
    talk = await prepared(client, scenario)
    live = TurnKiller(point)
    with anyio.fail_after(PATIENCE_S):
        turn = await talk.thread.send(scenario.text)
        async with AsyncClient(socket=daemon.socket, autostart=False, name="victim") as victim:
            with suppress(TurnKilled, BaseExceptionGroup):
                await Worker(live=live).answer(Thread(victim, talk.thread.id, talk.thread.list), turn)
        again = await talk.thread.send(scenario.text, turn=turn)
        answer = await talk.worker.answer(talk.thread, again)
    assert live.has_killed or point == "model"
    assert answer["text"] == scenario.answer
    assert await talk.open() == scenario.after
    await talk.check(turn)
    shown = await talk.thread.queue.messages(roles=("assistant",), limit=100)
    assert len([one for one in shown.messages if one.message == f"{turn}.a"]) == 1


async def test_crashed_change_of_deleted_task_is_reported(daemon: Running, talk: Talk) -> None:
    await talk.say("add milk")
    turn = await talk.thread.send("complete task 1")
    with anyio.fail_after(PATIENCE_S):
        async with AsyncClient(socket=daemon.socket, autostart=False, name="victim") as victim:
            with suppress(TurnKilled, BaseExceptionGroup):
                await Worker(live=TurnKiller("tool")).answer(Thread(victim, talk.thread.id, "plan"), turn)
        await talk.thread.client.conversation("plan").delete("1")
        answer = await Worker().answer(talk.thread, turn)
    assert answer["text"] == "Completed task: milk"
    await talk.check(turn)


async def test_a_message_without_a_turn_is_answered(talk: Talk) -> None:
    await talk.thread.append("u1", "user", {"text": "add milk"})
    await talk.thread.append("u2", "user", {"text": "add bread"})
    with anyio.fail_after(PATIENCE_S):
        await talk.worker.settle(talk.thread)
        await talk.worker.settle(talk.thread)
        assert await talk.open() == ["milk", "bread"]
        await talk.thread.append("u3", "user", {"text": "add eggs"})
        assert (await talk.worker.answer(talk.thread, "u3"))["text"] == "Created task: eggs"
        with pytest.raises(NotFound):
            await talk.worker.answer(talk.thread, "u4")
    for turn in ("u1", "u2", "u3"):
        await talk.check(turn)


async def test_foreign_messages_are_not_turns(talk: Talk) -> None:
    said = await talk.thread.queue.append_message("user", {"text": "add milk"})
    await talk.thread.queue.append_message("assistant", {"text": "Done."}, message=f"{said.message}.a")
    await talk.thread.queue.append_message("user", {"text": "add milk"}, message="m1")
    await talk.worker.settle(talk.thread)
    assert len(await talk.thread.queue.list()) == 0 and await talk.open() == []


async def test_three_workers_make_one_answer(daemon: Running, talk: Talk) -> None:
    turn = await talk.thread.send("add buy milk")
    answers: list[dict[str, Any]] = []

    async def work() -> None:
        async with AsyncClient(socket=daemon.socket, autostart=False, name="worker") as own:
            answers.append(await Worker().answer(Thread(own, talk.thread.id, "plan"), turn))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(work)
    assert await talk.open() == ["buy milk"]
    assert answers[0] == answers[1] == answers[2]


async def test_four_concurrent_tabs_get_four_answers(client: AsyncClient, talk: Talk) -> None:
    tabs = [Talk(Thread(client, talk.thread.id, "plan"), Worker()) for _ in range(4)]
    told: list[str] = []

    async def type_in(number: int) -> None:
        told.append(await tabs[number].told(f"add task {number}"))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(type_in, number)
    assert sorted(told) == [f"Created task: {number}" for number in range(4)]
    assert sorted(await talk.open()) == ["0", "1", "2", "3"]


async def test_stale_turn_makes_no_call(talk: Talk) -> None:
    turn = await talk.thread.send("add buy milk")
    answer = await Worker(stale_s=-1).answer(talk.thread, turn)
    assert "nothing was done" in answer["text"] and await talk.open() == []


async def test_stale_turn_reports_only_finished_calls(daemon: Running, talk: Talk) -> None:
    turn = await talk.thread.send("add eggs; flour")
    async with AsyncClient(socket=daemon.socket, autostart=False, name="victim") as victim:
        with suppress(TurnKilled, BaseExceptionGroup):
            await Worker(live=TurnKiller("tool")).answer(Thread(victim, talk.thread.id, "plan"), turn)
    answer = await Worker(stale_s=-1).answer(talk.thread, turn)
    first, second = answer["text"].splitlines()
    assert first == "Created task: eggs" and second.startswith("That did not work: create_todo_task was not called")
    assert await talk.open() == ["eggs"]
    await talk.check(turn)
