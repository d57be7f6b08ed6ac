"""Tells a command or a webhook what becomes of tasks: that one has failed, waits for a person, or all are finished."""

import asyncio
import contextlib
import os
import shlex
import shutil
import threading
from collections.abc import Coroutine, Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

import msgspec

from punchlist_apps.cli.printing.failure import StateError, UsageError
from punchlist_apps.cli.running.child import Child
from punchlist_apps.cli.running.display import Display

TIMEOUT_S = 30.0
"""How long a notification may take; then it is given up, and its command is killed."""


class Notifier:
    """Where notifications go. What goes wrong with one is told and stops nothing.

    Args:
        command: Split into words and run without a shell; it reads the notification as JSON from standard input.
        url: Gets it by POST as JSON.
        env: The environment of the command.
        display: Where problems are told.

    Raises:
        UsageError: The command is not there, or the URL is none of http or https.
    """

    def __init__(self, command: str | None, url: str | None, env: Mapping[str, str], display: Display) -> None:
        self._words = _parse_command(command)
        self._url = _check_url(url)
        self._env = env
        self._display = display
        self._underway: set[asyncio.Task[None]] = set()

    def send(self, event: str, facts: Mapping[str, Any]) -> None:
        """Send a notification on its way: `failed`, `waiting` or `finished`, and what there is to say about it."""
        body = msgspec.json.encode({"event": event, **facts})
        ways: list[Coroutine[Any, Any, None]] = []
        if self._words:
            ways.append(self._run(event, body))
        if self._url:
            ways.append(self._post(body))
        for way in ways:
            task = asyncio.create_task(way)
            self._underway.add(task)
            task.add_done_callback(self._underway.discard)

    async def drain(self) -> None:
        await asyncio.gather(*self._underway)

    async def _run(self, event: str, body: bytes) -> None:
        try:
            child = Child(self._words, {**self._env, "PUNCHLIST_EVENT": event}, body + b"\n", _ignore_output)
        except (OSError, ValueError) as error:
            self._display.note(f"can't notify: {self._words[0]}: {error}")
            return
        ending = await child.wait(TIMEOUT_S)
        if ending.code or ending.timed_out:
            self._display.note(f"can't notify: {self._words[0]}: {ending.format_reason(int(TIMEOUT_S * 1000))}")

    async def _post(self, body: bytes) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await _post_in_thread(self._url, body)
        except (OSError, ValueError, HTTPException) as error:  # a TimeoutError is one too
            self._display.note(f"can't notify: {urlsplit(self._url).hostname}: {error}")


def _ignore_output(_stream: str, _text: str) -> None:
    """What a notification prints is nobody's business but its reason, if it fails."""


def _parse_command(command: str | None) -> list[str]:
    if command is None:
        return []
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--notify: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise StateError(f"--notify: there is no command {command!r}; no task was touched")
    return words


def _check_url(url: str | None) -> str:
    if url is None:
        return ""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("--notify-url: write http://… or https://…")
    return url


async def _post_in_thread(url: str, body: bytes) -> None:
    """Post in a thread that nobody waits for longer than there is patience: a slow server could keep it for ever."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def post() -> None:
        failed: Exception | None = None
        try:
            _post(url, body)
        except Exception as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, failed)

    threading.Thread(target=post, daemon=True).start()
    await done


def _post(url: str, body: bytes) -> None:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    request = Request(url, body, {"Content-Type": "application/json", "User-Agent": f"punch-run/{os.getpid()}"})
    try:
        urlopen(request, timeout=TIMEOUT_S).close()
    except HTTPError as error:
        error.close()
        raise
