"""The Agents SDK with the scripted server, in both formats; needs the extra `chat-sdk`."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from punchlist_testing.optional import require_package

require_package("agents")

from punchlist import AsyncClient
from punchlist_apps.chat.models.agents_sdk import AgentsSdk
from punchlist_apps.chat.models.requests import Limits
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import (
    POINTS,
    SCENARIOS,
    Talk,
    TurnKilled,
    TurnKiller,
    mostly_honest,
    prepared,
    read_documented_transcript,
    record_transcript,
)
from punchlist_testing.daemon import Running
from punchlist_testing.scripted_model import Script, honest, liar, self_confirming, serving

QUICK = Limits(connect_s=2, first_s=2, silent_s=2)


@pytest.fixture
def script() -> Generator[Script]:
    with serving(honest) as script:
        script.one_id = False
        yield script


@pytest.fixture(params=["chat", "responses"])
def model(request: pytest.FixtureRequest, script: Script) -> AgentsSdk:
    return AgentsSdk("scripted", script.url, "sk-secret", QUICK, responses=request.param == "responses")


@pytest.fixture
async def talk(client: AsyncClient, model: AgentsSdk) -> Talk:
    return Talk(await Thread.open(client, "plan"), Worker(model))


async def test_sdk_changes_are_reported_from_log(talk: Talk, script: Script) -> None:
    answer = await talk.say("add eggs; flour")
    assert (answer["text"], answer["source"]) == ("Created task: eggs\nCreated task: flour", "receipts")
    assert answer["usage"] == {"input": 200, "output": 20} and len(script.asked) == 2
    await talk.check(talk.turn)


async def test_greeting_streams_with_unique_ids(talk: Talk) -> None:
    for number in range(5):
        assert await talk.told(f"hello {number}") == "Hello! I'm doing well, thank you."
    page = await talk.thread.queue.messages(roles=("assistant",))
    assert len({one.message for one in page.messages}) == 5


async def test_sdk_lies_and_self_confirmation_fail(talk: Talk, script: Script) -> None:
    await talk.thread.tasks.add("keep me")
    script.profile = self_confirming
    assert await talk.told("tidy up a bit") == "Are you sure you want to delete task 1? (yes/no)"
    assert await talk.told("no") == "Nothing was changed."
    script.profile = liar
    assert await talk.told("add milk") == "Created task: milk"
    assert await talk.open() == ["keep me", "milk"]


@pytest.mark.parametrize("members", [{"status": 401}, {"status": 429}, {"status": 500}, {"fault": "malformed"}])
async def test_rules_replace_failed_sdk_model(talk: Talk, script: Script, members: Any) -> None:
    for name, value in members.items():
        setattr(script, name, value)
    answer = await talk.say("add milk")
    assert answer["text"] == "Created task: milk" and await talk.open() == ["milk"]
    await talk.check(talk.turn)


async def test_sdk_reports_wrong_setting(talk: Talk, script: Script) -> None:
    script.status, script.refusal = 404, {"error": {"message": "model 'scripted' not found by sk-secret"}}
    (note,) = (await talk.say("add milk"))["notes"]
    assert (
        note
        == "the settings of the model are wrong (404: model 'scripted' not found by …); check --model and --base-url"
    )


async def test_unknown_tool_ends_in_answer(talk: Talk, script: Script) -> None:
    script.profile = lambda _messages: [("create_todo_task", {"title": "x"}), ("fly_to_the_moon", {})]
    answer = await talk.say("do it")
    assert answer["text"].startswith("Created task: x\nThat did not work: there is no tool")
    assert await talk.open() == ["x"]


async def test_documented_session_matches_sdk_formats(talk: Talk, script: Script) -> None:
    script.profile = mostly_honest
    assert await record_transcript(talk) == read_documented_transcript()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.name)
async def test_killed_sdk_turn_finishes_once(
    daemon: Running, client: AsyncClient, model: AgentsSdk, scenario: Any
) -> None:
    for point in POINTS:
        talk = await prepared(client, scenario)
        with anyio.fail_after(30):
            turn = await talk.thread.send(scenario.text)
            async with AsyncClient(socket=daemon.socket, autostart=False, name="victim") as victim:
                with suppress(TurnKilled, BaseExceptionGroup):
                    await Worker(model, TurnKiller(point)).answer(
                        Thread(victim, talk.thread.id, talk.thread.list), turn
                    )
            answer = await Worker(model).answer(talk.thread, turn)
        assert (answer["text"], await talk.open()) == (scenario.answer, scenario.after), point
        await talk.check(turn)
