"""Every combination of Host, Origin, site, token and method, checked against an independently derived result."""

from itertools import product
from typing import Any

import pytest

from punchlist_apps.common.http.guard import SECURITY_HEADERS, Guard, get_bearer_token

HOSTS = {
    b"127.0.0.1:8322": True, b"localhost:8322": True, b"[::1]:8322": True, b"localhost": True, b"LOCALHOST:1": True,
    b"box.example:8322": True, b"": False, b"evil.example": False, b"localhost.:8322": False, b"2130706433": False,
    b"0x7f000001": False, b"0.0.0.0:8322": False, b"localhost.evil.example": False, b"[::ffff:127.0.0.1]": False,
    b"user@localhost": False, b"localhost:8322@evil.example": False, b"localhost:999999": False, b"127.1": False,
}  # fmt: skip
"""Host → whether it is valid; None stands for two Host headers."""

SITES = {None: True, b"same-origin": True, b"none": True, b"same-site": False, b"cross-site": False, b"x": False}


def origins(host: bytes) -> dict[bytes | None, bool]:
    return {
        None: True,
        b"http://" + host: True,
        b"https://" + host: False,
        b"null": False,
        b"http://evil.example": False,
        b"http://" + host + b".evil.example": False,
        b"http://" + host + b"/": False,
        b"": False,
    }


@pytest.fixture
async def verdicts(tmp_path: Any) -> Any:
    """Sends a request to the guarded application without a socket.

    Returns the response's status, whether the application received the request, and the response's first message.
    """
    reached: list[bool] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        reached.append(True)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    guard = Guard(inside, ["box.example"])

    async def ask(headers: list[tuple[bytes, bytes]], kind: str = "http") -> tuple[int, bool, Any]:
        reached.clear()
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("the guard decides without the body")

        await guard({"type": kind, "headers": headers}, receive, send)
        return sent[0].get("status", 0), bool(reached), sent[0]

    return ask


async def test_only_same_origin_requests_pass(verdicts: Any) -> None:
    rows = 0
    for host, (site, site_is_good) in product(HOSTS, SITES.items()):
        for origin, origin_is_good in origins(host).items():
            for second in (None, host, b"localhost"):
                headers = [(b"Host", host)]
                headers += [(b"hOST", second)] if second is not None else []
                headers += [(b"Origin", origin)] if origin is not None else []
                headers += [(b"Sec-Fetch-Site", site)] if site is not None else []
                good = HOSTS[host] and second is None and origin_is_good and site_is_good
                status, reached, sent = await verdicts(headers)
                expected = 200 if good else 403 if HOSTS[host] and second is None else 421
                assert (status, reached) == (expected, good), headers
                assert all(each in sent["headers"] for each in SECURITY_HEADERS)
                assert not any(name.startswith(b"access-control") for name, _ in sent["headers"])
                rows += 1
    assert rows > 2_000, rows


async def test_missing_host_and_web_sockets_are_rejected(verdicts: Any) -> None:
    assert (await verdicts([]))[:2] == (421, False)
    _, reached, sent = await verdicts([(b"host", b"localhost")], "websocket")
    assert (sent["type"], sent["code"], reached) == ("websocket.close", 1008, False)
    two = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"origin", b"http://localhost")]
    assert (await verdicts(two))[:2] == (403, False)


def test_token_is_stripped() -> None:
    assert get_bearer_token([(b"authorization", b"Bearer  token ")]) == b"token"
    assert get_bearer_token([(b"Authorization", b"bearer token")]) == b"token"
    assert (
        get_bearer_token([(b"authorization", b"Basic token")])
        == get_bearer_token([(b"authorization", b"Bearer token")] * 2)
        == b""
    )
