"""One request to a model's server, its answer read piece by piece, by the standard library.

Reading waits in a thread; giving up closes the connection, which ends that wait.
"""

import http.client
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from time import time
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import SplitResult, urlsplit

import anyio

from punchlist.base.text import clip, one_line
from punchlist_apps.chat.models.port import Away

T = TypeVar("T")

_MOST_LINE = 1 << 20
_OK = 200
OF_KEYS = frozenset({401, 403})
"""Statuses about the key; what they say may hold it."""

_MOST_TOLD, _SHOWN = 8_192, 200


class Limits(NamedTuple):
    """How long to wait for a server, in seconds: for the connection, the first byte, and between two pieces."""

    connect_s: float = 3.0
    first_s: float = 15.0
    silent_s: float = 20.0


async def stream(  # noqa: C901, PLR0915 - one answer after the other, and who ends what was abandoned
    url: str, headers: dict[str, str], body: dict[str, Any], limits: Limits
) -> AsyncGenerator[Any]:
    """The events of a streamed answer as JSON values, and None at its regular end.

    Raises:
        Away: The server can't be reached, refuses, is silent for too long, or sends what is no stream of this form.
    """
    parts, connection = _connection(url, limits)
    sock: socket.socket | None = None
    response: http.client.HTTPResponse | None = None
    is_over = False

    # A thread can finish after this generator: whichever of the two is last closes what the thread opened.
    def connect() -> None:
        connection.connect()
        connection.auto_open = 0  # a late request would connect again
        if is_over:
            connection.close()

    def respond() -> http.client.HTTPResponse:
        nonlocal response
        response = connection.getresponse()
        if is_over:
            response.close()
        return response

    path = parts.path + (f"?{parts.query}" if parts.query else "")
    sent = {"Content-Type": "application/json", "Accept": "text/event-stream", "User-Agent": "punchlist", **headers}
    try:
        try:
            await _in_thread(connect)
        except socket.gaierror:
            raise Away("unreachable", f"the name {parts.hostname} has no address; is --base-url right?") from None
        except ConnectionRefusedError:
            raise Away("refused", f"nobody listens at {connection.host}:{connection.port}") from None
        sock = _sock(connection)  # a connection that ends with its answer forgets it
        sock.settimeout(limits.first_s)
        data = json.dumps(body).encode("utf-8", "replace")
        await _in_thread(lambda: connection.request("POST", path, data, sent))
        answer = await _in_thread(respond)
        if answer.status != _OK:
            told = b"" if answer.status in OF_KEYS else await _in_thread(lambda: answer.read(_MOST_TOLD))
            said = [
                parts.netloc.rpartition("@")[2],
                reason(told, headers.get("Authorization", "").removeprefix("Bearer ")),
            ]
            raise Away(
                str(answer.status),
                " says: ".join(filter(None, said)),
                retry_after(answer.headers.get("Retry-After", "")),
            )
        sock.settimeout(limits.silent_s)
        if "json" in answer.headers.get("Content-Type", ""):
            yield _value(await _in_thread(lambda: answer.read(_MOST_LINE)))
            return
        while line := await _in_thread(lambda: answer.readline(_MOST_LINE)):
            if line.startswith(b"data:"):
                text = line[5:].strip()
                yield None if text == b"[DONE]" else _value(text)
                if text == b"[DONE]":
                    return
    finally:
        is_over = True
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for it
        if response is not None:
            response.close()
        connection.close()


def _connection(url: str, limits: Limits) -> tuple[SplitResult, http.client.HTTPConnection]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Away("configuration", f"{url} is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Away("configuration", f"{url} is no URL of http or https")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return parts, kind(parts.hostname, port, timeout=limits.connect_s)


def _sock(connection: http.client.HTTPConnection) -> socket.socket:
    found: Any = connection.sock
    if found is None:
        raise Away("cut", "it hung up")
    return found


async def _in_thread(wait: Callable[[], T]) -> T:
    """Wait in a thread; faults of the network become `Away`."""
    try:
        return await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
    except TimeoutError:
        raise Away("timeout", "it was silent for too long") from None
    except (ConnectionRefusedError, socket.gaierror):  # told with the address, by who connects
        raise
    except (http.client.HTTPException, ConnectionError, ValueError) as error:
        raise Away("cut", f"{type(error).__name__} while it answered") from None
    except OSError as error:
        raise Away("unreachable", error.strerror or type(error).__name__) from None


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Away("malformed", "it sent what is no JSON") from None


def reason(told: bytes, key: str) -> str:
    """What the body of a refusal says, in one line and without the key, in the forms that servers use."""
    try:
        value: Any = json.loads(told)
    except (ValueError, RecursionError):
        return ""
    for name in ("error", "message", "detail"):
        value = cast("dict[str, Any]", value).get(name, value) if isinstance(value, dict) else value
    text = value if isinstance(value, str) else ""
    return clip(one_line(text.replace(key, "…") if key else text), _SHOWN)


def retry_after(given: str) -> float | None:
    """The seconds that a header Retry-After says, as a number or as a date; None if it says nothing."""
    if given.isdecimal():
        return float(given[:9])
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time())
    except (TypeError, ValueError):
        return None
