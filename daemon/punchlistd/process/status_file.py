"""The line for shell prompts: `<socket directory>/status`, replaced whole whenever it changes."""

import contextlib
import logging
import os

import anyio
import anyio.to_thread

from punchlist_schemas.system.atomic import atomic_write

logger = logging.getLogger(__name__)

PAUSE_S = 0.1
"""Shortest time between two writes."""


class StatusFile:
    """Keeps a file at the newest line; quick changes share one write.

    Args:
        path: where the file is.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._counts = (0, 0)
        self._written: os.stat_result | None = None
        self._changed = anyio.Event()

    def show(self, unfinished: int, in_progress: int) -> None:
        self._counts = (unfinished, in_progress)
        self._changed.set()

    async def run(self) -> None:
        """Write the newest line whenever it changed, until cancelled; the file goes when this ends."""
        try:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                await anyio.to_thread.run_sync(self._write, "{} open, {} in progress\n".format(*self._counts))
                await anyio.sleep(PAUSE_S)  # a prompt is not read more often, and under load a write per commit is dear
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._remove)

    def _write(self, line: str) -> None:
        try:
            self._written = atomic_write(self._path, line.encode())
        except OSError as error:  # a full disk must not stop the daemon: the line is a convenience
            logger.warning("%s could not be written: %s", self._path, error.strerror)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            if self._written is not None and os.path.samestat(os.lstat(self._path), self._written):
                os.unlink(self._path)  # not one that a daemon after us wrote
