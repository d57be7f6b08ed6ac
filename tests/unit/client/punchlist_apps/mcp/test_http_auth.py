"""Every combination of host, origin, site, method and token, checked against an independent model of the rules."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.common.http.guard import Message, Receive, Scope, Send
from punchlist_apps.mcp.http_auth import Guard, Token

PORT = 8321
GOOD_HOSTS = [b"127.0.0.1:8321", b"localhost:8321", b"[::1]:8321"]
BAD_HOSTS = [
    b"",
    b"evil.example:8321",
    b"127.0.0.1",
    b"127.0.0.1:8322",
    b"localhost.:8321",
    b"LOCALHOST:8321",
    b"localhost.evil.example:8321",
    b"localhost:8321@evil.example",
    b"localhost:8321.evil.example",
    b"2130706433:8321",
    b"0x7f000001:8321",
    b"0.0.0.0:8321",
    b"127.1:8321",
    b"[::]:8321",
    b"[::ffff:127.0.0.1]:8321",
    b"::1:8321",
    b"localhost:08321",
    b" localhost:8321",
]
GOOD_ORIGINS: list[list[bytes]] = [[], [b"http://127.0.0.1:8321"], [b"http://localhost:8321"], [b"http://[::1]:8321"]]
BAD_ORIGINS: list[list[bytes]] = [
    [b"null"],
    [b""],
    [b"https://localhost:8321"],
    [b"http://localhost:8322"],
    [b"http://localhost"],
    [b"http://localhost.evil"],
    [b"http://localhost:8321.evil"],
    [b"http://localhost:8321@evil"],
    [b"http://evil.example"],
    [b"HTTP://LOCALHOST:8321"],
    [b"http://localhost:8321/"],
    [b"http://localhost:8321", b"http://evil.example"],
    [b"file://"],
]
SECRET = b"a-token-of-256-bits-as-text-here-0123456789"
GOOD_TOKENS: list[list[bytes]] = [[b"Bearer " + SECRET], [b"bearer " + SECRET], [b"Bearer  " + SECRET]]
BAD_TOKENS: list[list[bytes]] = [
    [],
    [b""],
    [b"Bearer"],
    [b"Bearer "],
    [b"Bearer " + SECRET[:-1]],
    [b"Bearer " + SECRET + b"x"],
    [b"Basic " + SECRET],
    [SECRET],
    [b"Bearer " + SECRET, b"Bearer " + SECRET],
]


@pytest.fixture
def token(tmp_path: Path) -> Token:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_bytes(SECRET + b"\n")
    return Token(str(path))


@pytest.fixture
def guard(token: Token) -> Guard:
    return Guard(send_ok, PORT, token)


async def send_ok(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def request(**parts: Any) -> Scope:
    headers: list[tuple[bytes, bytes]] = []
    for name in ("Host", "Origin", "Authorization", "Content-Type", "Sec-Fetch-Site"):
        key = name.lower().replace("-", "_")
        headers += [(name.encode(), value) for value in parts.get(key, DEFAULTS[key])]
    path = parts.get("path", "/mcp")
    return {
        "type": "http",
        "method": parts.get("method", "POST"),
        "path": path,
        "raw_path": parts.get("raw_path", path.encode()),
        "query_string": b"",
        "headers": headers,
    }


DEFAULTS: dict[str, list[bytes]] = {
    "host": GOOD_HOSTS[:1],
    "origin": [],
    "authorization": GOOD_TOKENS[0],
    "content_type": [b"application/json"],
    "sec_fetch_site": [],
}


def status(guard: Guard, scope: Scope) -> int:
    refused = guard.check(scope)
    return refused.status if refused else 200


def test_host_origin_and_token_are_checked(guard: Guard) -> None:
    hosts = [[host] for host in GOOD_HOSTS + BAD_HOSTS] + [[], [GOOD_HOSTS[0]] * 2, [GOOD_HOSTS[0], b"evil"]]
    rows = list(product(hosts, GOOD_ORIGINS + BAD_ORIGINS, GOOD_TOKENS + BAD_TOKENS))
    assert len(rows) >= 300
    wrong: list[Any] = []
    for host, origin, shown in rows:
        wanted = 200
        if len(host) != 1 or host[0] not in GOOD_HOSTS:
            wanted = 421
        elif origin not in GOOD_ORIGINS:
            wanted = 403
        elif shown not in GOOD_TOKENS:
            wanted = 401
        got = status(guard, request(host=host, origin=origin, authorization=shown))
        wrong += [(host, origin, shown, got)] if got != wanted else []
    assert wrong == []


FORMS: list[tuple[dict[str, Any], int]] = [
    ({"method": "GET", "content_type": []}, 200),
    ({"method": "DELETE", "content_type": []}, 200),
    ({"method": "OPTIONS"}, 405),
    ({"method": "PUT"}, 405),
    ({"method": "CONNECT"}, 405),
    ({"method": "post"}, 405),
    ({"content_type": []}, 415),
    ({"content_type": [b"text/plain"]}, 415),
    ({"content_type": [b"application/x-www-form-urlencoded"]}, 415),
    ({"content_type": [b"multipart/form-data; boundary=x"]}, 415),
    ({"content_type": [b"application/jsonx"]}, 415),
    ({"content_type": [b"text/plain;application/json"]}, 415),
    ({"content_type": [b"application/json; charset=utf-8"]}, 200),
    ({"content_type": [b"APPLICATION/JSON"]}, 200),
    ({"content_type": [b"application/json", b"application/json"]}, 415),
    ({"sec_fetch_site": [b"cross-site"]}, 403),
    ({"sec_fetch_site": [b"same-site"]}, 403),
    ({"sec_fetch_site": [b"none"]}, 200),
    ({"sec_fetch_site": [b"same-origin"]}, 200),
    ({"sec_fetch_site": [b"none", b"cross-site"]}, 403),
    ({"path": "/"}, 404),
    ({"path": "/mcp/"}, 404),
    ({"path": "/MCP"}, 404),
    ({"path": "http://evil.example/mcp"}, 404),
    ({"raw_path": b"/%6dcp"}, 404),
    ({"raw_path": b"http://evil.example/mcp"}, 404),
    ({"raw_path": b"/mcp?x=1"}, 200),
    ({"authorization": [], "raw_path": b"/mcp?token=" + SECRET}, 401),
]


@pytest.mark.parametrize(("parts", "wanted"), FORMS)
def test_cross_site_form_posts_are_rejected(parts: dict[str, Any], wanted: int, guard: Guard) -> None:
    assert status(guard, request(**parts)) == wanted


async def test_rejected_request_reaches_no_handler(guard: Guard) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("the body of a refused request is not read")

    await guard(request(host=[b"evil"]), receive, send)
    assert sent[0]["status"] == 421
    assert not [name for name, _ in sent[0]["headers"] if name.startswith(b"access-control")]
    sent.clear()
    await guard({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
    sent.clear()
    await guard(request(), receive, send)
    assert sent[0]["status"] == 200
