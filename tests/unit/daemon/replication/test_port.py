"""The contract of the shared log's port, tested with real NATS and PostgreSQL servers."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import pytest

from punchlist_testing.hearing import PATIENCE_S, Hearing, heard
from punchlist_testing.nats_server import NatsServer, needs_server
from punchlist_testing.postgres_server import Members, PostgresServer, needs_postgres
from punchlistd.replication.adapters import link_keeper
from punchlistd.replication.adapters.nats import check as nats_check
from punchlistd.replication.adapters.nats.log import NatsLog
from punchlistd.replication.adapters.postgres import check as postgres_check
from punchlistd.replication.adapters.postgres.log import PostgresLog
from punchlistd.replication.port import Beat, Conflict, OutcomeUnknown, SharedLog, TooLarge, Unreachable
from punchlistd.replication.spaces import Space

T = TypeVar("T")


class Server(Protocol):
    """A server, and the faults that tests can cause."""

    def kill(self) -> None: ...
    def start(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...


class Engine(Protocol):
    """A storage engine with one running server."""

    server: Server
    largest: int

    async def space(self) -> Space: ...
    def log(self, space: Space, name: str) -> SharedLog: ...
    def end(self) -> None: ...


def _name() -> str:
    return f"s{os.urandom(4).hex()}"


class OnNats:
    largest = (1 << 20) - 1024

    def __init__(self, directory: Path) -> None:
        self.server = NatsServer(directory)
        self.server.start()

    async def space(self) -> Space:
        return (await nats_check.prepare(Space(_name(), (self.server.url,)), "test")).space

    def log(self, space: Space, name: str) -> SharedLog:
        return NatsLog(space, name)

    def end(self) -> None:
        self.server.kill()


class OnPostgres:
    largest = 8 << 20

    def __init__(self, directory: Path) -> None:
        self.server = PostgresServer()
        self.server.start()
        self._directory = directory

    async def space(self) -> Space:
        members = Members(self._directory, self.server, _name(), ann="keeper")
        asked = Space(members.space, (members.url("ann"),), creds=members.creds("ann"), replicas=0)
        return (await postgres_check.prepare(asked, "test")).space

    def log(self, space: Space, name: str) -> SharedLog:
        return PostgresLog(space, name)

    def end(self) -> None:
        self.server.end()


ENGINES = [
    pytest.param(OnNats, marks=needs_server, id="nats"),
    pytest.param(OnPostgres, marks=needs_postgres, id="postgres"),
]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Engine]:
    running = request.param(tmp_path_factory.mktemp("engine"))
    yield running
    running.end()


@pytest.fixture(params=ENGINES)
def struck(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Engine]:
    """A separate engine for tests that cause faults."""
    running = request.param(tmp_path)
    yield running
    running.end()


LINKS = ("punchlistd.replication.adapters.nats.link", "punchlistd.replication.adapters.postgres.link")
LOST_S = 0.5
"""Timeout for requests that a paused server can't answer, in seconds."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use long timeouts for busy machines."""
    for module in LINKS:
        monkeypatch.setattr(f"{module}.REQUEST_S", PATIENCE_S)
        monkeypatch.setattr(f"{module}.CONNECT_S", PATIENCE_S)


@asynccontextmanager
async def connected(engine: Engine, space: Space, name: str = "ann_1") -> AsyncGenerator[tuple[SharedLog, Hearing]]:
    log = engine.log(space, name)
    async with heard(log) as hearing:
        await hearing.link("up")
        yield log, hearing


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Retry while the machine is busy."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            try:
                return await call()
            except (Unreachable, OutcomeUnknown):
                await asyncio.sleep(0)


async def test_post_is_delivered_to_all_members(engine: Engine) -> None:
    space = await engine.space()
    async with connected(engine, space) as (ann, _), connected(engine, space, "bob_2") as (_, bob):
        assert await ann.last("release-1.0") == 0
        first = await ann.post("release-1.0", 0, "n1", b"one")
        second = await ann.post("release-1.0", first, "n2", b"two")
        expected = await ann.read("release-1.0", 0)
        assert [(post.position, post.before, post.nonce, post.body, post.fault) for post in expected] == [
            (first, 0, "n1", b"one", ""),
            (second, first, "n2", b"two", ""),
        ]
        await bob.until(lambda: expected[-1] in bob.posts)
        assert [*dict.fromkeys(bob.posts)] == expected  # the port may deliver a post twice
        assert await ann.read("release-1.0", 0, 1) == expected[:1]
        assert await ann.read("release-1.0", first) == expected[1:]
        assert await ann.last("release-1.0") == second


async def test_post_after_wrong_position_is_rejected(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        first = await ann.post("a", 0, "n1", b"one")
        for expected in (0, first + 1):
            with pytest.raises(Conflict):
                await ann.post("a", expected, f"x{expected}", b"other")
        assert [post.body for post in await ann.read("a", 0)] == [b"one"]


async def test_one_of_concurrent_posts_wins(engine: Engine) -> None:
    space = await engine.space()
    async with connected(engine, space) as (ann, _), connected(engine, space, "bob_2") as (bob, _):
        position = 0
        for round in range(30):
            posts = [log.post("a", position, f"{round}-{log.member}", b"x") for log in (ann, bob) * 2]
            positions = [
                outcome for outcome in await asyncio.gather(*posts, return_exceptions=True) if isinstance(outcome, int)
            ]
            assert len(positions) == 1
            (position,) = positions
        assert len(await ann.read("a", 0)) == 30


async def test_repeated_post_is_stored_once(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        first = await ann.post("a", 0, "n1", b"one")
        with pytest.raises(Conflict):
            await ann.post("a", 0, "n1", b"one")
        assert [(post.position, post.nonce) for post in await ann.read("a", 0)] == [(first, "n1")]


async def test_lists_of_a_space_are_independent(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        names = ["release-1.0", "Release_2", "a:b"]
        for name in names:
            await ann.post(name, 0, f"n-{name}", name.encode())
        assert await ann.lists() == sorted(names)
        assert [(await ann.read(name, 0))[0].body for name in names] == [name.encode() for name in names]


async def test_barrier_confirms_the_last_position(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, hearing):
        assert await ann.is_current("a", 0)
        first = await ann.post("a", 0, "n1", b"one")
        assert await ann.is_current("a", first)
        assert not await ann.is_current("a", 0)
        assert [post.nonce for post in await ann.read("a", 0)] == ["n1"]
        assert {post.list for post in hearing.posts} <= {"a"}


async def test_long_list_is_read_in_order(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        position = 0
        for number in range(1100):
            position = await ann.post("a", position, f"n{number}", b"%d" % number)
        assert [int(post.body) for post in await ann.read("a", 0)] == list(range(1100))


async def test_large_posts_are_read_completely(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        position, bodies = 0, [os.urandom(700_000) for _ in range(4)]
        for number, body in enumerate(bodies):
            position = await ann.post("a", position, f"n{number}", body)
        assert [post.body for post in await ann.read("a", 0)] == bodies


async def test_heartbeats_and_turn_requests_are_delivered(engine: Engine) -> None:
    space = await engine.space()
    async with connected(engine, space) as (ann, own), connected(engine, space, "bob_2") as (_, bob):
        await ann.beat(Beat("ann_1", ("a",)))
        await ann.request_turn("release-1.0")
        await bob.until(lambda: bob.beats and bob.wants)
        assert (bob.beats, bob.wants) == ([Beat("ann_1", ("a",))], [("release-1.0", "ann_1")])
        await own.until(lambda: own.wants)
        assert own.wants == bob.wants, "the member receives its own request"


async def test_heartbeat_with_hundreds_of_lists_is_delivered(engine: Engine) -> None:
    space = await engine.space()
    names = tuple(f"{number}-{'x' * 120}" for number in range(200))
    stuck = dict.fromkeys(names, 7)
    async with connected(engine, space) as (ann, _), connected(engine, space, "bob_2") as (_, bob):
        await ann.beat(Beat("ann_1", names, stuck))
        await bob.until(lambda: {name for beat in bob.beats for name in beat.lists} == set(names))
        await bob.until(lambda: {name for beat in bob.beats for name in beat.stuck} == set(names))


async def test_too_large_post_is_not_sent(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        with pytest.raises(TooLarge, match="Make smaller changes") as refused:
            await ann.post("a", 0, "n1", b"x" * (engine.largest + 1))
        assert refused.value.size == engine.largest + 1
        assert await ann.last("a") == 0


async def test_erasing_keeps_positions_of_other_posts(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        positions = [0]
        for number in range(3):
            positions.append(await ann.post("a", positions[-1], f"n{number}", b"secret"))
        await ann.erase("a", positions[3])
        await ann.erase("a", positions[3])
        (kept,) = await ann.read("a", 0)
        assert (kept.position, kept.before) == (positions[3], positions[2])
        with pytest.raises(Conflict):
            await ann.post("a", 0, "n9", b"as if there was none")


async def test_only_the_removed_post_is_gone(engine: Engine) -> None:
    async with connected(engine, await engine.space()) as (ann, _):
        first = await ann.post("a", 0, "n1", b"one")
        await ann.post("a", first, "n2", b"rubbish")
        bad = (await ann.read("a", first))[0]
        await ann.remove("a", [bad])
        assert await ann.last("a") == first and await ann.is_current("a", first)
        await ann.post("a", first, "n3", b"two")
        await ann.remove("a", [bad])
        assert [post.body for post in await ann.read("a", 0)] == [b"one", b"two"]


@pytest.mark.parametrize("log", [NatsLog, PostgresLog])
async def test_calls_before_connecting_are_unreachable(
    log: Callable[[Space, str], SharedLog],
) -> None:
    ann = log(Space("team", ("postgres://ann@127.0.0.1:1/punchlist",)), "ann_1")
    for call in (ann.post("a", 0, "n", b""), ann.last("a"), ann.read("a", 0), ann.is_current("a", 0), ann.lists()):
        with pytest.raises(Unreachable, match="not connected yet"):
            await call


async def test_acknowledged_posts_survive_a_kill(struck: Engine) -> None:
    async with connected(struck, await struck.space()) as (ann, hearing):
        first = await ann.post("a", 0, "n1", b"one")
        struck.server.kill()
        down = await hearing.link("down", "unreachable")
        assert "No server answers at " in down.reason and "[Errno" not in down.reason
        with pytest.raises(Unreachable, match="No server answers"):
            await ann.post("a", first, "n2", b"two")
        struck.server.start()
        await hearing.link("up")
        assert [post.body for post in await ann.read("a", 0)] == [b"one"]
        assert await ann.post("a", first, "n2", b"two") > first


async def test_hanging_server_makes_the_space_unreachable(struck: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(struck, await struck.space()) as (ann, hearing):
        first = await ann.post("a", 0, "n1", b"one")
        struck.server.pause()
        began = time.monotonic()
        with monkeypatch.context() as lost:
            for module in LINKS:
                lost.setattr(f"{module}.REQUEST_S", LOST_S)
            with pytest.raises((OutcomeUnknown, Unreachable)):  # Unreachable if the link noticed the loss first
                await ann.post("a", first, "n2", b"two")
            await hearing.link("down", "unreachable")
        hung_s = time.monotonic() - began
        struck.server.resume()
        await hearing.link("up")
        found = await patiently(lambda: ann.read("a", 0))
        assert [post.nonce for post in found] in (["n1"], ["n1", "n2"])
        assert hung_s < PATIENCE_S


async def test_post_in_flight_has_unknown_outcome(struck: Engine) -> None:
    async with connected(struck, await struck.space()) as (ann, _):
        struck.server.pause()
        outcome: list[Exception] = []

        async def post() -> None:
            try:
                await ann.post("a", 0, "n1", b"one")
            except (OutcomeUnknown, Unreachable) as error:
                outcome.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(post)
            await asyncio.sleep(0)
            struck.server.kill()
        assert isinstance(outcome[0], OutcomeUnknown)


async def test_read_in_flight_is_unreachable(struck: Engine) -> None:
    async with connected(struck, await struck.space()) as (ann, _):
        struck.server.pause()
        outcomes: list[Exception] = []

        async def ask(question: Awaitable[object]) -> None:
            try:
                await question
            except (OutcomeUnknown, Unreachable) as error:
                outcomes.append(error)

        async with anyio.create_task_group() as group:
            for question in (ann.last("a"), ann.read("a", 0), ann.is_current("a", 0), ann.lists()):
                group.start_soon(ask, question)
            await asyncio.sleep(0)
            struck.server.kill()
        assert [type(one) for one in outcomes] == [Unreachable] * 4


async def test_failed_call_hurries_the_reconnection(struck: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_keeper, "MIN_PAUSE_S", 3600.0)
    log = struck.log(await struck.space(), "ann-1")
    async with heard(log) as hearing:
        await hearing.link("up")
        struck.server.kill()
        await hearing.link("down", "unreachable")
        struck.server.start()
        with pytest.raises(Unreachable):
            await log.post("l", 0, "n", b"{}")
        await hearing.link("up")
