from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_testing.domain import Recorder
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine
from punchlistd.engine.calls import Caller
from punchlistd.engine.writing.confirm import MAX_QUESTIONS, Confirmer

C = "c"


async def filled(running: Engine) -> Peer:
    peer = await running.connect(confirm=True)
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "a"}, {"title": "b"}])
    return peer


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("task.delete", {"task": "1"}, "delete 1 task: #1 a"),
        ("task.delete", {"tasks": ["1", "2"]}, "delete 2 tasks: #1 a, #2 b"),
        (
            "list.apply",
            {"changes": [{"method": "task.delete", "task": "1"}, {"method": "task.edit", "task": "2", "title": "x"}]},
            "make 2 changes to the list c and delete 1 task from it",
        ),
        ("list.clear", {}, "clear the list c with 2 tasks, 2 of them unfinished"),
        ("conversation.delete", {}, "erase the conversation c with its 2 tasks, 0 messages and its whole history"),
    ],
)
async def test_destructive_calls_take_two_steps(
    running: Engine, log: TouchyLog, method: str, params: dict[str, Any], said: str
) -> None:
    peer = await filled(running)
    head = log.head
    asked = await peer.refusal(method, conversation=C, **params)
    assert (asked["kind"], asked["code"], asked["summary"]) == ("confirmation_required", -32013, said)
    assert log.head == head and asked["expires_at"] > 0
    await peer.result(method, conversation=C, confirm=asked["token"], **params)
    assert log.head > head


async def test_changes_that_delete_nothing_take_one_step(running: Engine) -> None:
    peer = await filled(running)
    changes = [{"method": "task.edit", "task": "1", "title": "x"}]
    assert (await peer.result("list.apply", conversation=C, changes=changes))["version"] == 4
    asked = await peer.refusal("list.apply", conversation=C, changes=changes, ask=True)
    assert asked["summary"] == "make 1 change to the list c"


async def test_only_erasing_takes_two_steps_by_default(running: Engine, peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="a")
    await peer.result("task.delete", conversation=C, task="1")
    await peer.result("list.clear", conversation=C)
    assert (await peer.refusal("conversation.delete", conversation=C))["kind"] == "confirmation_required"


async def test_token_is_valid_for_its_call_only(running: Engine) -> None:
    peer = await filled(running)
    token = (await peer.refusal("task.delete", conversation=C, task="1"))["token"]
    for method, params in [
        ("task.delete", {"task": "2"}),
        ("task.delete", {"tasks": ["1"]}),
        ("list.clear", {}),
        ("conversation.delete", {}),
    ]:
        refused = await peer.refusal(method, conversation=C, confirm=token, **params)
        assert refused["kind"] == "confirmation_required", params
    for forged in ("x", "-", token[:-1] + ("0" if token[-1] != "0" else "1"), "9" * 255, f"9{token}", "٣-x"):
        assert (await peer.refusal("task.delete", conversation=C, task="1", confirm=forged))["token"] != forged
    await peer.result("task.delete", conversation=C, task="1", confirm=token)


async def test_token_of_another_list_confirms_nothing(running: Engine, log: TouchyLog) -> None:
    peer = await filled(running)
    await peer.result("task.add_many", conversation="other", tasks=[{"title": "a"}, {"title": "b"}])
    calls: list[tuple[str, dict[str, Any]]] = [
        ("task.delete", {"task": "1"}),
        ("list.clear", {}),
        ("conversation.delete", {}),
    ]
    head = log.head
    for method, params in calls:
        token = (await peer.refusal(method, conversation="other", **params))["token"]
        refused = await peer.refusal(method, conversation=C, confirm=token, **params)
        assert (refused["kind"], "other" in str(refused)) == ("confirmation_required", False)
    assert log.head == head


async def test_changed_list_needs_new_confirmation(running: Engine) -> None:
    peer = await filled(running)
    token = (await peer.refusal("list.clear", conversation=C))["token"]
    await peer.result("task.add", conversation=C, title="c")
    again = await peer.refusal("list.clear", conversation=C, confirm=token)
    assert again["kind"] == "confirmation_required" and "3 tasks" in again["summary"]
    await peer.result("list.clear", conversation=C, confirm=again["token"])


async def test_token_expires(tmp_path: Path) -> None:
    async with engine(tmp_path, confirm_s=-1.0) as running:
        peer = await filled(running)
        token = (await peer.refusal("list.clear", conversation=C))["token"]
        assert (await peer.refusal("list.clear", conversation=C, confirm=token))["kind"] == "confirmation_required"


async def test_rejected_calls_need_no_confirmation(running: Engine) -> None:
    peer = await filled(running)
    assert (await peer.refusal("conversation.delete", conversation="nowhere"))["kind"] == "not_found"
    assert (await peer.refusal("task.delete", conversation=C, task="9"))["kind"] == "not_found"
    assert (await peer.refusal("list.clear", conversation=C, expect_version=1))["kind"] == "version_conflict"


async def test_keyed_call_is_confirmed_with_its_key(running: Engine) -> None:
    peer = await filled(running)
    token = (await peer.refusal("list.clear", conversation=C, key="k"))["token"]
    first = await peer.result("list.clear", conversation=C, key="k", confirm=token)
    assert await peer.result("list.clear", conversation=C, key="k", confirm=token) == first


# Each token confirms one question once


async def test_token_is_valid_once(running: Engine) -> None:
    peer = await filled(running)
    token = (await peer.refusal("task.delete", conversation=C, task="1"))["token"]
    await peer.result("task.delete", conversation=C, task="1", confirm=token)
    await peer.result("list.undo", conversation=C)
    assert (await peer.refusal("task.delete", conversation=C, task="1", confirm=token))["token"] != token


async def test_token_erases_only_shown_tasks(running: Engine, peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": title} for title in "abc"])
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    await peer.result("task.delete", conversation=C, tasks=["1", "2", "3"])
    await peer.result("task.add_many", conversation=C, tasks=[{"title": title} for title in "def"])
    asked = await peer.refusal("conversation.delete", conversation=C, confirm=token)
    assert asked["kind"] == "confirmation_required" and asked["token"] != token
    await peer.result("conversation.delete", conversation=C, confirm=asked["token"])
    await peer.result("task.add_many", conversation=C, tasks=[{"title": title} for title in "ghi"])
    assert (await peer.refusal("conversation.delete", conversation=C, confirm=asked["token"]))["token"]


async def test_only_changed_target_tasks_ask_again(running: Engine) -> None:
    peer = await filled(running)
    first = (await peer.refusal("task.delete", conversation=C, task="1"))["token"]
    second = (await peer.refusal("task.delete", conversation=C, task="2"))["token"]
    await peer.result("task.edit", conversation=C, task="1", title="other")
    assert "other" in (await peer.refusal("task.delete", conversation=C, task="1", confirm=first))["summary"]
    await peer.result("task.delete", conversation=C, task="2", confirm=second)


async def test_token_is_valid_only_for_its_user(running: Engine) -> None:
    ann, bob, root = await running.connect(user="ann"), await running.connect(user="bob"), await running.connect()
    await ann.result("task.add", conversation=C, title="hers")
    asked = await ann.refusal("task.delete", conversation=C, task="1", ask=True)
    never = await bob.call("confirmation.get", token="0" * 32)
    foreign = await bob.call("confirmation.get", token=asked["token"])
    assert foreign["error"]["message"] == never["error"]["message"]
    assert foreign["error"]["data"] == {"kind": "not_found", "what": "confirmation", "id": asked["token"]}
    await bob.result("task.add", conversation="his", title="his")
    other = await bob.refusal(
        "task.delete", conversation="his", task="1", ask=True, answered=True, confirm=asked["token"]
    )
    assert other["kind"] == "confirmation_required"
    shown = await root.result("confirmation.get", token=asked["token"])
    assert (shown["method"], shown["summary"], shown["conversation"]) == ("task.delete", "delete 1 task: #1 hers", C)
    await root.result(shown["method"], **shown["params"], confirm=asked["token"], ask=True, answered=True)
    assert (await root.refusal("confirmation.get", token=asked["token"]))["kind"] == "not_found"


# Questions for a model


ASKED: list[tuple[str, dict[str, Any]]] = [
    ("task.edit", {"task": "1", "title": "renamed"}),
    ("task.delete", {"task": "1"}),
    ("list.clear", {}),
    ("list.replace", {"tasks": [{"title": "a"}], "keep_unfinished": False}),
]


@pytest.mark.parametrize(("method", "params"), ASKED)
async def test_asking_agent_can_not_confirm_immediately(
    running: Engine, peer: Peer, method: str, params: dict[str, Any]
) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "a"}, {"title": "b"}])
    head = running.log.head
    asked = await peer.refusal(method, conversation=C, ask=True, **params)
    assert asked["kind"] == "confirmation_required" and 4_000 < asked["valid_in_ms"] <= 5_001
    again = await (await running.connect()).refusal(method, conversation=C, ask=True, confirm=asked["token"], **params)
    assert (again["kind"], again["token"]) == ("confirmation_required", asked["token"])
    assert running.log.head == head
    await peer.result(method, conversation=C, ask=True, confirm=asked["token"], answered=True, **params)
    assert running.log.head > head


async def test_persons_quote_confirms_and_is_stored(running: Engine, peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "a"}, {"title": "b"}])
    words = "yes, delete task 1"
    await peer.result("task.edit", conversation=C, task="1", title="x", ask=True, quote="rename it, sure")
    await peer.result("task.delete", conversation=C, task="1", ask=True, quote=words)
    await peer.result("list.clear", conversation=C, ask=True, quote="all of them")
    events = [event["event"] for event in (await peer.result("event.read", after=0))["events"]]
    assert [event["quote"] for event in events if "quote" in event] == ["rename it, sure", words, "all of them"]
    await peer.result("task.add", conversation=C, title="c")
    blank = await peer.refusal("task.delete", conversation=C, task="1", ask=True, quote="  ")
    assert blank["kind"] == "confirmation_required"
    erased = await peer.refusal("conversation.delete", conversation=C, quote="erase it all")
    assert erased["kind"] == "confirmation_required", "an answer in words alone erases nothing"


def caller(user: str | None = None, pid: int = 1) -> Caller:
    return cast(Caller, SimpleNamespace(user=user, confirm=False, holder=SimpleNamespace(pid=pid)))


def test_tokens_use_monotonic_time_and_end_with_process() -> None:
    now = 100.0
    confirmer = Confirmer(300, 5, clock=lambda: now)
    recorder = Recorder()
    for title in "ab":
        recorder.do(p.TaskAdd(conversation=recorder.state.conversation, title=title))

    def ask(token: str | None = None, pid: int = 1, at: int = 0) -> Rejection | None:
        params = p.TaskDelete(conversation=recorder.state.conversation, task="1", ask=True, confirm=token)
        return confirmer.check("task.delete", params, recorder.state, caller(pid=pid), at)

    def token() -> str:
        asked = ask()
        assert asked is not None
        return cast(str, asked.data["token"])

    held = token()
    assert ask(held) is not None and ask(held, at=10**15) is not None, "the wall clock has no effect"
    assert ask(held, pid=2) is None
    held = token()
    now += 5
    assert ask(held) is None
    held = token()
    now += 300
    assert ask(held, pid=2) is not None and isinstance(confirmer.get(None, held, 0), Rejection)


def test_open_questions_are_limited_for_each_user() -> None:
    confirmer, recorder = Confirmer(300, 5), Recorder()
    recorder.do(p.TaskAdd(conversation=recorder.state.conversation, title="a"))
    params = p.TaskDelete(conversation=recorder.state.conversation, task="1", ask=True)

    def ask(user: str) -> str:
        asked = confirmer.check("task.delete", params, recorder.state, caller(user), 0)
        assert asked is not None
        return cast(str, asked.data["token"])

    anns = ask("ann")
    bobs = [ask("bob") for _ in range(MAX_QUESTIONS + 1)]
    assert isinstance(confirmer.get("bob", bobs[0], 0), Rejection)
    assert not isinstance(confirmer.get("bob", bobs[1], 0), Rejection)
    assert not isinstance(confirmer.get("ann", anns, 0), Rejection)
