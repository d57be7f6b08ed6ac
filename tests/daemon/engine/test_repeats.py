from pathlib import Path
from typing import Any, NoReturn

import pytest

from punchlist_testing.engine import Peer, TouchyLog, engine
from punchlistd.store.port import StorageFailed

C = "c"


def add(title: str, **more: Any) -> dict[str, Any]:
    return {"conversation": C, "title": title, **more}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("task.add", add("x", blocks=["1"])),
    ("task.add_many", {"tasks": [{"title": "p", "ref": "p"}, {"title": "q", "parent": "p", "blocked_by": ["1"]}]}),
    ("task.edit", {"task": "1", "title": "renamed", "metadata": {"a": [1, None]}}),
    ("task.set_status", {"task": "1", "status": "completed", "result_summary": "well"}),
    ("task.move", {"task": "2", "before": "1"}),
    ("task.delete", {"tasks": ["1", "2"]}),
    ("list.replace", {"tasks": [{"title": "b"}, {"title": "new"}]}),
    ("list.clear", {}),
    ("list.undo", {"count": 2}),
    ("message.append", {"role": "user", "content": {"any": ["thing"]}, "actor": "somebody"}),
    ("conversation.configure", {"title": "T", "settings": {"max_attempts": 3}}),
    ("conversation.attach", {"session": "s"}),
]


@pytest.mark.parametrize(("method", "params"), CALLS, ids=[method for method, _ in CALLS])
async def test_a_repeated_call_gives_its_first_answer_byte_for_byte_from_memory_and_from_the_log(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    log = TouchyLog()
    keyed = {"conversation": C, "key": "k", **params}

    async def ask(peer: Peer) -> bytes:
        peer.send(method, keyed, id="same")
        return await peer.raw()

    async with engine(tmp_path, log, kill=True) as running:
        peer = await running.connect(client={"name": "me"})
        await peer.result(
            "task.add_many", conversation=C, tasks=[{"title": "a", "ref": "r"}, {"title": "b", "blocked_by": ["r"]}]
        )
        first = await ask(peer)
        assert b'"result"' in first
        head = log.head
        await peer.result("task.add", **add("later"))
        await peer.result("task.add", **add("later still"))
        assert await ask(peer) == first
    async with engine(tmp_path, log) as running:
        assert await ask(await running.connect()) == first
        assert log.head == head + 2


async def test_a_repeat_in_the_same_batch_is_done_once(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        peer.write(peer.request("task.add", add("a", key="k"), id=1) * 3)
        answers = [await peer.raw() for _ in range(3)]
        assert len(set(answers)) == 1 and log.head == 2


async def test_a_repeat_is_known_after_many_other_keys_even_within_one_batch(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        gate = log.hold()
        for number in range(300):
            peer.send("task.add", add(str(number), key=f"k{number}"), id=number)
        peer.send("task.add", add("0", key="k0"), id="again")
        gate.open()
        answers = {answer["id"]: answer for answer in [await peer.receive() for _ in range(301)]}
        assert answers["again"]["result"] == answers[0]["result"] and log.head == 301


async def test_a_repeat_is_told_of_a_failed_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> NoReturn:
        raise StorageFailed("EIO")

    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        await (await running.connect()).result("task.add", **add("a", key="k"))
    monkeypatch.setattr(log, "find_key", fail)
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert (await peer.refusal("task.add", **add("a", key="k")))["kind"] == "outcome_unknown"


async def test_a_key_with_other_content_is_refused_now_and_after_a_restart(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("a", key="k"))
        refused = await peer.refusal("task.add", **add("b", key="k"))
        assert (refused["kind"], refused["code"], refused["key"]) == ("key_conflict", -32007, "k")
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert (await peer.refusal("task.add", **add("b", key="k")))["kind"] == "key_conflict"
        assert (await peer.refusal("task.delete", conversation=C, task="1", key="k"))["kind"] == "key_conflict"
        assert log.head == 2


async def test_a_refused_call_leaves_its_key_free(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        peer = await running.connect()
        assert (await peer.refusal("task.add", **add("a", parent="9", key="k")))["kind"] == "not_found"
        assert (await peer.result("task.add", **add("b", key="k")))["task"]["title"] == "b"


async def test_a_keyed_call_without_events_is_answered_again(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("a"))
        call = {"conversation": C, "task": "1", "status": "pending", "key": "k"}
        first = await peer.result("task.set_status", **call)
        assert await peer.result("task.set_status", **call) == first and log.head == 2


async def test_keys_belong_to_their_conversation(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("a", key="k"))
        other = {**add("a", key="k"), "conversation": "other"}
        assert (await peer.result("task.add", **other))["seq"] == 4


async def test_a_deletion_is_repeatable_and_frees_the_other_keys(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("a", key="k"))
        token = (await peer.refusal("conversation.delete", conversation=C, key="d"))["token"]
        first = await peer.result("conversation.delete", conversation=C, key="d", confirm=token)
        assert await peer.result("conversation.delete", conversation=C, key="d") == first
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert await peer.result("conversation.delete", conversation=C, key="d") == first
        assert (await peer.result("task.add", **add("other", key="k")))["version"] == 5


async def test_a_repeat_that_needs_a_damaged_history_is_told_so(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("before"))
        await peer.result("task.add", **add("a", key="k"))
    async with engine(tmp_path, log) as running:
        log.damaged[C] = 1
        peer = await running.connect()
        assert (await peer.refusal("task.add", **add("a", key="k")))["kind"] == "damaged"
        assert (await peer.result("task.list", conversation=C))["version"] == 3


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("first", "second"), [("s", C), (C, "s")])
async def test_a_key_is_the_same_by_whichever_name_the_list_is_called(
    tmp_path: Path, restart: bool, first: str, second: str
) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("conversation.attach", conversation=C, session="s")
        answer = await peer.result("task.add", conversation=first, title="a", key="k")
        if not restart:
            assert await peer.result("task.add", conversation=second, title="a", key="k") == answer
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert await peer.result("task.add", conversation=second, title="a", key="k") == answer
        refused = await peer.refusal("task.add", conversation=second, title="b", key="k")
        assert refused["kind"] == "key_conflict"


async def test_a_repeat_does_not_move_a_session_back(tmp_path: Path) -> None:
    log = TouchyLog()
    attach = {"conversation": "one", "session": "s", "key": "k"}
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        first = await peer.result("conversation.attach", **attach)
        await peer.result("conversation.attach", conversation="two", session="s")
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert await peer.result("conversation.attach", **attach) == first
        assert (await peer.result("conversation.get", conversation="s"))["conversation"]["conversation"] == "two"
