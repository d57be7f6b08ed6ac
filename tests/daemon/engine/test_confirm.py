from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine

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
        ("list.clear", {}, "clear the list c with 2 tasks, 2 of them unfinished"),
        ("conversation.delete", {}, "erase the conversation c with its 2 tasks and its whole history"),
    ],
)
async def test_destruction_takes_two_steps(
    running: Engine, log: TouchyLog, method: str, params: dict[str, Any], said: str
) -> None:
    peer = await filled(running)
    head = log.head
    asked = await peer.refusal(method, conversation=C, **params)
    assert (asked["kind"], asked["code"], asked["summary"]) == ("confirmation_required", -32013, said)
    assert log.head == head and asked["expires_at"] > 0
    await peer.result(method, conversation=C, confirm=asked["token"], **params)
    assert log.head > head


async def test_without_asking_for_it_only_erasing_takes_two_steps(running: Engine, peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="a")
    await peer.result("task.delete", conversation=C, task="1")
    await peer.result("list.clear", conversation=C)
    assert (await peer.refusal("conversation.delete", conversation=C))["kind"] == "confirmation_required"


async def test_a_token_is_good_for_its_call_alone(running: Engine) -> None:
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


async def test_a_list_that_changed_meanwhile_asks_again(running: Engine) -> None:
    peer = await filled(running)
    token = (await peer.refusal("list.clear", conversation=C))["token"]
    await peer.result("task.add", conversation=C, title="c")
    again = await peer.refusal("list.clear", conversation=C, confirm=token)
    assert again["kind"] == "confirmation_required" and "3 tasks" in again["summary"]
    await peer.result("list.clear", conversation=C, confirm=again["token"])


async def test_a_token_runs_out(tmp_path: Path) -> None:
    async with engine(tmp_path, confirm_s=-1.0) as running:
        peer = await filled(running)
        token = (await peer.refusal("list.clear", conversation=C))["token"]
        assert (await peer.refusal("list.clear", conversation=C, confirm=token))["kind"] == "confirmation_required"


async def test_nobody_is_asked_to_confirm_what_would_be_refused(running: Engine) -> None:
    peer = await filled(running)
    assert (await peer.refusal("conversation.delete", conversation="nowhere"))["kind"] == "not_found"
    assert (await peer.refusal("task.delete", conversation=C, task="9"))["kind"] == "not_found"
    assert (await peer.refusal("list.clear", conversation=C, expect_version=1))["kind"] == "version_conflict"


async def test_the_user_of_a_key_confirms_with_the_same_key(running: Engine) -> None:
    peer = await filled(running)
    token = (await peer.refusal("list.clear", conversation=C, key="k"))["token"]
    first = await peer.result("list.clear", conversation=C, key="k", confirm=token)
    assert await peer.result("list.clear", conversation=C, key="k", confirm=token) == first
