"""Notifies a command or webhook when a task has failed, a task waits for a person, or all tasks are finished."""

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
"""Upper limit for one notification, in seconds. A command that runs longer is killed."""


class Notifier:
    """Sends notifications. A notification that fails is reported but doesn't stop the run.

    Args:
        command: Split into arguments and run without a shell. Standard input contains the notification as JSON.
        url: Receives the notification as JSON in a POST request.
        env: The environment of the command.
        display: Prints problems.

    Raises:
        UsageError: The command is not found, or the URL is not http or https.
    """

    def __init__(self, command: str | None, url: str | None, env: Mapping[str, str], display: Display) -> None:
        self._words = _parse_command(command)
        self._url = _check_url(url)
        self._env = env
        self._display = display
        self._in_flight: set[asyncio.Task[None]] = set()

    def send(self, event: str, facts: Mapping[str, Any]) -> None:
        """Start sending a notification of an event: `failed`, `waiting` or `finished`."""
        body = msgspec.json.encode({"event": event, **facts})
        deliveries: list[Coroutine[Any, Any, None]] = []
        if self._words:
            deliveries.append(self._run(event, body))
        if self._url:
            deliveries.append(self._post(body))
        for delivery in deliveries:
            task = asyncio.create_task(delivery)
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)

    async def drain(self) -> None:
        await asyncio.gather(*self._in_flight)

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
        except (OSError, ValueError, HTTPException) as error:  # includes TimeoutError
            self._display.note(f"can't notify: {urlsplit(self._url).hostname}: {error}")


def _ignore_output(_stream: str, _text: str) -> None:
    """Discard the output, because the reason for a failure already contains its last lines."""


def _parse_command(command: str | None) -> list[str]:
    if command is None:
        return []
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--notify: {error}") from None
    if not words or shutil.which(words[0]) is None:
        raise StateError(f"--notify: command not found: {command!r}; no task was touched")
    return words


def _check_url(url: str | None) -> str:
    if url is None:
        return ""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("--notify-url: write http://… or https://…")
    return url


async def _post_in_thread(url: str, body: bytes) -> None:
    """Post in a daemon thread, which doesn't delay the exit even if a slow server blocks it forever."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def set_outcome(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def post() -> None:
        failure: Exception | None = None
        try:
            _post(url, body)
        except Exception as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(set_outcome, failure)

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
