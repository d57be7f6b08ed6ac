"""The shared log on real NATS servers: posts, barriers, pushes, and errors of spaces."""

import asyncio
import base64
import contextlib
import json
import os
import resource
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from nats.aio.client import Client

from punchlist_apps.cli.installing.space_server import Login, Server, build_configuration, create_login
from punchlist_testing.authority import Authority, needs_openssl
from punchlist_testing.distance import Distance
from punchlist_testing.hearing import PATIENCE_S, Hearing, heard
from punchlist_testing.nats_server import (
    PORT,
    NatsServer,
    needs_server,
    own_address,
    running_cluster,
    running_server,
)
from punchlistd.replication.adapters.link_refusals import SKEW_S, check_clock
from punchlistd.replication.adapters.nats.check import prepare
from punchlistd.replication.adapters.nats.creds import read_creds
from punchlistd.replication.adapters.nats.link import connect
from punchlistd.replication.adapters.nats.log import NatsLog
from punchlistd.replication.adapters.nats.refusals import Refused
from punchlistd.replication.adapters.nats.stream import build_settings, find_stream
from punchlistd.replication.port import (
    Beat,
    Conflict,
    Forbidden,
    OutcomeUnknown,
    Posted,
    Unreachable,
)
from punchlistd.replication.spaces import Space

pytestmark = needs_server
T = TypeVar("T")


@asynccontextmanager
async def member(space: Space, name: str = "ann_1") -> AsyncGenerator[tuple[NatsLog, Hearing]]:
    """A connected member."""
    log = NatsLog(space, name)
    async with heard(log) as hearing:
        yield log, hearing


@asynccontextmanager
async def connected(space: Space, name: str = "ann_1") -> AsyncGenerator[tuple[NatsLog, Hearing]]:
    async with member(space, name) as (log, hearing):
        await hearing.link("up")
        yield log, hearing


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsServer]:
    with running_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Use long timeouts for busy machines, except in tests that lose requests."""
    if "real_times" not in request.fixturenames:
        monkeypatch.setattr("punchlistd.replication.adapters.nats.link.REQUEST_S", PATIENCE_S)
        monkeypatch.setattr("punchlistd.replication.adapters.nats.link.CONNECT_S", PATIENCE_S)


@pytest.fixture
def real_times() -> None:
    """Use the real timeouts."""


async def patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Retry while the machine is busy or the servers are electing a leader."""
    with anyio.fail_after(PATIENCE_S):
        while True:
            try:
                return await call()
            except (Unreachable, OutcomeUnknown):
                await asyncio.sleep(0)


_made = 0


async def create_space(server: NatsServer, **more: Any) -> Space:
    """Create a space on a server."""
    global _made  # noqa: PLW0603 - each test has its own space
    _made += 1
    space = Space(f"s{_made}", (server.url,), **more)
    return (await prepare(space, "test")).space


async def test_invalid_messages_of_members_are_skipped(server: NatsServer) -> None:
    space = await create_space(server)
    async with connected(space) as (ann, hearing):
        connection = ann._connection  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        for subject in ("alive.x.y", "want.a", "new.a"):
            for body in (b"\xff{rubbish", b"[" * 100_000, b'{"member": "\\u001b[2J", "round_trip_s": 1}'):
                await connection.publish(f"pl.{space.name}.{subject}", body)
        await connection.publish(f"pl.{space.name}.want.a", b'{"member": "ann_1", "round_trip_s": 1e300}')
        await _send(server, f"pl.{space.name}.want.a".encode(), b"NATS/1.0 \xff\xfe\r\n\r\n", b"rubbish")
        await ann.beat(Beat("ann_1"))
        await hearing.until(lambda: hearing.beats)
        assert (hearing.posts, hearing.wants, len(hearing.links)) == ([], [], 1)


async def test_post_to_another_subject_is_ignored(server: NatsServer) -> None:
    space = await create_space(server)
    async with connected(space) as (ann, hearing):
        first = await ann.post("a", 0, "n1", b"one")
        await hearing.until(lambda: hearing.posts)
        log = f"pl.{space.name}.log.".encode()
        for subject in (log + b"other.a", log + b"a.a", log + b"\xff\xfe"):
            await _send(server, subject, b"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 0\r\n\r\n", b"forged")
        await ann.post("a", first, "n2", b"two")
        await hearing.until(lambda: len([post for post in hearing.posts if post.list == "a"]) == 2)
        assert [post.body for post in hearing.posts if post.list == "a"] == [b"one", b"two"]
        assert {post.list for post in hearing.posts} == {"a", "\ufffd\ufffd"}
        assert "a" in await ann.lists()
        assert len(hearing.links) == 1, "the connection stays open"


async def _send(server: NatsServer, subject: bytes, head: bytes, body: bytes) -> None:
    """Publish a message with bytes that the client library would reject."""
    reader, writer = await asyncio.open_connection(server.host, PORT)
    line = b"HPUB %b %d %d\r\n" % (subject, len(head), len(head) + len(body))
    writer.write(b'CONNECT {"verbose": false, "headers": true}\r\n%b%b%b\r\nPING\r\n' % (line, head, body))
    await asyncio.wait_for(reader.readuntil(b"PONG"), PATIENCE_S)
    writer.close()


GARBLED = (b"", b"\xff", b"[]", b"null", b"[" * 10_000, b'{"error": "full"}', b'{"seq": "1"}', b'{"message": 5}')


@pytest.mark.parametrize("garbled", GARBLED)
async def test_unreadable_reply_is_a_typed_error(tmp_path: Path, garbled: bytes) -> None:
    host = own_address()
    server = NatsServer(tmp_path, f"host: {host}\nport: {PORT}\n", host=host, whole=True)
    server.start()
    sound = {
        "STREAM.INFO": json.dumps({"config": build_settings("team", 1)}).encode(),
        "STREAM.MSG.GET": b'{"message": {"seq": 1}}',
        ".bar.": b'{"seq": 1}',
    }
    replies = dict(sound)

    async def answer(message: Any) -> None:
        await message.respond(next((reply for part, reply in replies.items() if part in message.subject), garbled))

    impostor = Client()  # acts as JetStream, which the server doesn't have
    try:
        await impostor.connect(server.url)
        for subject in ("$JS.API.>", "pl.team.log.>", "pl.team.bar.>"):
            await impostor.subscribe(subject, cb=answer)  # pyright: ignore[reportUnknownMemberType]
        await impostor.flush()
        async with connected(Space("team", (server.url,))) as (ann, _):
            with pytest.raises(OutcomeUnknown):
                await ann.post("a", 0, "n1", b"one")
            replies.clear()
            with pytest.raises(Unreachable):
                await ann.is_current("a", 1)
            with pytest.raises(Unreachable):
                await ann.last("a")
            with pytest.raises(Unreachable):
                await ann.remove("a", [Posted("a", 1, 0, "n1", b"")])
        with pytest.raises(Refused):
            await prepare(Space("team", (server.url,)), "test")
    finally:
        await impostor.close()
        server.kill()


async def test_unwritable_disk_is_reported_until_writable(tmp_path: Path, real_times: None) -> None:
    with running_server(tmp_path) as server:
        assert server.process is not None
        async with connected(await create_space(server)) as (ann, hearing):
            position = await ann.post("a", 0, "n0", b"x")
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
            with pytest.raises((OutcomeUnknown, Unreachable)):
                for number in range(1, 40):
                    position = await ann.post("a", position, f"n{number}", b"x" * 100_000)
            full = await hearing.link("down", "no_quorum")
            assert "a disk is full" in full.reason
            server.kill()
            server.start()
            await hearing.link("up")
            found = await patiently(lambda: ann.read("a", 0))
            assert position in [post.position for post in found]
            await patiently(lambda: ann.post("a", found[-1].position, "later", b"x"))


async def test_server_with_wrong_clock_is_rejected(server: NatsServer) -> None:
    space = await create_space(server)
    connection = await connect(space, server.url, None, "test")
    found = await find_stream(connection, space.name)
    assert abs(found.skew_s) < SKEW_S
    with pytest.raises(Refused, match="by NTP") as refused:
        check_clock(Refused, server.url, -2 * SKEW_S)
    assert refused.value.kind == "clock_skew"
    await connection.close()


async def test_purged_stream_accepts_posts_at_later_positions(
    server: NatsServer,
) -> None:
    space = await create_space(server)
    async with connected(space) as (ann, _):
        first = await ann.post("a", 0, "n1", b"one")
        connection = ann._connection  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        await connection.request(f"$JS.API.STREAM.PURGE.punch-{space.name}", b"{}")
        assert (await ann.last("a"), await ann.read("a", 0)) == (0, [])
        assert not await ann.is_current("a", first)
        with pytest.raises((Conflict, OutcomeUnknown)):
            await ann.post("a", first, "n2", b"two")
        assert await ann.post("a", 0, "n3", b"one again") > first, "a position was used twice"


async def test_requests_are_resent_but_posts_are_not(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlistd.replication.adapters.nats.link.RESEND_S", 0.01)
    connection = await connect(await create_space(server), server.url, None, "test")
    asked: list[bytes] = []
    heard: asyncio.Queue[None] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if message.data == b"myself":
            heard.put_nowait(None)
            return
        asked.append(message.data)
        if asked.count(b"who leads?") > 1:
            await message.respond(b"I do")

    async def hears() -> None:
        """Wait until the leader has received all earlier requests. A `flush` can return before the requests arrive."""
        await leader.publish("asked", b"myself")
        with anyio.fail_after(PATIENCE_S):
            await heard.get()

    leader: Any = Client()
    await leader.connect([server.url])
    await leader.subscribe("asked", cb=hear)
    await hears()
    try:
        assert (await connection.request("asked", b"who leads?")).data == b"I do"
        asked.clear()
        monkeypatch.setattr("punchlistd.replication.adapters.nats.link.REQUEST_S", 0.2)
        with pytest.raises(OutcomeUnknown):
            await connection.request("asked", b"a post", once=True)
        await hears()
        assert asked == [b"a post"]
    finally:
        await leader.close()
        await connection.close()


async def test_one_reachable_address_is_enough(server: NatsServer) -> None:
    space = await create_space(server)
    both = Space(space.name, ("nats://127.0.0.1:1", *space.urls))
    assert (await prepare(both, "test")).made is False
    async with connected(both) as (ann, _):
        assert ann.link.server == server.url


async def test_round_trip_is_known_before_the_first_post(
    server: NatsServer,
) -> None:
    far = Distance(server.host, PORT, 20)
    far.start()
    try:
        space = await create_space(server)
        async with connected(space) as (ann, _), connected(Space(space.name, (far.url,)), "bob_2") as (bob, _):
            assert bob.round_trip_s >= 0.04 > ann.round_trip_s, "a turn takes as long as one of the member's posts"
            position = await ann.post("a", 0, "n1", b"one")
            for number in range(8):
                with pytest.raises(Conflict):
                    await bob.post("a", position + 1, f"n{number}", b"two")
            assert 0.04 <= bob.round_trip_s < 1
    finally:
        far.end()


async def test_deleted_stream_is_not_recreated(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        space = await create_space(server)
        async with connected(space) as (ann, hearing):
            first = await ann.post("a", 0, "n1", b"one")
            server.kill()
            server.forget()
            server.start()
            gone = await hearing.link("refused", "no_stream")
            assert "punch share LIST --repair" in gone.reason
            with pytest.raises(Unreachable):
                await ann.post("a", first, "n2", b"two")


async def test_foreign_or_changed_stream_is_rejected(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlistd.replication.adapters.nats.log.WATCH_S", 0.05)
    space = await create_space(server)
    async with connected(space) as (ann, hearing):
        connection = ann._connection  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        taken = b'{"name": "punch-theirs", "subjects": ["other.>"]}'
        await connection.request("$JS.API.STREAM.CREATE.punch-theirs", taken)
        with pytest.raises(Refused) as refused:
            await prepare(Space("theirs", (server.url,)), "test")
        assert refused.value.kind == "name_taken"
        changed = await connection.request(f"$JS.API.STREAM.INFO.punch-{space.name}")
        config = json.loads(changed.data)["config"] | {"max_age": 3_600_000_000_000}
        await connection.request(f"$JS.API.STREAM.UPDATE.punch-{space.name}", json.dumps(config).encode())
        with pytest.raises(Refused, match="max_age is 3600000000000") as refused:
            await prepare(space, "test")
        assert refused.value.kind == "stream_changed"
        await hearing.link("refused", "stream_changed")


@pytest.mark.parametrize(("sync", "kind"), [("always", ""), ("", "default_fsync")])
async def test_server_with_default_fsync_is_rejected(tmp_path: Path, sync: str, kind: str) -> None:
    host = own_address()
    with running_server(tmp_path, f'http: "{host}:8222"\n', host=host, sync=sync) as server:
        space = Space("team", (server.url,), monitor=server.monitor)
        if kind:
            with pytest.raises(Refused, match="sync_interval: always") as refused:
                await prepare(space, "test")
            assert refused.value.kind == kind
        else:
            await prepare(space, "test")


@pytest.mark.parametrize("monitor", ["file:///etc/passwd", "http://127.0.0.1:1"])
async def test_address_without_monitor_is_rejected(server: NatsServer, monitor: str) -> None:
    with pytest.raises(Refused, match="--monitor") as refused:
        await prepare(Space("team", (server.url,), monitor=monitor), "test")
    assert refused.value.kind == "bad_monitor"


@pytest.mark.parametrize("told", [b"rubbish\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100_000])
async def test_monitor_with_invalid_response_is_rejected(server: NatsServer, told: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(told)
        writer.close()

    host = own_address()
    async with await asyncio.start_server(serve, host, 8222):
        with pytest.raises(Refused) as refused:
            await prepare(Space("team", (server.url,), monitor=f"http://{host}:8222"), "test")
    assert refused.value.kind == "bad_monitor"


async def test_server_without_jetstream_is_rejected(tmp_path: Path) -> None:
    host = own_address()
    server = NatsServer(tmp_path, f"host: {host}\nport: {PORT}\n", host=host, whole=True)
    server.start()
    try:
        with pytest.raises(Refused, match="JetStream is off") as refused:
            await prepare(Space("team", (server.url,)), "test")
        assert refused.value.kind == "no_jetstream"
    finally:
        server.kill()


@needs_server
async def test_single_server_cannot_store_three_replicas(server: NatsServer) -> None:
    with pytest.raises(Refused) as refused:
        await prepare(Space("three", (server.url,), replicas=3), "test")
    assert refused.value.kind == "too_few_servers"


class Secured:
    """A server with the configuration, certificates and logins of `punch space server`."""

    def __init__(self, directory: Path, *, host: str = "", certified: str = "", days: int = 30) -> None:
        self.authority = Authority(directory / "ca")
        host = host or own_address()
        cert, key = self.authority.sign("server", certified or host, days=days)
        self.directory = directory
        self.logins = {
            name: create_login(name, role) for name, role in (("ann", "member"), ("bob", "reader"), ("kim", "keeper"))
        }
        place = Server(host, cert=str(cert), key=str(key), store=str(directory / "js"))
        text = build_configuration("team", list(self.logins.values()), [place])
        text = text.replace("port: 4222", f"host: {host}\nport: {PORT}", 1).replace('http: "127.0.0.1:8222"', "")
        self.server = NatsServer(directory / "nats", text, host=host, whole=True)
        self.url = f"tls://{host}:{PORT}"

    def creds(self, one: Login) -> str:
        path = self.directory / f"{one.name}.creds"
        path.touch(0o600)
        path.write_text(one.creds)
        return str(path)

    def space(self, name: str, **more: Any) -> Space:
        given: dict[str, Any] = {"creds": self.creds(self.logins[name]), "ca": str(self.authority.certificate), **more}
        return Space("team", (self.url,), **given)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Generator[Secured]:
    secured = Secured(tmp_path_factory.mktemp("secured"))
    secured.server.start()
    yield secured
    secured.server.kill()


@needs_openssl
async def test_generated_configuration_grants_roles(secured: Secured) -> None:
    checked = await prepare(secured.space("ann"), "test")
    assert checked.server.startswith("tls://")
    async with (
        connected(secured.space("ann")) as (ann, _),
        connected(secured.space("bob"), "bob_2") as (bob, heard),
        connected(secured.space("kim"), "kim_3") as (kim, _),
    ):
        assert ann.link.may_post and kim.link.may_post and not bob.link.may_post
        start = await ann.last("a")
        first = await ann.post("a", start, "n1", b"one")
        await heard.until(lambda: heard.posts)
        assert [post.body for post in await bob.read("a", start)] == [b"one"]
        assert await ann.is_current("a", first)
        with pytest.raises(Forbidden, match="Ask its keeper"):
            await bob.post("a", first, "n2", b"two")
        with pytest.raises(Forbidden):
            await ann.erase("a", first + 1)
        with pytest.raises(Forbidden):
            await ann.remove("a", await ann.read("a", start))
        await kim.erase("a", first + 1)
        assert await bob.read("a", start) == []


@needs_openssl
async def test_unneeded_permissions_are_denied_immediately(secured: Secured) -> None:
    await prepare(secured.space("ann"), "test")
    async with connected(secured.space("ann")) as (ann, hearing):
        connection = ann._connection  # pyright: ignore[reportPrivateUsage]
        assert connection is not None
        other = secured.logins["kim"].user
        for subject in (
            "$JS.API.STREAM.DELETE.punch-team",
            "$JS.API.STREAM.PURGE.punch-team",
            "$JS.API.STREAM.UPDATE.punch-team",
            "$JS.API.STREAM.LIST",
            "$JS.API.CONSUMER.CREATE.punch-team",
            f"pl.team.bar.{other}.x",
            f"pl.team.alive.{other}.x",
            "pl.team.new.a",
            "anything.else",
        ):
            with pytest.raises(Forbidden):
                await connection.request(subject, b"{}")
        await ann.beat(Beat("ann_1"))
        await hearing.until(lambda: hearing.beats)


@needs_openssl
async def test_reader_cannot_create_the_space(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    secured.server.start()
    try:
        with pytest.raises(Refused) as refused:
            await prepare(secured.space("bob"), "test")
        assert refused.value.kind == "may_not_make"
    finally:
        secured.server.kill()


@needs_openssl
async def test_stranger_is_rejected_with_advice(secured: Secured) -> None:
    stranger = create_login("eve", "member")
    for given, kind in (
        ({"creds": secured.creds(stranger)}, "unauthorized"),
        ({"creds": ""}, "creds_needed"),
        ({"creds": "/nonexistent/team.creds"}, "creds_missing"),
        ({"ca": ""}, "bad_certificate"),
        ({"ca": __file__}, "bad_ca"),
        ({"ca": "/nonexistent/ca.pem"}, "bad_ca"),
    ):
        with pytest.raises(Refused) as refused:
            await prepare(secured.space("ann", **given), "test")
        assert refused.value.kind == kind
        assert (
            "[X509" not in str(refused.value)
            and "[Errno" not in str(refused.value)
            and "[SSL" not in str(refused.value)
        )


@needs_openssl
@pytest.mark.parametrize(
    ("certified", "days", "kind", "told"),
    [
        ("elsewhere.example.org", 30, "wrong_host", "not valid for 127."),
        ("", -1, "certificate_expired", "has expired"),
    ],
)
async def test_invalid_certificate_is_reported_by_kind(
    tmp_path: Path, certified: str, days: int, kind: str, told: str
) -> None:
    secured = Secured(tmp_path, certified=certified, days=days)
    secured.server.start()
    try:
        with pytest.raises(Refused, match=told) as refused:
            await prepare(secured.space("ann"), "test")
        assert refused.value.kind == kind
        assert "--ca" not in str(refused.value)
    finally:
        secured.server.kill()


async def test_nothing_is_sent_without_tls(server: NatsServer, tmp_path: Path) -> None:
    secret = create_login("ann", "member")
    (tmp_path / "ann.creds").touch(0o600)
    (tmp_path / "ann.creds").write_text(secret.creds)
    space = Space("team", (server.url.replace("nats://", "tls://"),), creds=str(tmp_path / "ann.creds"))
    with pytest.raises(Refused, match="nothing was sent to it") as refused:
        await prepare(space, "test")
    assert refused.value.kind == "no_tls"


class Impostor:
    """A server that sends only the first lines of the NATS protocol."""

    def __init__(self, info: bytes) -> None:
        self.info = info
        self.heard = b""
        self.host = own_address()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self.info)
        while line := await reader.readline():
            self.heard += line
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
        writer.close()


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        (b'INFO {"server_id":"x","version":"2.10.27","headers":true,"max_payload":1048576}\r\n', "server_too_old"),
        (b'INFO {"server_id":"x","version":"2.9.10","headers":true,"max_payload":1048576}\r\n', "server_too_old"),
        (b"HTTP/1.1 400 Bad Request\r\n", "unreachable"),
        (b"INFO {rubbish\r\n", "unreachable"),
        (b'INFO {"server_id":"x","version":"of today","headers":true,"max_payload":1048576}\r\n', "unreachable"),
        (b'INFO {"server_id":"x","version":"2.14.0","headers":true,"max_payload":"much"}\r\n', "unreachable"),
    ],
)
async def test_old_or_foreign_server_is_rejected(info: bytes, kind: str) -> None:
    impostor = Impostor(info)
    listening = await asyncio.start_server(impostor.serve, impostor.host, PORT)
    async with listening:
        with pytest.raises(Refused) as refused:
            await prepare(Space("team", (f"nats://{impostor.host}:{PORT}",)), "test")
    assert refused.value.kind == kind


async def test_missing_server_is_reported_without_error_numbers() -> None:
    for url in (f"nats://{own_address()}:{PORT}", "tls://no-such-host.invalid:4222"):
        with pytest.raises(Refused, match="No server answers at") as refused:
            await prepare(Space("team", (url,)), "test")
        assert refused.value.kind == "unreachable"
        assert "Errno" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "mode", "kind"),
    [
        ("", 0o600, "creds_malformed"),
        ("SU" + "A" * 56, 0o600, "creds_malformed"),
        ("{seed}", 0o644, "creds_open"),
        ("{expired}", 0o600, "creds_expired"),
    ],
)
async def test_unusable_creds_file_is_rejected_before_connecting(
    tmp_path: Path, text: str, mode: int, kind: str
) -> None:
    secret = create_login("ann", "member")
    token = "eyJ0.eyJleHAiOjE2MDAwMDAwMDB9.c2ln"  # {"exp":1600000000}
    path = tmp_path / "ann.creds"
    path.write_text(text.format(seed=secret.seed, expired=f"{token}\n{secret.creds}"))
    os.chmod(path, mode)
    with pytest.raises(Refused, match="ann.creds") as refused:
        await prepare(Space("team", ("nats://127.0.0.1:1",), creds=str(path)), "test")
    assert refused.value.kind == kind
    assert secret.seed not in str(refused.value)


@pytest.mark.parametrize("expiry", ["-1e300", "-4503599627370496", "-" + "9" * 40, "[" * 10_000, '"never"'])
async def test_unreadable_expiry_is_left_to_the_server(tmp_path: Path, expiry: str) -> None:
    claims = base64.urlsafe_b64encode(f'{{"exp":{expiry}}}'.encode()).decode().rstrip("=")
    path = tmp_path / "ann.creds"
    path.touch(0o600)
    path.write_text(f"eyJ0.{claims}.c2ln\n{create_login('ann', 'member').creds}")
    assert (await asyncio.to_thread(read_creds, str(path))).expires == 0


async def test_three_servers_tolerate_loss_of_one(tmp_path: Path, real_times: None) -> None:
    with running_cluster(tmp_path) as servers:
        urls = tuple(server.url for server in servers)
        with anyio.fail_after(PATIENCE_S):
            while True:  # the servers must elect a leader first
                try:
                    checked = await prepare(Space("team", urls, replicas=3), "test")
                    break
                except Refused as refused:
                    assert refused.kind in ("no_quorum", "no_jetstream", "too_few_servers")
        assert checked.space.replicas == 3
        async with connected(checked.space) as (ann, _):
            position = await ann.post("a", 0, "n1", b"one")
            next(server for server in servers if server.url == ann.link.server).kill()
            with contextlib.suppress(Conflict):  # an earlier attempt with unknown outcome was stored
                await patiently(lambda: ann.post("a", position, "n2", b"two"))
            assert [post.nonce for post in await patiently(lambda: ann.read("a", 0))] == ["n1", "n2"]
