"""Posts that no daemon can follow, end to end: real daemons and servers, with NATS and PostgreSQL."""

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Protocol

import anyio
import msgspec
import pytest
from nats.aio.client import Client

from punchlist import errors
from punchlist.clients.aio import AsyncClient
from punchlist_schemas.events import AddedTask, ConversationOpened, TaskAdded
from punchlist_testing.nats_server import NatsServer, needs_server
from punchlist_testing.postgres_server import Members, PostgresServer, needs_postgres
from punchlist_testing.shared_lists import PATIENCE_S, Machines, client, follows
from punchlistd.domain.commands import Decision
from punchlistd.engine.calls import Step
from punchlistd.replication.adapters.nats.link import Answer
from punchlistd.replication.adapters.nats.stream import read_post
from punchlistd.replication.adapters.postgres.log import read_row
from punchlistd.replication.port import Garbled, Posted
from punchlistd.replication.posts.posts import check_of, head_of, seal
from punchlistd.replication.posts.repair import find_bad

EXPECTED = b"Nats-Expected-Last-Subject-Sequence: "


class Engine(Protocol):
    """A space whose members may post anything."""

    space: str
    kinds: tuple[str, ...]

    async def add(self, one: AsyncClient, name: str) -> None:
        """Add a machine to the space; `kim` is a keeper."""
        ...

    async def post(self, name: str, kind: str) -> None:
        """Post to a list as a member, without a daemon."""
        ...

    def end(self) -> None: ...


class OnNats:
    kinds = (
        "no header",
        "unreadable",
        "negative",
        "huge",
        "later",
        "replayed",
        "garbage",
        "status",
        "no text",
        "empty",
    )

    def __init__(self, directory: Path) -> None:
        self.space = f"s{os.urandom(4).hex()}"
        self._server = NatsServer(directory)
        self._server.start()

    async def add(self, one: AsyncClient, name: str) -> None:
        await one.add_space(self.space, [self._server.url])

    async def post(self, name: str, kind: str) -> None:
        nats = Client()
        await nats.connect(self._server.url)
        subject = f"pl.{self.space}.log.{name}"
        stream = f"$JS.API.DIRECT.GET.punch-{self.space}"
        first = await nats.request(stream, json.dumps({"seq": 1, "next_by_subj": subject}).encode())
        found = await nats.request(stream, json.dumps({"last_by_subj": subject}).encode())
        last = (found.headers or {})["Nats-Sequence"].encode()
        right = EXPECTED + last + b"\r\n"
        head = {
            "no header": b"\r\n",
            "unreadable": b"\r\n" + right + EXPECTED + b"last\r\n",
            "negative": b"\r\n" + right + EXPECTED + b"-1\r\n",
            "huge": b"\r\n" + right + EXPECTED + b"9" * 40 + b"\r\n",
            "later": b"\r\n" + right + EXPECTED + b"999999\r\n",
            "status": b"\r\nStatus: 404\r\n" + right,
            "no text": b" \xff\xfe\r\n",
        }.get(kind, b"\r\n" + right)
        body = {"replayed": first.data, "no header": found.data, "empty": b""}.get(kind, b"\xff{garbage")
        head = b"NATS/1.0" + head + b"\r\n"
        inbox = nats.new_inbox()
        stored = await nats.subscribe(inbox)  # pyright: ignore[reportUnknownMemberType]
        line = f"HPUB {subject} {inbox} {len(head)} {len(head) + len(body)}\r\n".encode()
        await nats._send_command(line + head + body + b"\r\n")  # pyright: ignore[reportPrivateUsage]
        assert "error" not in json.loads((await stored.next_msg(PATIENCE_S)).data)
        await nats.close()

    def end(self) -> None:
        self._server.kill()


class OnPostgres:
    kinds = ("replayed", "garbage", "empty", "huge", "too large", "null", "nonce")

    def __init__(self, directory: Path) -> None:
        self._server = PostgresServer()
        self._server.start()
        self.space = f"s{os.urandom(4).hex()}"
        self._members = Members(directory, self._server, self.space, ann="member", bob="member", kim="keeper")

    async def add(self, one: AsyncClient, name: str) -> None:
        await one.add_space(self.space, [self._members.url(name)], creds=self._members.creds(name))

    async def post(self, name: str, kind: str) -> None:
        table = f'"punch-{self.space}".post'
        after = f"(SELECT max(n) + 1 FROM {table} WHERE list = '{name}')"
        n, nonce, body = {
            "replayed": (after, "'x'", f"(SELECT body FROM {table} WHERE list = '{name}' ORDER BY n LIMIT 1)"),
            "empty": (after, "'x'", "''"),
            "huge": (str(2**63 - 1), "'x'", "'garbage'"),
            "too large": (after, "'x'", f"decode(repeat('00', {9 << 20}), 'hex')"),
            "null": (after, "'x'", "NULL"),
            "nonce": (after, "NULL", "'garbage'"),
        }.get(kind, (after, "repeat('x', 1000)", "'garbage'"))
        await self.insert(name, n, nonce, body)

    async def insert(self, name: str, n: str, nonce: str, body: str) -> None:
        """Insert a row, and send a notification that announces a post that doesn't exist."""
        table = f'"punch-{self.space}".post'
        loose = "".join(f"ALTER TABLE {table} ALTER {column} DROP NOT NULL;" for column in ("nonce", "body"))
        notice = json.dumps({"what": "post", "by": "eve_1", "list": name, "n": 2**63 - 1})
        statement = f"INSERT INTO {table} VALUES ('{name}', {n}, {nonce}, {body})"
        await anyio.to_thread.run_sync(
            self._server.sql, f"{loose}{statement};SELECT pg_notify('punch-{self.space}', '{notice}')"
        )

    def end(self) -> None:
        self._server.end()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(OnNats, marks=needs_server, id="nats"),
        pytest.param(OnPostgres, marks=needs_postgres, id="postgres"),
    ],
)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Engine]:
    running = request.param(tmp_path_factory.mktemp("engine"))
    yield running
    running.end()


@pytest.fixture
def machines(tmp_path: Path) -> Generator[Machines]:
    with Machines(tmp_path, measured=True).ending() as running:
        yield running


async def stands(one: AsyncClient, name: str, state: str) -> str:
    """Wait until a list has this state on a machine; return the reason."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            (view,) = (each for each in (await one.spaces())[0].lists if each.conversation == name)
            if view.state == state:
                return view.reason
            await anyio.sleep(0.05)


async def repaired(one: AsyncClient, engine: Engine, name: str) -> int:
    """Remove all posts that certainly no machine applied; return their number."""
    found = await one.conversation(name).repair_space(engine.space)
    removed = await one.conversation(name).repair_space(engine.space, remove=[p.id for p in found.posts if p.certain])
    return removed.removed


async def test_invalid_post_stops_only_its_list(machines: Machines, engine: Engine) -> None:
    second = machines.start("bob")
    async with client(machines.start("ann")) as ann, client(machines.start("kim")) as kim:
        async with client(second) as bob:
            for one, name in ((ann, "ann"), (bob, "bob"), (kim, "kim")):
                await engine.add(one, name)
            for kind in engine.kinds:
                name = kind.replace(" ", "-")
                await ann.conversation(name).add("one")
                await ann.conversation(name).share(engine.space)
                await bob.conversation(name).join(engine.space)
                await bob.conversation(name).add("two")
                await follows(ann, name, "one", "two")
                await engine.post(name, kind)
                for one in (ann, bob):
                    assert f"punch space repair {engine.space} {name}" in await stands(one, name, "diverged")
                with pytest.raises(errors.Diverged, match="The post at position .* of") as refused:
                    await ann.conversation(name).add("three")
                assert f"punch space repair {engine.space} {name}" in str(refused.value)
                for one in (ann, bob):
                    await one.conversation("local").add("goes on")
        second.restart()
        async with client(second) as bob:
            for kind in engine.kinds:
                name = kind.replace(" ", "-")
                await bob.conversation("local").add("goes on")
                await stands(bob, name, "diverged")
                with pytest.raises(errors.Diverged):
                    await bob.conversation(name).add("no")
                assert await repaired(kim, engine, name) == 1
                assert (await kim.conversation(name).repair_space(engine.space)).posts == ()
                await stands(ann, name, "current")
                await ann.conversation(name).add("three")
                await stands(bob, name, "current")
                await bob.conversation(name).add("four")
                for one in (ann, bob):
                    await follows(one, name, "one", "two", "three", "four")


@pytest.mark.parametrize("engine", [pytest.param(OnPostgres, marks=needs_postgres)], indirect=True)
async def test_row_before_all_positions_takes_no_name(machines: Machines, engine: OnPostgres) -> None:
    async with client(machines.start("ann")) as ann, client(machines.start("bob")) as bob:
        for one, name in ((ann, "ann"), (bob, "bob")):
            await engine.add(one, name)
        await engine.insert("plan", "-5", "'x'", "'garbage'")
        await ann.conversation("plan").add("one")
        await ann.conversation("plan").share(engine.space)
        await bob.conversation("plan").join(engine.space)
        await bob.conversation("plan").add("two")
        await follows(ann, "plan", "one", "two")


@pytest.mark.parametrize("engine", [pytest.param(OnPostgres, marks=needs_postgres)], indirect=True)
async def test_a_member_removes_no_post(machines: Machines, engine: Engine) -> None:
    async with client(machines.start("ann")) as ann:
        await engine.add(ann, "ann")
        plan = ann.conversation("draft")
        await plan.add("one")
        await plan.share(engine.space)
        await engine.post("draft", "garbage")
        (bad,) = (await plan.repair_space(engine.space)).posts
        with pytest.raises(errors.Forbidden, match=f"punch space server {engine.space} --keeper NAME"):
            await plan.repair_space(engine.space, remove=[bad.id])
        assert len((await plan.repair_space(engine.space)).posts) == 1
        with pytest.raises(errors.NotFound, match="has no list nothing"):
            await ann.conversation("nothing").repair_space(engine.space)
        with pytest.raises(errors.NotFound, match="This machine has no space"):
            await plan.repair_space("nowhere")


async def test_post_may_take_a_removed_posts_place(machines: Machines, engine: Engine) -> None:
    async with client(machines.start("ann")) as ann, client(machines.start("kim")) as kim:
        for one, name in ((ann, "ann"), (kim, "kim")):
            await engine.add(one, name)
        for round in range(5):
            name = f"plan-{round}"
            await ann.conversation(name).add("one")
            await ann.conversation(name).share(engine.space)
            await kim.conversation(name).join(engine.space)
            await engine.post(name, "garbage")
            await stands(ann, name, "diverged")
            assert await repaired(kim, engine, name) == 1
            await stands(kim, name, "current")
            await kim.conversation(name).add("two")  # the other machine may not have checked again yet
            await follows(ann, name, "one", "two")


def chain(*titles: str) -> list[Posted]:
    """Return the posts of a list, one for each task."""
    posts: list[Posted] = []
    check, version = "", 1
    for number, title in enumerate(titles, 1):
        events = (*(() if posts else (ConversationOpened(),)), TaskAdded(AddedTask(str(number), title)))
        body = seal("ann_1", f"ann_1-{number}", version, check, [Step(events, 1, "ann", None, Decision(events))])
        posts.append(Posted("plan", number, number - 1, f"ann_1-{number}", body))
        check, version = check_of(body), version + len(events)
    return posts


def again(post: Posted, position: int, before: int, **changes: object) -> Posted:
    """Return a copy of a post at another position, with changed members."""
    body = json.dumps(json.loads(post.body) | changes).encode() if changes else post.body
    return Posted("plan", position, before, "eve_1-1", body)


def made(event: dict[str, object], version: int) -> Posted:
    """Return a post that follows the first one of the chain, with the right check."""
    groups = json.dumps([{"at": 1, "actor": "eve", "events": [event]}]).encode()
    (first,) = chain("a")
    check = head_of(check_of(first.body), version, groups, fresh=event["type"] == "ConversationDeleted")
    envelope = {"form": 1, "level": 1, "by": "eve_1", "nonce": "n", "version": version, "check": check}
    return Posted("plan", 2, 1, "n", json.dumps(envelope).encode()[:-1] + b', "groups": ' + groups + b"}")


def erased(position: int) -> list[Posted]:
    """Return a tombstone at this position, and the first post of the recreated list after it."""
    tombstone = made({"type": "ConversationDeleted"}, 50)
    events = (TaskAdded(AddedTask("1", "new")),)
    step = Step(events, 1, "ann", None, Decision(events))
    body = seal("ann_1", "ann_1-51", 51, check_of(tombstone.body), [step])
    moved = msgspec.structs.replace(tombstone, position=position, before=position - 1)
    return [moved, Posted("plan", position + 1, position, "ann_1-51", body)]


@pytest.mark.parametrize(
    ("posts", "bad"),
    [
        pytest.param(chain("a", "b", "c"), [], id="sound"),
        pytest.param([*chain("a", "b"), again(chain("a")[0], 3, 2)], [(3, True)], id="copy"),
        pytest.param([*chain("a"), again(chain("a")[0], 9, 8)], [(9, True)], id="copy behind a gap"),
        pytest.param([chain("a", "b", "c")[0], chain("a", "b", "c")[2]], [(3, False)], id="lost between"),
        pytest.param(chain("a", "b")[1:], [(2, False)], id="lost at the beginning"),
        pytest.param([*chain("a"), again(chain("a")[0], 2, 1, version=7)], [(2, True)], id="another version"),
        pytest.param([*chain("a"), again(chain("a")[0], 2, 1, level=99)], [(2, False)], id="later version"),
        pytest.param(
            [*chain("a"), again(chain("a")[0], 2, 1, level=99), again(chain("a", "b")[1], 3, 2, version=9)],
            [(2, False), (3, False)],
            id="behind a later version",
        ),
        pytest.param(
            [*chain("a"), Posted("plan", 2, 1, "", b"garbage"), again(chain("a", "b")[1], 3, 2)],
            [(2, True), (3, True)],
            id="behind garbage",
        ),
        pytest.param(
            [*chain("a"), again(chain("a", "b")[1], 2, 1, version=10**30)], [(2, True)], id="version beyond all"
        ),
        pytest.param([*chain("a"), Posted("plan", 2, 1, "", b"[" * 100_000)], [(2, True)], id="deep"),
        pytest.param([*chain("a"), made({"type": "ConversationDeleted"}, 9)], [], id="deleted"),
        pytest.param(
            [made({"type": "ConversationDeleted"}, 1000), Posted("plan", 3, 2, "", b"x"), *erased(4)],
            [(3, True), (4, False), (5, False)],
            id="forged before a deletion",
        ),
        pytest.param([*erased(1), *erased(7)], [(7, True), (8, True)], id="copies of a deletion"),
        pytest.param([*chain("a"), made({"type": "ConversationDeleted"}, 10**30)], [(2, True)], id="deleted beyond"),
        pytest.param(
            [*chain("a"), made({"type": "TaskEdited", "task": "1", "due": 2**60}, 3)], [(2, True)], id="beyond 2^53"
        ),
        pytest.param([*chain("a"), Posted("plan", 2, 0, "", b"", fault="it is none")], [(2, True)], id="fault"),
    ],
)
async def test_post_is_certainly_bad_only_if_unfollowed(posts: list[Posted], bad: list[tuple[int, bool]]) -> None:
    assert [(one.post.position, one.certain) for one in await find_bad(posts)] == bad


async def test_a_forged_author_is_not_repeated() -> None:
    (bad,) = await find_bad([again(chain("a")[0], 1, 0, by="\x1b[31m evil", version=5)])
    assert "evil" not in bad.why and "position 1 of plan" in bad.why
    (bad,) = await find_bad([again(chain("a")[0], 1, 0, by="eve_1", version=5)])
    assert "which names eve_1 as its author" in bad.why


@pytest.mark.parametrize("position", [None, "", "-1", "0", "1.5", "\u0661", "9" * 30, " 1"])
def test_message_without_position_is_rejected(position: str | None) -> None:
    headers = {} if position is None else {"Nats-Sequence": position}
    with pytest.raises(Garbled):
        read_post("plan", Answer(headers, b""))


@pytest.mark.parametrize("expected", [None, "", "abc", "-1", "9" * 40, "3", "4"])
def test_a_message_without_its_predecessor_is_invalid(expected: str | None) -> None:
    headers = {"Nats-Sequence": "3"} | ({} if expected is None else {"Nats-Expected-Last-Subject-Sequence": expected})
    read = read_post("plan", Answer(headers, chain("a")[0].body))
    assert (read.position, read.before, read.body) == (3, 0, b"") and "Nats-Expected" in read.fault


@pytest.mark.parametrize("n", [None, 0, -5, 2**63, "1", 1.5, [], b"1"])
def test_row_without_position_is_rejected(n: object) -> None:
    with pytest.raises(Garbled):
        read_row("plan", {"n": n, "nonce": "n", "body": b"", "size": 0})
