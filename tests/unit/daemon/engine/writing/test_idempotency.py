from pathlib import Path
from typing import Any, NoReturn

import pytest

from punchlist_schemas.params import ConversationDelete, ListClear, TaskAdd
from punchlist_testing.engine import Peer, TouchyLog, engine
from punchlistd.engine.writing.idempotency import fingerprint
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
    (
        "list.apply",
        {
            "changes": [
                {"method": "task.add", "title": "x", "ref": "x"},
                {"method": "task.edit", "task": "1", "title": "n", "add_blocked_by": ["x"]},
                {"method": "task.delete", "task": "2"},
            ]
        },
    ),
    ("list.replace", {"tasks": [{"title": "b"}, {"title": "new"}]}),
    ("list.clear", {}),
    ("list.undo", {"count": 2}),
    ("message.append", {"role": "user", "content": {"any": ["thing"]}, "actor": "somebody"}),
    ("conversation.configure", {"title": "T", "settings": {"max_attempts": 3}}),
    ("conversation.attach", {"session": "s"}),
]


@pytest.mark.parametrize(("method", "params"), CALLS, ids=[method for method, _ in CALLS])
async def test_repeated_call_returns_its_first_response(tmp_path: Path, method: str, params: dict[str, Any]) -> None:
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


async def test_repeat_in_the_same_batch_is_done_once(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        peer.write(peer.request("task.add", add("a", key="k"), id=1) * 3)
        answers = [await peer.raw() for _ in range(3)]
        assert len(set(answers)) == 1 and log.head == 2


async def test_repeat_is_found_after_many_other_keys(tmp_path: Path) -> None:
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


async def test_repeat_gets_the_disk_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> NoReturn:
        raise StorageFailed("EIO")

    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        await (await running.connect()).result("task.add", **add("a", key="k"))
    monkeypatch.setattr(log, "find_key", fail)
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert (await peer.refusal("task.add", **add("a", key="k")))["kind"] == "outcome_unknown"


async def test_key_reused_with_other_content_is_rejected(tmp_path: Path) -> None:
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


async def test_rejected_call_leaves_its_key_unused(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        peer = await running.connect()
        assert (await peer.refusal("task.add", **add("a", parent="9", key="k")))["kind"] == "not_found"
        assert (await peer.result("task.add", **add("b", key="k")))["task"]["title"] == "b"


async def test_keyed_call_without_events_is_answered_again(tmp_path: Path) -> None:
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


async def test_deletion_is_repeatable_and_frees_other_keys(tmp_path: Path) -> None:
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


async def test_repeat_over_damaged_history_is_an_error(tmp_path: Path) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("task.add", **add("before"))
        await peer.result("task.add", **add("a", key="k"))
    async with engine(tmp_path, log) as running:
        log.damaged_at[C] = 1
        peer = await running.connect()
        assert (await peer.refusal("task.add", **add("a", key="k")))["kind"] == "damaged"
        assert (await peer.result("task.list", conversation=C))["version"] == 3


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(("first", "second"), [("s", C), (C, "s")])
async def test_key_is_found_by_any_list_name(tmp_path: Path, restart: bool, first: str, second: str) -> None:
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


async def test_repeat_does_not_move_a_session_back(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("restart", [False, True])
async def test_repeat_after_a_moved_session_finds_its_list(tmp_path: Path, restart: bool) -> None:
    log = TouchyLog()
    add_a = {"conversation": "s", "title": "a", "key": "k"}
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        await peer.result("conversation.attach", conversation="one", session="s")
        first = await peer.result("task.add", **add_a)
        for name in ("two", "three", "two"):
            await peer.result("conversation.attach", conversation=name, session="s")
        if not restart:
            assert await peer.result("task.add", **add_a) == first
    async with engine(tmp_path, log) as running:
        peer = await running.connect()
        assert await peer.result("task.add", **add_a) == first
        refused = await peer.refusal("task.add", **{**add_a, "title": "b"})
        assert refused["kind"] == "key_conflict"
        assert (await peer.result("task.add", conversation="s", title="new", key="k2"))["task"]["id"] == "1"
        assert (await peer.result("task.add", conversation="two", title="a", key="k"))["task"]["id"] == "2"
        told = {name: await peer.result("task.list", conversation=name) for name in ("one", "two", "three")}
        titles = {name: [task["title"] for task in one["tasks"]] for name, one in told.items()}
        assert titles == {"one": ["a"], "two": ["new", "a"], "three": []}


async def test_session_reveals_no_key_of_another_user(tmp_path: Path) -> None:
    async with engine(tmp_path, TouchyLog()) as running:
        root, bob = await running.connect(), await running.connect(user="bob")
        await root.result("conversation.attach", conversation="plain", session="s")
        await root.result("task.add", conversation="s", title="a", key="k")
        await bob.result("conversation.open", conversation="his")
        await root.result("conversation.attach", conversation="his", session="s")
        events = (await bob.result("event.read", conversation="his", after=0))["events"]
        assert "plain" not in str(events)
        assert (await bob.result("task.add", conversation="s", title="a", key="k"))["task"]["id"] == "1"
        assert [task["title"] for task in (await bob.result("task.list", conversation="his"))["tasks"]] == ["a"]


ADD = TaskAdd(conversation="c", title="a", key="k")


def test_fingerprint_ignores_key_and_confirmation() -> None:
    assert fingerprint("task.add", ADD) == fingerprint("task.add", TaskAdd(conversation="c", title="a", key="other"))
    asked, confirmed = ListClear(conversation="c", key="k"), ListClear(conversation="c", key="k", confirm="t")
    assert fingerprint("list.clear", asked) == fingerprint("list.clear", confirmed)


def test_fingerprint_ignores_the_order_of_members() -> None:
    one, two = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    first = fingerprint("task.add", TaskAdd(conversation="c", title="a", metadata=one))
    assert first == fingerprint("task.add", TaskAdd(conversation="c", title="a", metadata=two))


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("task.add", TaskAdd(conversation="c", title="b")),
        ("task.add", TaskAdd(conversation="d", title="a")),
        ("task.add", TaskAdd(conversation="c", title="a", expect_version=1)),
        ("task.add", TaskAdd(conversation="c", title="a", actor="x")),
        ("list.clear", ListClear(conversation="c")),
        ("conversation.delete", ConversationDelete(conversation="c")),
    ],
)
def test_other_content_has_another_fingerprint(method: str, params: TaskAdd | ListClear | ConversationDelete) -> None:
    assert fingerprint(method, params) != fingerprint("task.add", ADD)
