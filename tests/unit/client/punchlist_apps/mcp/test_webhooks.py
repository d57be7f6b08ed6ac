"""Webhooks: subscriptions, signatures, retries, and receivers that hang, lie or redirect."""

import asyncio
import base64
import gzip
import hmac
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, cast

import anyio
import msgspec
import pytest

from punchlist import AsyncClient, connect_async
from punchlist_testing.agent_hosts import build_process
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.mcp_wire import Wire, open_wire
from punchlist_testing.optional import require_package
from punchlist_testing.served_mcp import Served

require_package("mcp")

import anyio.lowlevel
import httpx2

from punchlist_apps.mcp import webhooks
from punchlist_apps.mcp.events import TOO_MANY
from punchlist_apps.mcp.http_auth import Grants, Token
from punchlist_apps.mcp.server import Setup, build
from punchlist_apps.mcp.users import UsersFile, hash_token
from punchlist_apps.mcp.webhook_post import Poster, Undeliverable, check_url, parse_secret
from punchlist_apps.mcp.webhooks import CALLBACK_FAILED, Receivers, Subscription, find_path
from punchlist_schemas.system.atomic import atomic_write

KEY = b"k" * 24
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


class Message(NamedTuple):
    """A message that the receiver got."""

    headers: dict[str, str]
    body: Any


class Receiver:
    """A receiver of webhooks.

    Attributes:
        behavior: What it does with messages: "ok", a status, "hang", "flood", "lie" or "redirect".
        messages: The messages with a valid signature.
    """

    def __init__(self) -> None:
        self.behavior = "ok"
        self.messages: list[Message] = []
        self.forged = 0
        self.url = ""
        self._arrived = anyio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers["content-length"]))
            self._record(headers, body)
            await self._respond(writer, headers, json.loads(body))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _record(self, headers: dict[str, str], body: bytes) -> None:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        signature = base64.b64encode(hmac.digest(KEY, signed, sha256)).decode()
        self.forged += headers["webhook-signature"] != f"v1,{signature}"
        self.messages.append(Message(headers, json.loads(body)))
        self._arrived.set()

    async def _respond(self, writer: asyncio.StreamWriter, headers: dict[str, str], body: Any) -> None:
        challenge = "something else" if self.behavior == "lie" else body.get("challenge")
        answer = json.dumps({"challenge": challenge}).encode()
        head = f"HTTP/1.1 {self.behavior if self.behavior.isdigit() else 200} Status\r\n"
        if self.behavior == "redirect":
            head = f"HTTP/1.1 307 Elsewhere\r\nLocation: {self.url}elsewhere\r\n"
        if self.behavior == "hang":
            await asyncio.sleep(3_600)
        if self.behavior == "flood":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            for _ in range(10_000):
                writer.write(b"x" * 65_536)
                await writer.drain()
        head += "Set-Cookie: session=1\r\n"
        if "gzip" in headers.get("accept-encoding", ""):
            head, answer = f"{head}Content-Encoding: gzip\r\n", gzip.compress(answer)
        writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(answer) + answer)
        await writer.drain()

    async def events(self, count: int) -> list[Any]:
        """Wait for a number of events, and return their bodies."""
        while len(found := [one.body for one in self.messages if "eventId" in one.body]) < count:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return found

    async def attempts(self, count: int) -> None:
        while len(self.messages) < count:
            self._arrived = anyio.Event()
            await self._arrived.wait()


@asynccontextmanager
async def open_receiver(receiver: Receiver) -> AsyncGenerator[None]:
    listener = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    yield
    listener.close()


class Place(NamedTuple):
    daemon: Spawned
    client: AsyncClient
    receiver: Receiver


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Place]:
    monkeypatch.setattr(webhooks, "_PAUSES_S", (0.01,))
    monkeypatch.setattr(webhooks, "_SAVE_S", 0.01)
    receiver = Receiver()
    with spawned_daemon(tmp_path) as daemon:
        async with connect_async(socket=daemon.socket, autostart=False) as client, open_receiver(receiver):
            with anyio.fail_after(50):
                yield Place(daemon, client, receiver)


@asynccontextmanager
async def serve(
    place: Place, *, private: bool = True, user: str | None = None, grants: Grants | None = None
) -> AsyncGenerator[Wire]:
    """Run a server with webhooks, and yield its host."""
    bound: Any = {"user": user} if user else {}
    setup = Setup(build_process(), place.daemon.data_dir, conversation="work", user=user)
    poster = Poster(is_private_allowed=private, timeout_s=0.5)
    async with connect_async(socket=place.daemon.socket, autostart=False, **bound) as client:
        async with open_wire(build(client, setup, receivers=Receivers(grants, poster)), "auto") as host:
            yield host


def deliver_to(url: str) -> dict[str, Any]:
    return {"mode": "webhook", "url": url, "secret": SECRET}


def subscribe(host: Wire, url: str, method: str = "subscribe", **params: Any) -> Any:
    delivery = deliver_to(url) | params.pop("delivery", {})
    return host.ask(f"events/{method}", **{"name": "task.added", "delivery": delivery, **params})


def find_file(place: Place) -> Path:
    return Path(find_path(place.daemon.data_dir, None))


def read_ids(place: Place) -> list[str]:
    """Return the ids of the stored subscriptions."""
    return [one["id"] for one in json.loads(find_file(place).read_bytes())]


def store(place: Place, expires_at: float = 2**32, **members: Any) -> None:
    """Store a subscription with the position of another log."""
    stored = Subscription("sub_1", "task.added", {}, "work", None, "", place.receiver.url, SECRET, expires_at, "0123.7")
    changed = {**msgspec.to_builtins(stored), "id": "sub_2", **members}
    find_file(place).write_bytes(msgspec.json.encode([changed, stored] if members else [stored]))


async def test_events_are_signed_and_delivered_in_order(place: Place) -> None:
    async with serve(place) as host:
        assert "webhook" in (await host.ask("events/list"))["events"][0]["delivery"]
        made = await subscribe(host, place.receiver.url)
        assert not made["truncated"] and made["refreshBefore"].endswith("Z")
        assert (await subscribe(host, place.receiver.url))["id"] == made["id"]
        for number in range(5):
            await place.client.conversation("work").add(f"{number}")
        events = await place.receiver.events(5)
    assert [event["data"]["change"]["task"]["title"] for event in events] == list("01234")
    assert all(event["cursor"] == event["eventId"] for event in events)
    assert [one.body.get("type") for one in place.receiver.messages] == ["verification", *[None] * 5]
    assert {one.headers["x-mcp-subscription-id"] for one in place.receiver.messages} == {made["id"]}
    assert [one.headers["webhook-id"] for one in place.receiver.messages[1:]] == [one["eventId"] for one in events]
    assert not place.receiver.forged
    assert not any("cookie" in one.headers for one in place.receiver.messages)


async def test_subscriptions_outlive_the_server(place: Place) -> None:
    work = place.client.conversation("work")
    async with serve(place) as host:
        await subscribe(host, place.receiver.url)
        await work.add("One")
        await place.receiver.events(1)
    assert (await anyio.Path(find_file(place)).stat()).st_mode & 0o077 == 0
    await work.add("Two")
    async with serve(place, user="ann"):
        await work.add("Three")
    assert len(await place.receiver.events(1)) == 1  # another user's server doesn't serve it
    async with serve(place) as host:
        names = list[str]()  # an event whose response was interrupted comes twice
        while len(names) < 3:
            events = await place.receiver.events(len(place.receiver.messages))
            names = list(dict.fromkeys(one["data"]["change"]["task"]["title"] for one in events))
        assert names == ["One", "Two", "Three"]
        await subscribe(host, place.receiver.url, "unsubscribe", delivery={"secret": None})
        assert read_ids(place) == []


@pytest.mark.parametrize("behavior", ["500", "hang", "flood", "redirect"])
async def test_failing_receiver_delays_no_other(place: Place, behavior: str) -> None:
    work, good = place.client.conversation("work"), Receiver()
    async with serve(place) as host, open_receiver(good):
        for receiver in (place.receiver, good):
            await subscribe(host, receiver.url)
        place.receiver.behavior = behavior
        await work.add("One")
        await place.receiver.attempts(2)
        await work.add("Two")
        assert len(await good.events(2)) == 2
        assert (await host.ask("events/poll", name="task.added", cursor=None))["events"] == []
        place.receiver.behavior = "ok"
        ids = [event["eventId"] for event in await good.events(2)]
        while place.receiver.messages[-1].headers["webhook-id"] != ids[-1]:
            await place.receiver.attempts(len(place.receiver.messages) + 1)
    received = [event["eventId"] for event in await place.receiver.events(2)]
    assert list(dict.fromkeys(received)) == ids


@pytest.mark.parametrize("behavior", ["lie", "500", "hang", "redirect"])
async def test_receiver_must_return_the_challenge(place: Place, behavior: str) -> None:
    place.receiver.behavior = behavior
    async with serve(place) as host:
        error = await subscribe(host, place.receiver.url)
        assert error["code"] == CALLBACK_FAILED and error["data"]["reason"]
        assert not await anyio.Path(find_file(place)).exists()


async def test_gone_receiver_ends_the_subscription(place: Place) -> None:
    async with serve(place) as host:
        await subscribe(host, place.receiver.url)
        place.receiver.behavior = "410"
        await place.client.conversation("work").add("One")
        while read_ids(place):
            await anyio.lowlevel.checkpoint()


async def test_too_large_event_is_shortened(place: Place) -> None:
    message = {"eventId": "a.1", "data": {"seq": 1, "change": {"type": "TaskAdded", "task": {"title": "x" * 300_000}}}}
    body = json.loads(webhooks.encode(message))
    assert body["data"] == {"seq": 1, "change": {"type": "TaskAdded"}, "is_shortened": True}


async def test_lost_history_is_reported(place: Place) -> None:
    store(place)
    async with serve(place):
        await place.receiver.attempts(1)
        assert place.receiver.messages[0].body["type"] == "gap"
        await place.client.conversation("work").add("One")
        await place.receiver.events(1)


async def test_expired_subscription_is_removed(place: Place) -> None:
    store(place, 1.0)
    async with serve(place):
        while read_ids(place):
            await anyio.lowlevel.checkpoint()
    assert place.receiver.messages == []


async def test_unreadable_file_is_moved_away(place: Place) -> None:
    path = anyio.Path(find_file(place))
    await path.write_text("{")
    async with serve(place) as host:
        assert (await subscribe(host, place.receiver.url))["id"]
    assert await anyio.Path(f"{path}.invalid").read_text() == "{"


@pytest.mark.parametrize(
    "members",
    [
        {"name": "task.exploded"},
        {"arguments": {"colour": "red"}},
        {"cursor": "7"},
        {"secret": "whsec_"},
        {"conversation": 7},
        {"conversation": "of:bob:work", "user": "ann"},
    ],
)
async def test_invalid_subscription_stops_no_other(place: Place, members: dict[str, Any]) -> None:
    async with place.client.as_user("bob") as bob:
        await bob.conversation("my:work").add("Not for ann")
    store(place, **members)
    async with serve(place):
        await place.receiver.attempts(1)
        await place.client.conversation("work").add("One")
        await place.receiver.events(1)
        while read_ids(place) != ["sub_1"]:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("kind", [UsersFile, Token])
async def test_unreadable_tokens_end_no_subscription(
    place: Place, kind: Callable[[str], Grants], capsys: pytest.CaptureFixture[str]
) -> None:
    token, path = "t" * 16, place.daemon.directory / "tokens"
    path.touch(0o600)
    store(place, token=hash_token(token.encode()))
    async with serve(place, grants=kind(str(path))):
        while "rejected" not in capsys.readouterr().err:
            await anyio.lowlevel.checkpoint()
        path.write_text(json.dumps({token: "*"}) if kind is UsersFile else token)
        await place.receiver.attempts(1)


async def test_saves_keep_their_order(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, calls = Event(), Event(), count()

    def write(path: str, data: bytes, *, fsync: bool) -> None:
        if is_first := next(calls) == 0:
            first.set()
            second.wait(0.5)  # until a later save has ended, if it can
        atomic_write(path, data, fsync=fsync)
        if not is_first:
            second.set()

    monkeypatch.setattr(webhooks, "atomic_write", write)
    async with serve(place) as host:
        await host.send("events/subscribe", name="task.added", delivery=deliver_to(place.receiver.url))
        while not first.is_set():
            await anyio.lowlevel.checkpoint()
        await subscribe(host, f"{place.receiver.url}2")
        while next(calls) < 2:
            await anyio.lowlevel.checkpoint()
        assert len(read_ids(place)) == 2


async def test_unsaved_subscription_is_reported(place: Place) -> None:
    path = anyio.Path(find_file(place))
    async with serve(place) as host:
        await path.mkdir()
        assert "can't be saved" in (await subscribe(host, place.receiver.url))["message"]
        await path.rmdir()
        await place.client.conversation("work").add("Not delivered")
        made = await subscribe(host, place.receiver.url)
        assert read_ids(place) == [made["id"]]
        await path.unlink()
        await path.mkdir()
        ended = await subscribe(host, place.receiver.url, "unsubscribe", delivery={"secret": None})
        assert "can't be saved" in ended["message"]
        await path.rmdir()
    assert read_ids(place) == []
    assert not [one for one in place.receiver.messages if "eventId" in one.body]


async def test_old_events_are_not_delivered(place: Place) -> None:
    work = place.client.conversation("work")
    async with serve(place) as host:
        start = (await host.ask("events/poll", name="task.added", cursor=None))["cursor"]
        await work.add("Old")
        made = await subscribe(host, place.receiver.url, cursor=start, maxAgeMs=0)
        assert made["truncated"]
        await work.add("New")
        (event,) = await place.receiver.events(1)
    assert event["data"]["change"]["task"]["title"] == "New"


async def test_second_server_delivers_nothing(place: Place) -> None:
    async with serve(place) as first, serve(place) as second:
        assert (await subscribe(first, place.receiver.url))["id"]
        assert "Another server" in (await subscribe(second, place.receiver.url))["message"]


@pytest.mark.parametrize(
    "params",
    [
        {"delivery": {"secret": "whsec_short"}},
        {"delivery": {"mode": "pigeon"}},
        {"delivery": {"url": "ftp://127.0.0.1/"}},
        {"delivery": {"url": "http://user:word@127.0.0.1/"}},
        {"ttlMs": 0},
        {"cursor": "5"},
    ],
)
async def test_invalid_subscription_is_rejected(place: Place, params: Any) -> None:
    async with serve(place) as host:
        assert (await subscribe(host, place.receiver.url, **params))["code"] == -32602


async def test_number_of_subscriptions_is_limited(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "MAX_WEBHOOKS", 1)
    async with serve(place) as host:
        assert (await subscribe(host, place.receiver.url))["id"]
        assert (await subscribe(host, f"{place.receiver.url}2"))["code"] == TOO_MANY


async def test_private_address_is_refused(place: Place) -> None:
    async with serve(place, private=False) as host:
        assert (await subscribe(host, place.receiver.url))["code"] == -32602  # not https
        names = ["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "0.0.0.0"]
        names += ["[64:ff9b:1::a00:1]", "[fec0::1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]"]
        for name in names:
            error = await subscribe(host, f"https://{name}/")
            assert (error["code"], "private" in error["message"]) == (CALLBACK_FAILED, True), name
    assert place.receiver.messages == []


async def test_unknown_name_and_closed_port_are_undeliverable() -> None:
    poster = Poster(is_private_allowed=True, timeout_s=5)
    for url in ("http://127.0.0.1:1/", "http://name.invalid/"):
        with pytest.raises(Undeliverable):
            await poster.post(url, SECRET, "id", b"{}", {})
    await poster.aclose()


async def test_slow_name_server_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up, released, receiver = socket.getaddrinfo, Event(), Receiver()

    def look_up_slowly(host: object, *more: Any, **options: Any) -> Any:
        if "slow.test" in str(host):
            released.wait(30)
        return look_up(cast("str", host), *more, **options)

    async def fail(number: int) -> None:
        with pytest.raises(Undeliverable):
            await poster.post(f"http://{number}.slow.test/", SECRET, "id", b"{}", {})

    monkeypatch.setattr(socket, "getaddrinfo", look_up_slowly)
    poster = Poster(is_private_allowed=True, timeout_s=5)
    async with open_receiver(receiver), anyio.create_task_group() as group:
        for number in range(64):
            group.start_soon(fail, number)
        await anyio.wait_all_tasks_blocked()
        try:
            assert (await poster.post(receiver.url, SECRET, "id", b"{}", {})).status == 200
        finally:
            released.set()
    await poster.aclose()


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_!", f"whsec_{base64.b64encode(b'x' * 65).decode()}", "x" * 40])
def test_invalid_secret_is_rejected(secret: str) -> None:
    with pytest.raises(ValueError, match="whsec_"):
        parse_secret(secret)


def test_long_url_is_rejected() -> None:
    assert check_url("https://example.com/x", is_private_allowed=False).host == "example.com"
    with pytest.raises(ValueError, match="https"):
        check_url(f"https://example.com/{'x' * 3_000}", is_private_allowed=False)


async def test_revoked_token_ends_its_subscriptions(place: Place) -> None:
    served = Served(place.daemon, "--private-webhooks", "--token-file", str(place.daemon.directory / "token"))
    try:
        headers = {"Authorization": f"Bearer {served.token}", "Accept": "application/json, text/event-stream"}
        params = {
            "name": "task.added",
            "delivery": {"mode": "webhook", "url": place.receiver.url, "secret": SECRET},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }
        async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
            message = {"jsonrpc": "2.0", "id": 1, "method": "events/subscribe", "params": params}
            more = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "events/subscribe", "Mcp-Name": "task.added"}
            response = await http.post(f"http://127.0.0.1:{served.port}/mcp", json=message, headers=more)
            assert "sub_" in response.text, response.text
        work = place.client.conversation("work")
        await work.add("One")
        await place.receiver.events(1)
        served.token_file.write_text("another token, of this file's owner\n")
        await work.add("Two")
        while read_ids(place):
            await anyio.lowlevel.checkpoint()
        assert len(await place.receiver.events(1)) == 1
    finally:
        served.process.terminate()
        served.process.communicate(timeout=20)
