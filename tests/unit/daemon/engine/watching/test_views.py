"""The views `rows` and `board`: folded pushes equal the list at every moment, from any resume position."""

import os
from collections.abc import Hashable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from punchlist.calls.cursor import RowsView
from punchlist_schemas import params as p
from punchlist_schemas.methods import METHODS
from punchlist_schemas.results import SubscribeResult
from punchlist_testing.domain import random_call
from punchlist_testing.engine import Engine, Peer, TouchyLog, engine, until
from punchlistd.domain import state
from punchlistd.domain.state import initial_state
from punchlistd.engine.lists.loaded import LoadedConversation
from punchlistd.engine.watching import views

C = "c"
CALLS = int(os.environ.get("CALLS", "150"))
NAMES = {method.params: name for name, method in METHODS.items()}
UNSEEN = {"lease_expires_at": None, "rank": None}
"""Members that readers of rows don't follow because no event changes them, and members that lists omit."""


def plain(task: Any) -> dict[str, Any]:
    return {**msgspec.json.decode(msgspec.json.encode(task)), **UNSEEN}


class Folded:
    """The rows of successive subscriptions, folded by the library's own view."""

    def __init__(self, seed: int = 0) -> None:
        self.view = RowsView()
        self.seq: int | None = None
        self.shown: list[dict[str, Any]] = []
        self.pieces: list[Any] = []
        self.random = Random(seed)

    async def begin(self, running: Engine) -> None:
        self.peer = await running.connect()
        after = {} if self.seq is None else {"after": self.seq}
        answer = await self.peer.result("event.subscribe", conversation=C, view="rows", **after)
        self.view.first(msgspec.convert(answer, SubscribeResult))

    async def upto(self, version: int) -> list[dict[str, Any]]:
        """Receive pushes until the list has this version, and return the list."""
        while True:
            push = (await self.peer.push())["params"]
            self.pieces.append(push)
            for tasks in self.view.items(msgspec.Raw(msgspec.json.encode(push))):
                self.seq = tasks.seq
                self.shown = [plain(task) for task in tasks]
                assert (push["seq"], push.get("more")) == (self.seq, None)
                if tasks.version == version:
                    return self.shown


async def random_step(random: Random, running: Engine, peer: Peer) -> None:
    now = running.conversations.loaded[C].state if C in running.conversations.loaded else initial_state(C)
    params: p.Mutation = random_call(random, now)
    if (kind := random.random()) < 0.12:
        params = p.ListUndo(conversation=C, count=random.randrange(1, 4))
    elif kind < 0.14:
        params = p.ListClear(conversation=C)
    await peer.call(NAMES[type(params)], **msgspec.to_builtins(params))


async def listed(peer: Peer) -> tuple[list[dict[str, Any]], int, int]:
    result = await peer.result("task.list", conversation=C)
    return [plain(task) for task in result["tasks"]], result["version"], result["seq"]


@pytest.mark.parametrize("piece", [700, 24 << 10])
async def test_folded_pushes_equal_the_list_after_random_calls(tmp_path: Path, piece: int) -> None:
    random = Random(seed := int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4)))
    print("seed", seed)
    async with engine(tmp_path, chunk_bytes=piece) as running:
        peer, follower, cut, asked = await running.connect(), Folded(), Folded(), Folded()
        await peer.result("conversation.open", conversation=C)
        await follower.begin(running)
        await follower.upto(1)
        version = 1
        for step in range(CALLS):
            await random_step(random, running, peer)
            tasks, now, seq = await listed(peer)
            if now != version:
                assert await follower.upto(now) == tasks, step
            version = now
            if random.random() < 0.1:  # a reader that reconnects at times, and sometimes leaves in the middle of a push
                await cut.begin(running)
                if random.random() < 0.5:
                    assert await cut.upto(now) == tasks, step
                else:
                    push = (await cut.peer.push())["params"]
                    for whole in cut.view.items(msgspec.Raw(msgspec.json.encode(push))):
                        cut.seq = whole.seq
                cut.peer.close()
            if random.random() < 0.1:  # a reader that only polls
                answer = await peer.result("task.list", conversation=C, since=asked.seq or 0)
                push = {"subscription": "", "conversation": C, **answer}
                (whole,) = asked.view.items(msgspec.Raw(msgspec.json.encode(push)))
                asked.seq = whole.seq
                assert [plain(task) for task in whole] == tasks, step
                assert whole.seq == seq


async def test_long_list_in_pieces_includes_changes_between(
    tmp_path: Path,
) -> None:
    async with engine(tmp_path, chunk_bytes=2_000) as running:
        peer, follower = await running.connect(), Folded()
        await peer.result("task.add_many", conversation=C, tasks=[{"title": "x" * 100}] * 400)
        await follower.begin(running)
        follower.peer.stop_reading()
        for number in range(1, 50):
            await peer.result("task.set_status", conversation=C, task=str(number), status="in_progress")
        follower.peer.resume_reading()
        tasks, version, _ = await listed(peer)
        assert await follower.upto(version) == tasks
        assert max(len(msgspec.json.encode(piece["rows"])) for piece in follower.pieces) < 2_500
        assert all(piece["seq"] == 0 for piece in follower.pieces if "more" in piece), (
            "an interrupted reader starts again"
        )


async def test_resume_gets_changes_or_cleared_list(running: Engine, peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "x"}] * 20)
    before = (await listed(peer))[2]
    await peer.result("task.set_status", conversation=C, task="3", status="completed")
    await peer.result("task.delete", conversation=C, task="7")
    found = await peer.result("task.list", conversation=C, since=before)
    assert ([row["id"] for row in found["rows"]], found["gone"], found.get("reset")) == (["3"], ["7"], None)
    assert found["tasks"] == [] and found["total"] == 19
    await peer.result("list.clear", conversation=C)
    await peer.result("task.add", conversation=C, title="new")
    found = await peer.result("task.list", conversation=C, since=before)
    assert (found["reset"], [row["title"] for row in found["rows"]]) == (True, ["new"])


async def test_recreated_list_is_pushed_whole(running: Engine, peer: Peer) -> None:
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "old"}] * 3)
    follower = Folded()
    await follower.begin(running)
    await follower.upto(4)
    follower.peer.close()
    token = (await peer.refusal("conversation.delete", conversation=C))["token"]
    await peer.result("conversation.delete", conversation=C, confirm=token)
    running.conversations.drop_empty(C)
    await peer.result("task.add", conversation=C, title="new")
    await follower.begin(running)
    tasks, version, _ = await listed(peer)
    assert await follower.upto(version) == tasks
    assert [task["title"] for task in tasks] == ["new"]


async def test_too_many_changes_push_the_whole_list(
    running: Engine, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MAX_CHANGES", kept := 20)
    await peer.result("task.add_many", conversation=C, tasks=[{"title": "x"}] * (kept + 10))
    early = (await listed(peer))[2]
    await peer.result("task.delete", conversation=C, task="1")
    late = (await listed(peer))[2]
    await peer.result("task.delete", conversation=C, tasks=[str(number) for number in range(2, kept + 2)])
    found = await peer.result("task.list", conversation=C, since=early)
    assert (found["reset"], len(found["rows"])) == (True, 9)
    found = await peer.result("task.list", conversation=C, since=late + 1)
    assert (found.get("reset"), len(found["gone"])) == (None, kept - 1)
    changes = running.conversations.loaded[C].state.changes
    assert len(changes) == kept, "the remembered changes are bounded"
    await peer.result("task.delete", conversation=C, task=str(kept + 2))
    found = await peer.result("task.list", conversation=C, since=late + 1)
    assert (found["reset"], len(found["rows"])) == (True, 8)


async def test_change_of_many_rows_is_pushed_whole(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """One event changes more rows than the engine remembers, so readers can't resume from the position before it."""
    monkeypatch.setattr(state, "MAX_CHANGES", 5)
    await peer.result("task.add", conversation=C, title="first")
    for number in range(8):
        await peer.result("task.add", conversation=C, title=str(number), blocked_by=["1"])
    before = (await listed(peer))[2]
    await peer.result("task.set_status", conversation=C, task="1", status="completed")
    found = await peer.result("task.list", conversation=C, since=before)
    assert (found["reset"], len(found["rows"])) == (True, 9)


async def test_changes_since_reject_filters_and_foreign_positions(peer: Peer) -> None:
    await peer.result("task.add", conversation=C, title="a")
    for wrong in ({"status": "pending"}, {"at_version": 1}, {"limit": 1}, {"fields": ["title"]}):
        refused = await peer.refusal("task.list", conversation=C, since=0, **wrong)
        assert (refused["kind"], refused["field"]) == ("invalid_params", "since")
    assert (await peer.refusal("task.list", conversation=C, since=99))["kind"] == "wrong_epoch"
    assert (await peer.refusal("task.list", conversation=C, since=1, epoch="other"))["kind"] == "wrong_epoch"


async def test_rows_cover_one_conversation_and_the_board_all(peer: Peer) -> None:
    for wrong in ({"view": "rows"}, {"view": "board", "conversation": C}):
        refused = await peer.refusal("event.subscribe", **wrong)
        assert (refused["kind"], refused["field"]) == ("invalid_params", "conversation")


async def test_board_shows_changed_lists_with_current_work(running: Engine, peer: Peer) -> None:
    watching = await running.connect()
    await watching.result("event.subscribe", view="board")
    await peer.result("task.add", conversation="a", title="write", active_form="Writing", owner="ann")
    await peer.result("task.set_status", conversation="a", task="1", status="in_progress")
    await until(lambda: running.subscriptions.head == 3)
    while not (card := (await watching.push())["params"]["card"]).get("running"):
        pass
    (running_now,) = card["running"]
    assert running_now.pop("since") > 0
    assert running_now == {"id": "1", "title": "write", "active_form": "Writing", "owner": "ann"}
    assert (card["conversation"], card["counts"]["in_progress"]) == ("a", 1)
    token = (await peer.refusal("conversation.delete", conversation="a"))["token"]
    await peer.result("conversation.delete", conversation="a", confirm=token)
    assert (await watching.push())["params"]["gone"] is True


async def test_resumed_board_misses_no_list(running: Engine, peer: Peer) -> None:
    names = [f"list-{number}" for number in range(30)]
    for name in names:
        await peer.result("task.add", conversation=name, title="x")
    position, seen = 0, set[str]()
    for taken in range(1, 12):
        reader = await running.connect()
        await reader.result("event.subscribe", view="board", after=position)
        for _ in range(taken * 3):
            push = (await reader.push())["params"]
            seen.add(push["card"]["conversation"])
            position = push["seq"]
            if position == running.subscriptions.head:
                break
        reader.close()
        if position == running.subscriptions.head:
            break
    assert seen == set(names)
    assert position == running.subscriptions.head


async def test_board_shows_users_only_their_lists(running: Engine, log: TouchyLog) -> None:
    theirs, other = await running.connect(), await running.connect()
    for reader, user in ((theirs, "ann"), (other, "bob")):
        await reader.result("daemon.hello", user=user)
    await theirs.result("event.subscribe", view="board")
    await other.result("task.add", conversation="of-bob", title="x")
    await theirs.result("task.add", conversation="of-ann", title="x")
    assert (await theirs.push())["params"]["card"]["conversation"] == "of-ann"
    await theirs.quiet()


async def test_board_hides_chat_threads(running: Engine, peer: Peer) -> None:
    watching = await running.connect()
    await watching.result("event.subscribe", view="board")
    await peer.result("conversation.open", conversation="chat-1", kind="chat")
    await peer.result("task.add", conversation="a", title="write")
    assert (await watching.push())["params"]["card"]["conversation"] == "a"
    listed = await peer.result("conversation.list")
    assert [one["conversation"] for one in listed["conversations"]] == ["a"]
    chats = (await peer.result("conversation.list", kind="chat"))["conversations"]
    assert [(one["conversation"], one["kind"]) for one in chats] == [("chat-1", "chat")]
    assert len((await peer.result("conversation.list", kind="any"))["conversations"]) == 2


async def test_equal_followers_share_one_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[list[str]] = []
    encoded = views.encode_rows

    def noted(opened: LoadedConversation, ids: list[str]) -> list[bytes]:
        made.append(ids)
        return encoded(opened, ids)

    async with engine(tmp_path) as running:
        writer = await running.connect()
        await writer.result("task.add", conversation=C, title="a")
        peers = [await running.connect() for _ in range(5)]
        for view, place in (("rows", {"conversation": C}), ("board", {})):
            for peer in peers:
                await peer.result("event.subscribe", view=view, **place)
        for peer in peers[1:]:
            await peer.result("event.subscribe", view="rows", conversation=C)  # a second subscription with another id
        for peer in (*peers, *peers[1:]):
            await peer.push()  # each subscription to rows starts with the whole list
        monkeypatch.setattr(views, "encode_rows", noted)
        await writer.result("task.edit", conversation=C, task="1", title="b")
        told = [[(await peer.push())["params"] for _ in range(2 + (peer is not peers[0]))] for peer in peers]
        assert made == [["1"]]
        assert [[one.pop("subscription") for one in each] for each in told] == [["1", "2"]] + [["1", "3", "2"]] * 4
        assert all(one in told[0] for each in told for one in each)
        assert told[0][0]["rows"][0]["title"] == "b" and told[0][1]["card"]["version"] == 3


async def test_followers_get_what_each_lacks(tmp_path: Path) -> None:
    async with engine(tmp_path) as running:
        writer = await running.connect()
        for title in ("a", "b", "c"):
            await writer.result("task.add", conversation=C, title=title)
        opened, same = running.conversations.loaded[C], dict[Hashable, bytes]()
        lacks: list[list[str]] = []
        for after in (3, 2, 3, None):
            push, more = views.Rows(after, 1 << 16).push("7", opened, 0, same)
            assert isinstance(push, bytes) and not more
            lacks.append(sorted(row["id"] for row in msgspec.json.decode(push)["params"]["rows"]))
        assert lacks == [["3"], ["2", "3"], ["3"], ["1", "2", "3"]]
