import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from punchlist_schemas.methods import METHODS, Method
from punchlist_schemas.params import Mutation
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlist_testing.mirrors import older_daemon
from punchlistd.engine.lists.access import own_id

C = "c"
READS = ("conversation.get", "conversation.presence", "task.list", "message.list")


async def of(peer: Peer, name: str) -> str:
    return (await peer.result("conversation.get", conversation=name))["conversation"]["conversation"]


async def test_another_users_conversation_is_not_found(running: Engine, log: TouchyLog) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    await alice.result("task.add", conversation=C, title="a")
    head = log.head
    calls: list[tuple[str, dict[str, Any]]] = [
        *((method, {}) for method in READS),
        ("task.list", {"at_version": 1}),
        ("task.get", {"task": "1"}),
        ("event.read", {"after": 0}),
        ("event.wait", {"after": 0, "timeout_ms": 1000}),
        ("event.subscribe", {}),
        ("task.add", {"title": "b"}),
        ("task.delete", {"task": "1"}),
        ("list.clear", {}),
        ("list.undo", {}),
        ("conversation.open", {}),
        ("conversation.delete", {}),
        ("conversation.attach", {"session": "s"}),
        ("message.append", {"role": "user", "content": 1}),
    ]
    for method, params in calls:
        refused = await bob.refusal(method, conversation=C, **params)
        assert (refused["kind"], refused["what"], refused["id"]) == ("not_found", "conversation", C), method
    assert log.head == head
    assert (await bob.result("conversation.list"))["conversations"] == []
    assert (await bob.result("event.read", after=0))["events"] == []
    assert len((await alice.result("conversation.list"))["conversations"]) == 1
    assert len((await (await running.connect()).result("event.read", after=0))["events"]) == 2


async def test_bound_connection_opens_conversations_for_its_user(running: Engine) -> None:
    alice = await running.connect(user="alice")
    opened = await alice.result("conversation.open", conversation=C)
    assert opened["conversation"]["user"] == "alice"


async def test_calls_outside_the_scope_are_forbidden(running: Engine) -> None:
    alice = await running.connect(user="alice")
    for method, params in [
        ("conversation.open", {"conversation": C, "user": "bob"}),
        ("daemon.hello", {"user": "bob"}),
        ("daemon.shutdown", {}),
    ]:
        refused = await alice.refusal(method, **params)
        assert (refused["kind"], refused["code"]) == ("forbidden", -32011), method
    late = await running.connect()
    await late.result("event.subscribe")
    assert (await late.refusal("daemon.hello", user="alice"))["kind"] == "forbidden"


# The same response for hidden and missing lists


OF_ALL: dict[str, dict[str, Any]] = {
    "daemon.shutdown": {},
    "daemon.backup": {"path": "/tmp/x"},
    "space.add": {"space": "team", "urls": ["tls://a.example.org"]},
    "space.list": {},
    "space.remove": {"space": "team"},
    "space.repair": {"space": "team", "conversation": "bob-list"},
    "list.share": {"conversation": "bob-list", "space": "team"},
    "list.join": {"conversation": "bob-list", "space": "team"},
    "list.leave": {"conversation": "bob-list"},
}
"""Daemon-wide methods with params; a bound connection may call none of them."""


def named_methods() -> list[Method]:
    named = (method for method in METHODS.values() if "conversation" in method.params.__struct_fields__)
    return [method for method in named if method.name not in OF_ALL]


REQUIRED: dict[str, Any] = {
    **{"task": "1", "title": "t", "tasks": [{"title": "t"}], "status": "completed", "owner": "o", "session": "new"},
    **{"message": "m1", "key": "bobs-key"},
    **{"role": "user", "content": 1, "after": 0, "timeout_ms": 0, "text": "n", "query": "t", "from_at": 1, "to_at": 1},
    "changes": [{"method": "task.edit", "task": "1", "title": "t"}],
}
"""A value for each required member."""


def least(method: Method) -> dict[str, Any]:
    """Return the minimum params of a method. A table adds those of methods with alternative members."""
    fields = msgspec.structs.fields(method.params)
    found = {field.name: REQUIRED[field.name] for field in fields if field.required and field.name != "conversation"}
    return found | {
        "task.delete": {"task": "1"},
        "task.move": {"to_end": True},
        "message.append": {"message": "m2"},
        "task.search": {"query": "secret"},
    }.get(method.name, {})


async def bobs(running: Engine) -> Peer:
    """Create bob's list, with a claimed task, a message and a session. Return bob's connection."""
    bob = await running.connect(user="bob")
    await bob.result("task.add", conversation="bob-list", title="secret", key="bobs-key")
    await bob.result("task.claim", conversation="bob-list", owner="bob", key="claim")
    await bob.result("message.append", conversation="bob-list", role="user", content="secret", message="m1")
    await bob.result("conversation.attach", conversation="bob-list", session="bob-session")
    return bob


def told(answer: Any, name: str) -> str:
    """Return a response without its id, in which NAME replaces `name`, and 0 replaces every number."""
    text = msgspec.json.encode({key: value for key, value in answer.items() if key != "id"}).decode()
    return re.sub(r"\d+", "0", text.replace(name, "NAME"))


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("method", named_methods(), ids=lambda method: method.name)
async def test_other_users_lists_look_nonexistent(running: Engine, method: Method, indexed: bool) -> None:
    bob, alice = await bobs(running), await running.connect(user="alice")
    if indexed:
        await bob.result("conversation.list")
        for name in [*running.conversations.loaded]:
            running.conversations.drop(name)
    params = least(method)
    if issubclass(method.params, Mutation):
        params["key"] = "bobs-key"
    head = running.log.head
    foreign = await alice.call(method.name, conversation="bob-list", **params)
    assert foreign["error"]["data"] == {"kind": "not_found", "what": "conversation", "id": "bob-list"}
    assert running.log.head == head
    assert not indexed or "bob-list" not in running.conversations.loaded, (
        "loading the list would reveal its size by the time it takes"
    )
    never = await alice.call(method.name, conversation="never", **params)
    if "error" in never:
        assert told(foreign, "bob-list") == told(never, "never")
    by_session = await alice.call(method.name, conversation="bob-session", **params)
    assert told(by_session, "bob-session") == told(never, "never")
    assert (await bob.result("task.list", conversation="bob-session"))["tasks"][0]["title"] == "secret"
    assert (await of(bob, "bob-session")) == "bob-list"


async def test_key_of_another_user_is_ignored(running: Engine) -> None:
    await bobs(running)
    alice = await running.connect(user="alice")
    for title in ("secret", "other"):
        refused = await alice.refusal("task.add", conversation="bob-list", title=title, key="bobs-key")
        assert (refused["kind"], refused["id"]) == ("not_found", "bob-list")


async def test_claim_repeated_by_another_user_moves_no_lease(running: Engine) -> None:
    bob = await bobs(running)
    alice = await running.connect(user="alice")
    refused = await alice.refusal("task.claim", conversation="bob-list", owner="bob", key="claim")
    assert refused["kind"] == "not_found"
    await bob.result("task.set_status", conversation="bob-list", task="1", status="completed")


async def test_waiting_claim_ends_when_list_changes_user(running: Engine) -> None:
    alice, root = await running.connect(user="alice"), await running.connect()
    await alice.result("conversation.open", conversation=C)
    alice.send("task.claim", {"conversation": C, "owner": "a", "wait_ms": 60_000}, id=1)
    await until(lambda: len(running.claims.waiting))
    token = (await root.refusal("conversation.delete", conversation=C))["token"]
    await root.result("conversation.delete", conversation=C, confirm=token)
    await root.result("conversation.open", conversation=C, user="bob")
    await root.result("task.add", conversation=C, title="t")
    assert (await alice.answer(1))["error"]["data"]["kind"] == "not_found"
    assert not running.claims.waiting


async def test_list_opened_by_another_in_batch_is_hidden(running: Engine, log: TouchyLog) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    gate = log.hold()
    await (await running.connect()).quiet()
    alice.send("task.add", {"conversation": C, "title": "a"}, id=1)
    bob.send("task.add", {"conversation": C, "title": "b"}, id=1)
    gate.open()
    answers = [await alice.answer(1), await bob.answer(1)]
    assert sorted("error" in answer for answer in answers) == [False, True]


async def test_cursor_of_another_user_reveals_nothing(running: Engine) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    for name in ("b1", "b2"):
        await bob.result("task.add", conversation=name, title="secret")
    cursor = (await bob.result("conversation.list", limit=1))["next_cursor"]
    assert (await alice.result("conversation.list", cursor=cursor))["conversations"] == []


async def test_daemon_wide_calls_are_forbidden_to_users(running: Engine) -> None:
    alice = await running.connect(user="alice")
    await bobs(running)
    for method, params in OF_ALL.items():
        refused = await alice.refusal(method, **params)
        assert (refused["kind"], refused["what"]) == ("forbidden", "daemon")


async def test_users_conversations_are_current_despite_the_index(running: Engine, log: TouchyLog) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    for name in ("one", "two"):
        await alice.result("task.add", conversation=name, title="x")
    await running.maintenance.refresh()
    await alice.result("task.add", conversation="new", title="x")
    await bob.result("task.add", conversation="his", title="x")
    running.conversations.loaded["one"].state.user = "bob"
    assert await log.names("alice") == ["one", "two"]
    assert await running.access.names("alice") == {"two", "new"}
    assert await running.access.names("bob") == {"one", "his"}


@pytest.mark.parametrize("kill", [False, True])
async def test_returning_user_learns_that_a_list_was_deleted(tmp_path: Path, kill: bool) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, kill=kill) as running:
        bob = await bobs(running)
        position = log.head
        token = (await bob.refusal("conversation.delete", conversation="bob-list"))["token"]
        await bob.result("conversation.delete", conversation="bob-list", confirm=token)
    async with engine(tmp_path, log) as running:
        bob, alice = await running.connect(user="bob"), await running.connect(user="alice")
        for named in ({}, {"conversation": "bob-list"}):
            events = (await bob.result("event.read", after=position, **named))["events"]
            assert [event["event"]["type"] for event in events] == ["ConversationDeleted"]
            assert (await alice.result("event.read", after=0, **named))["events"] == []
            await bob.result("event.subscribe", after=position, **named)
            assert (await bob.events(1))[0]["event"]["type"] == "ConversationDeleted"
        await alice.result("event.subscribe", after=0)
        await alice.quiet()


# Sessions of each user


async def test_each_user_has_separate_sessions(running: Engine) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    await alice.result("conversation.attach", conversation="hers", session="s")
    await bob.result("conversation.attach", conversation="his", session="s")
    assert [await of(alice, "s"), await of(bob, "s")] == ["hers", "his"]
    await bob.result("conversation.detach", conversation="his", session="s")
    assert [await of(alice, "s"), await of(bob, "his")] == ["hers", "his"]
    assert (await bob.result("task.list", conversation="s"))["tasks"] == []


async def test_session_does_not_block_a_list_name(running: Engine) -> None:
    alice, bob = await running.connect(user="alice"), await running.connect(user="bob")
    await bob.result("task.add", conversation="bob-list", title="secret")
    for session in ("bob-next", "bob-list"):
        await alice.result("conversation.attach", conversation="hers", session=session)
        assert await of(alice, session) == "hers"
    await bob.result("task.add", conversation="bob-next", title="his")
    assert [await of(bob, "bob-next"), await of(bob, "bob-list")] == ["bob-next", "bob-list"]
    assert len((await bob.result("task.list", conversation="bob-list"))["tasks"]) == 1


async def test_unbound_connection_finds_users_sessions(running: Engine) -> None:
    bob, root = await running.connect(user="bob"), await running.connect()
    await bob.result("conversation.attach", conversation="his", session="s")
    assert await of(root, "s") == "his"
    await root.result("conversation.attach", conversation="plain", session="s")
    assert [await of(root, "s"), await of(bob, "s")] == ["plain", "his"]
    await root.result("conversation.attach", conversation="his", session="s")
    assert [await of(root, "s"), await of(bob, "s")] == ["his", "his"]


@pytest.mark.parametrize("kill", [False, True])
async def test_equal_session_names_are_found_after_a_restart(tmp_path: Path, kill: bool) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, kill=kill) as running:
        for user, name in (("alice", "hers"), ("bob", "his")):
            await (await running.connect(user=user)).result("conversation.attach", conversation=name, session="s")
    async with engine(tmp_path, log) as running:
        for user, name in (("bob", "his"), ("alice", "hers"), ("carol", "s")):
            peer = await running.connect(user=user)
            await peer.result("conversation.open", conversation="s")
            assert await of(peer, "s") == name, user


# Private lists of each user


async def test_two_users_may_use_the_same_list_name(running: Engine) -> None:
    alice, bob, root = await running.connect(user="alice"), await running.connect(user="bob"), await running.connect()
    await root.result("task.add", conversation="default", title="nobody's")
    for name in ("default", "my:todos"):
        for peer, title in ((alice, "hers"), (bob, "his")):
            assert (await peer.result("task.list", conversation=name))["tasks"] == []
            await peer.result("task.add", conversation=name, title=title)
            assert [task["title"] for task in (await peer.result("task.list", conversation=name))["tasks"]] == [title]
    assert await of(alice, "my:default") == await of(alice, "default") == await of(alice, "of:alice:default")
    ids = {row["conversation"] for row in (await root.result("conversation.list"))["conversations"]}
    assert ids == {"default", *(f"of:{user}:{name}" for user in ("alice", "bob") for name in ("default", "todos"))}
    assert (await root.result("task.list", conversation="of:bob:todos"))["tasks"][0]["title"] == "his"


async def test_private_lists_can_be_neither_taken_nor_probed(running: Engine) -> None:
    alice, bob, root = await running.connect(user="alice"), await running.connect(user="bob"), await running.connect()
    await root.result("task.list", conversation="of:bob:never")
    await bob.result("task.add", conversation="my:todos", title="his")
    for name in ("of:bob:todos", "of:bob:never", "of:carol:x", "of:bob", "of:"):
        for method, params in [("task.list", {}), ("task.add", {"title": "x"}), ("conversation.open", {})]:
            refused = await alice.refusal(method, conversation=name, **params)
            assert (refused["kind"], refused["id"]) == ("not_found", name)


async def test_older_list_under_the_bare_name_is_kept(running: Engine) -> None:
    alice, bob, root = await running.connect(user="alice"), await running.connect(user="bob"), await running.connect()
    await root.result("conversation.open", conversation="default", user="alice")
    await alice.result("task.add", conversation="default", title="old")
    assert await of(alice, "my:default") == "default"
    await bob.result("task.add", conversation="default", title="new")
    assert await of(bob, "default") == "of:bob:default"


@pytest.mark.parametrize("user", ["../..", "a b", "é", "\x1b[2J", "x-1", "A" * 128, "of:bob", "a:b", "\u202e"])
async def test_hostile_user_names_get_private_lists(running: Engine, user: str) -> None:
    hostile, bob = await running.connect(user=user), await running.connect(user="bob")
    await bob.result("task.add", conversation="default", title="his")
    await hostile.result("task.add", conversation="default", title="hostile")
    assert [task["title"] for task in (await hostile.result("task.list", conversation="default"))["tasks"]] == [
        "hostile"
    ]
    assert re.fullmatch(r"of:x-[0-9a-f]{32}:default", await of(hostile, "default"))


def test_different_users_and_names_have_different_ids() -> None:
    users = (
        "a",
        "A",
        "a.b",
        "a:b",
        "x-a",
        "é",
        "e\u0301",
        "",
        " ",
        "a" * 32,
        "a" * 33,
        "x-" + "0" * 32,
        "\ud800",
        "\udc00",
    )
    names = ("a", "a:b", "b", "default")
    assert len({own_id(user, name) for user in users for name in names}) == len(users) * len(names)


@pytest.mark.parametrize("name", ["my:", "my:" + "n" * 125])
async def test_private_list_names_are_limited(running: Engine, name: str) -> None:
    alice = await running.connect(user="alice")
    refused = await alice.refusal("task.add", conversation=name, title="x")
    assert (refused["kind"], refused["field"]) == ("invalid_params", "conversation")


async def test_private_list_is_not_a_session(running: Engine) -> None:
    alice = await running.connect(user="alice")
    for session in ("default", "my:todos"):
        refused = await alice.refusal("conversation.attach", conversation=C, session=session)
        assert (refused["kind"], refused["field"]) == ("invalid_params", "session")


# sessions


async def test_session_resolves_wherever_a_conversation_does(running: Engine, peer: Peer) -> None:
    await peer.result("conversation.attach", conversation=C, session="s")
    await peer.result("task.add", conversation="s", title="a")
    for method in READS:
        await peer.result(method, conversation="s")
    assert (await peer.result("task.get", conversation="s", task="1"))["task"]["title"] == "a"
    assert len((await peer.result("task.list", conversation="s", at_version=3))["tasks"]) == 1
    assert len((await peer.result("event.read", conversation="s", after=0))["events"]) == 3
    await peer.result("event.subscribe", conversation="s")
    await peer.result("task.set_status", conversation=C, task="1", status="completed")
    assert (await peer.events(1))[0]["conversation"] == C


async def test_session_moves_between_lists(running: Engine, peer: Peer) -> None:
    await peer.result("conversation.attach", conversation="one", session="s")
    await peer.result("conversation.attach", conversation="two", session="s")
    assert await of(peer, "s") == "two"
    one = (await peer.result("conversation.get", conversation="one"))["conversation"]
    assert one.get("sessions", []) == [] and one["version"] == 3, "the log records that the session left"
    await peer.result("conversation.detach", conversation="s", session="s")
    assert await of(peer, "s") == "s"


@pytest.mark.parametrize("refused", [{"expect_version": 9}, {"key": "used"}])
async def test_rejected_attach_moves_no_session(running: Engine, peer: Peer, refused: dict[str, Any]) -> None:
    await peer.result("task.add", conversation="two", title="a", key="used")
    await peer.result("conversation.attach", conversation="one", session="s")
    await peer.refusal("conversation.attach", conversation="two", session="s", **refused)
    assert await of(peer, "s") == "one"
    assert (await peer.result("conversation.get", conversation="one"))["conversation"]["version"] == 2


async def test_conversation_is_not_a_session(running: Engine, peer: Peer) -> None:
    await peer.result("task.add", conversation="real", title="a")
    refused = await peer.refusal("conversation.attach", conversation=C, session="real")
    assert (refused["kind"], refused["field"]) == ("invalid_params", "session")


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("recover", [False, True])
async def test_only_attached_sessions_are_found_after_a_restart(tmp_path: Path, kill: bool, recover: bool) -> None:
    log = TouchyLog()
    async with engine(tmp_path, log, kill=kill) as running:
        peer = await running.connect()
        for session in ("stays", "leaves", "moves"):
            await peer.result("conversation.attach", conversation=C, session=session)
        await peer.result("conversation.list")  # listing brings the index up to date
        await peer.result("conversation.detach", conversation=C, session="leaves")
        await peer.result("conversation.attach", conversation="other", session="moves")
        await peer.result("conversation.attach", conversation="other", session="new")
    async with engine(tmp_path, log, recover=recover) as running:
        peer = await running.connect()
        found = [await of(peer, name) for name in ("stays", "leaves", "moves", "new")]
        assert found == [C, "leaves", "other", "other"]


async def test_detached_session_is_gone_immediately(running: Engine, peer: Peer) -> None:
    await peer.result("conversation.attach", conversation=C, session="s")
    await peer.result("conversation.list")
    await peer.result("conversation.detach", conversation=C, session="s")
    await peer.result("task.add", conversation="s", title="own")
    assert await of(peer, "s") == "s"
    assert (await peer.result("task.list", conversation=C))["tasks"] == []


GUID = "0f9619ff-8b86-d011-b42d-00c04fc964ff"
SPELLINGS = (
    GUID,
    GUID.replace("-", ""),
    GUID.upper(),
    GUID.replace("-", "").upper(),
    f"{{{GUID}}}",
    f"{{{GUID.upper()}}}",
)


@pytest.mark.parametrize("first", SPELLINGS)
@pytest.mark.parametrize("user", [None, "ann"])
async def test_all_spellings_of_a_guid_name_one_list(running: Engine, user: str | None, first: str) -> None:
    peer = await running.connect(user=user)
    await peer.result("task.add", conversation=first, title=first)
    for spelling in SPELLINGS:
        assert await of(peer, spelling) == GUID
        await peer.result("task.add", conversation=spelling, title=spelling)
    listed = await peer.result("task.list", conversation=SPELLINGS[1])
    assert [task["title"] for task in listed["tasks"]] == [first, *SPELLINGS]
    assert len((await peer.result("conversation.list"))["conversations"]) == 1


@pytest.mark.parametrize("user", [None, "ann"])
async def test_list_with_an_older_spelling_is_found(user: str | None, tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        peer = await running.connect(user=user)
        digits, upper = SPELLINGS[1:3]
        with older_daemon():
            await peer.result("task.add", conversation=digits, title="before")
        for spelling in SPELLINGS:
            assert await of(peer, spelling) == digits
        with older_daemon():
            await (await running.connect(user=user)).result("task.add", conversation=f"{upper[:-1]}0", title="a")
            await (await running.connect(user=user)).result("task.add", conversation=f"{GUID[:-1]}0", title="b")
        for spelling in (f"{upper[:-1]}0", f"{GUID[:-1]}0"):
            assert await of(peer, spelling) == spelling, "each of two lists is found by its own spelling"


async def test_private_list_has_one_name(running: Engine) -> None:
    ann, bob = await running.connect(user="ann"), await running.connect(user="bob")
    for spelling in SPELLINGS[:4]:
        await ann.result("task.add", conversation=f"my:{spelling}", title="a")
    assert len((await ann.result("conversation.list"))["conversations"]) == 1
    assert await of(ann, f"my:{SPELLINGS[1]}") == own_id("ann", GUID)
    await bob.result("task.add", conversation=GUID, title="of bob")
    for spelling in SPELLINGS:
        assert (await ann.refusal("task.add", conversation=spelling, title="a"))["kind"] == "not_found"


async def test_session_named_by_guid_resolves_to_list(running: Engine) -> None:
    peer = await running.connect()
    session = SPELLINGS[2]
    await peer.result("conversation.open", conversation="plan")
    await peer.result("conversation.attach", conversation="plan", session=session)
    assert await of(peer, session) == "plan"
