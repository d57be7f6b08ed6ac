"""The status line for shell prompts, in `<socket directory>/status`. The file is replaced atomically at each change."""

import contextlib
import logging
import os

import anyio
import anyio.to_thread

from punchlist_schemas.system.atomic import atomic_write

logger = logging.getLogger(__name__)

MIN_INTERVAL_S = 0.1
"""Minimum interval between two writes, in seconds."""


class StatusFile:
    """Writes the newest status line to a file. Changes in quick succession share one write."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._counts = (0, 0)
        self._written: os.stat_result | None = None
        self._changed = anyio.Event()

    def show(self, unfinished: int, in_progress: int) -> None:
        self._counts = (unfinished, in_progress)
        self._changed.set()

    async def run(self) -> None:
        """Write the newest line after each change until cancelled, then remove the file."""
        try:
            while True:
                await self._changed.wait()
                self._changed = anyio.Event()
                await anyio.to_thread.run_sync(self._write, "{} open, {} in progress\n".format(*self._counts))
                # Prompts don't read the file more often, and a write for each commit would be expensive under load.
                await anyio.sleep(MIN_INTERVAL_S)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._remove)

    def _write(self, line: str) -> None:
        try:
            self._written = atomic_write(self._path, line.encode())
        except OSError as error:  # the line is optional, so a full disk must not stop the daemon
            logger.warning("%s could not be written: %s", self._path, error.strerror)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            if self._written is not None and os.path.samestat(os.lstat(self._path), self._written):
                os.unlink(self._path)  # the file is still this daemon's, not a successor's
