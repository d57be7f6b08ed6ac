"""Streaming HTTP requests to a model's server, with the standard library.

Reading blocks a thread. Cancellation closes the connection, which unblocks the thread.
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
from punchlist_apps.chat.models.port import ModelError

T = TypeVar("T")

_MAX_LINE_BYTES = 1 << 20
_OK = 200
KEY_STATUSES = frozenset({401, 403})
"""Statuses for a rejected key. The response bodies aren't shown, because they may contain the key."""

_MAX_ERROR_BYTES, _MAX_REASON_CHARS = 8_192, 200


class Limits(NamedTuple):
    """Timeouts in seconds: for the connection, for the first byte, and between chunks."""

    connect_s: float = 3.0
    first_s: float = 15.0
    silent_s: float = 20.0


async def stream(  # noqa: C901, PLR0915 - one sequence, with the clean-up of abandoned threads
    url: str, headers: dict[str, str], body: dict[str, Any], limits: Limits
) -> AsyncGenerator[Any]:
    """Yield the events of a streamed response as JSON values, and None when the stream ends normally.

    Raises:
        ModelError: The server can't be reached, returns an error, times out, or sends a malformed stream.
    """
    parts, connection = _build_connection(url, limits)
    sock: socket.socket | None = None
    response: http.client.HTTPResponse | None = None
    has_ended = False

    # A thread can outlive this generator. Whichever of the two ends last closes the connection that the thread opened.
    def connect() -> None:
        connection.connect()
        connection.auto_open = 0  # Otherwise a late request would reconnect.
        if has_ended:
            connection.close()

    def respond() -> http.client.HTTPResponse:
        nonlocal response
        response = connection.getresponse()
        if has_ended:
            response.close()
        return response

    path = parts.path + (f"?{parts.query}" if parts.query else "")
    all_headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "User-Agent": "punchlist",
        **headers,
    }
    try:
        try:
            await _run_in_thread(connect)
        except socket.gaierror:
            raise ModelError("unreachable", f"can't resolve {parts.hostname}; check --base-url") from None
        except ConnectionRefusedError:
            raise ModelError("refused", f"no server listens at {connection.host}:{connection.port}") from None
        sock = _require_socket(connection)  # http.client drops the socket when the response ends the connection.
        sock.settimeout(limits.first_s)
        data = json.dumps(body).encode("utf-8", "replace")
        await _run_in_thread(lambda: connection.request("POST", path, data, all_headers))
        answer = await _run_in_thread(respond)
        if answer.status != _OK:
            body_bytes = b""
            if answer.status not in KEY_STATUSES:
                body_bytes = await _run_in_thread(lambda: answer.read(_MAX_ERROR_BYTES))
            reason = read_reason(body_bytes, headers.get("Authorization", "").removeprefix("Bearer "))
            raise ModelError(
                str(answer.status),
                " says: ".join(filter(None, (parts.netloc.rpartition("@")[2], reason))),
                parse_retry_after(answer.headers.get("Retry-After", "")),
            )
        sock.settimeout(limits.silent_s)
        if "json" in answer.headers.get("Content-Type", ""):
            yield _parse_json(await _run_in_thread(lambda: answer.read(_MAX_LINE_BYTES)))
            return
        while line := await _run_in_thread(lambda: answer.readline(_MAX_LINE_BYTES)):
            if line.startswith(b"data:"):
                text = line[5:].strip()
                yield None if text == b"[DONE]" else _parse_json(text)
                if text == b"[DONE]":
                    return
    finally:
        has_ended = True
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # Unblocks a thread that reads from the socket.
        if response is not None:
            response.close()
        connection.close()


def _build_connection(url: str, limits: Limits) -> tuple[SplitResult, http.client.HTTPConnection]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ModelError("configuration", f"{url} is not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ModelError("configuration", f"{url} is not an http or https URL")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return parts, kind(parts.hostname, port, timeout=limits.connect_s)


def _require_socket(connection: http.client.HTTPConnection) -> socket.socket:
    sock: Any = connection.sock
    if sock is None:
        raise ModelError("cut", "it closed the connection")
    return sock


async def _run_in_thread(wait: Callable[[], T]) -> T:
    """Run a blocking function in a thread. Network errors become `ModelError`."""
    try:
        return await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
    except TimeoutError:
        raise ModelError("timeout", "it was silent for too long") from None
    except (ConnectionRefusedError, socket.gaierror):
        # `stream` reports these errors with the address.
        raise
    except (http.client.HTTPException, ConnectionError, ValueError) as error:
        raise ModelError("cut", f"{type(error).__name__} while it answered") from None
    except OSError as error:
        raise ModelError("unreachable", error.strerror or type(error).__name__) from None


def _parse_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ModelError("malformed", "it sent invalid JSON") from None


def read_reason(body: bytes, key: str) -> str:
    """Return the message of an error response on one line, without the key. Servers use several formats."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    for name in ("error", "message", "detail"):
        value = cast("dict[str, Any]", value).get(name, value) if isinstance(value, dict) else value
    text = value if isinstance(value, str) else ""
    return clip(one_line(text.replace(key, "…") if key else text), _MAX_REASON_CHARS)


def parse_retry_after(header: str) -> float | None:
    """Return the number of seconds from a Retry-After header, which has a number or a date; None if it has neither."""
    if header.isdecimal():
        return float(header[:9])
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time())
    except (TypeError, ValueError):
        return None
