"""Keeps a file system that doesn't respond, such as an unreachable network share, from blocking the event loop."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

import anyio

from punchlist.tools.model import Problem

T = TypeVar("T")

LIMIT_S = 2.0
"""Time after which a directory counts as unreachable, in seconds."""


async def run_in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run a function that may never return. The caller can be cancelled, and the process can end meanwhile."""
    future: Future[T] = Future()

    def run() -> None:
        future.set_running_or_notify_cancel()
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)

    # The threads of `anyio.to_thread` are limited in number, and the interpreter waits for them when it ends.
    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


class Reachability:
    """Checks the directories of one server."""

    def __init__(self) -> None:
        self._checks: dict[str, asyncio.Task[bool]] = {}
        """The check of each directory that has not responded."""

    async def check(self, directory: str) -> None:
        """Check that a directory's file system responds, also if there is no such directory.

        Raises:
            Problem: It does not.
        """
        if not directory:
            return
        # A check that hangs is not repeated, because its thread can't be ended.
        check = self._checks.get(directory) or asyncio.create_task(run_in_thread(os.path.exists, directory))
        self._checks[directory] = check
        with anyio.move_on_after(LIMIT_S):
            await asyncio.wait([check])
        if not check.done():
            raise Problem("no_conversation", f"{directory} does not respond: is its file system reachable?")
        self._checks.pop(directory, None)
