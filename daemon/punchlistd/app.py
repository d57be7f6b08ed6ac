"""The only place that makes and connects things: start order, readiness, and the order of stopping."""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from punchlist_schemas.rendezvous import status_path
from punchlistd.engine.fanout import Fanout
from punchlistd.engine.reads import Reads
from punchlistd.engine.registry import Registry
from punchlistd.engine.totals import Totals
from punchlistd.engine.writer import Writer
from punchlistd.lock import DataLock
from punchlistd.net.listener import OwnSocket, private_directory
from punchlistd.net.server import Server
from punchlistd.net.session import Session
from punchlistd.report import Birth, report
from punchlistd.settings import Settings
from punchlistd.status_file import StatusFile
from punchlistd.store.port import EventLog, StorageFailed
from punchlistd.store.sqlite import SqliteLog

logger = logging.getLogger(__name__)


class Replaced(Exception):
    """The daemon's lock or socket is no longer its own: it must not answer any more."""


class App:
    """One daemon, from start to end.

    Args:
        settings: how it runs.
        inherited: a listening socket from the service manager; None: bind our own.
    """

    def __init__(self, settings: Settings, inherited: socket.socket | None = None) -> None:
        """A daemon that has not started."""
        self.settings = settings
        self.ready = anyio.Event()
        self._inherited = inherited
        self._stopping = anyio.Event()
        self._birth = Birth()
        self._own: OwnSocket | None = None

    def stop(self) -> None:
        """Begin to stop: take no more calls, answer those taken, leave."""
        self._stopping.set()

    async def run(self, signals: bool = True) -> None:
        """Serve until stopped.

        Raises:
            AlreadyRunning: another daemon has the data directory.
            SocketTaken: another daemon has the socket.
            SocketUnusable: the socket's place, or the data directory, can't be used.
            LogUnusable: the log can't be used; nothing was touched.
            StorageFailed: the outcome of a write is unknown.
            Replaced: somebody took lock or socket away.
        """
        settings = self.settings
        async with AsyncExitStack() as stack:
            lock = await anyio.to_thread.run_sync(self._take_lock)
            stack.callback(lock.close)
            listening = await anyio.to_thread.run_sync(self._listen)
            if self._own is not None:
                stack.push_async_callback(_shielded, anyio.to_thread.run_sync, self._own.close)
            log = await SqliteLog.open(settings.log_path)
            stack.push_async_callback(_shielded, log.close)
            watched = (settings.lock_path,) if self._own is None else (settings.lock_path, self._own.path)
            await log.watch(*watched)
            for name in await log.unerased():  # the daemon was killed between a tombstone and the erasure
                await log.erase(name)
            try:
                await self._serve(log, listening, signals)
            except* StorageFailed as failures:
                raise _first(failures) from None
            except* Replaced as failures:
                raise _first(failures) from None

    def _take_lock(self) -> DataLock:
        os.close(private_directory(self.settings.data_dir))
        return DataLock(self.settings.lock_path)

    def _listen(self) -> socket.socket:
        if self._inherited is not None:
            return self._inherited
        self._own = OwnSocket(self.settings.socket)
        return self._own.sock

    async def _serve(self, log: EventLog, listening: socket.socket, signals: bool) -> None:
        async with anyio.create_task_group() as background:

            def spawn(work: Coroutine[Any, Any, None]) -> None:
                background.start_soon(_as_function(work))

            status_file = StatusFile(status_path(self.settings.socket))
            registry = Registry(log)
            fanout = Fanout(log, registry, self.settings, spawn)
            totals = Totals(status_file.show)
            writer = Writer(log, registry, fanout, totals, self.settings, spawn=spawn)
            reads = Reads(
                log,
                registry,
                fanout,
                refresh=writer.upkeep.refresh,
                status=lambda: report(self._birth, log, registry, server),
            )
            server = Server(self.settings, writer, reads, fanout, spawn=spawn, stop=self.stop)
            if signals:
                await background.start(self._heed_signals)
            background.start_soon(status_file.run)
            background.start_soon(writer.upkeep.recover)
            background.start_soon(self._watch)
            if self.settings.idle_exit_s is not None:
                background.start_soon(self._watch_idleness, server, self.settings.idle_exit_s)
            async with anyio.create_task_group() as writing:
                writing.start_soon(writer.run)
                await self._accept(server, listening)
                writer.close()
            await self._drain(server)
            background.cancel_scope.cancel()

    async def _accept(self, server: Server, listening: socket.socket) -> None:
        """Serve connections until it is time to stop."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        acceptor = await loop.create_unix_server(lambda: Session(server), sock=listening)
        logger.info("serving %s from %s", self.settings.socket, self.settings.data_dir)
        self.ready.set()
        try:
            await self._stopping.wait()
        finally:
            acceptor.close()
            server.close()

    async def _drain(self, server: Server) -> None:
        """Let connections take their last bytes, for a while."""
        gone = anyio.Event()
        server.on_leave = lambda: None if server.sessions else gone.set()
        for session in list(server.sessions):
            session.finish()
        with anyio.move_on_after(self.settings.drain_s):
            if server.sessions:
                await gone.wait()
        for session in list(server.sessions):
            session.abort()

    # what runs beside

    async def _heed_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            task_status.started()
            async for number in received:
                logger.info("stopping on %s", signal.Signals(number).name)
                self.stop()

    async def _watch(self) -> None:
        """Notice, also while idle, that somebody took the socket or the data directory away."""
        while True:
            await anyio.sleep(self.settings.watch_s)
            if not await anyio.to_thread.run_sync(self._still_ours):
                raise Replaced(f"{self.settings.socket} or {self.settings.lock_path} was removed or replaced")

    def _still_ours(self) -> bool:
        return os.path.exists(self.settings.lock_path) and (self._own is None or self._own.still_ours())

    async def _watch_idleness(self, server: Server, idle_s: float) -> None:
        """Stop once nobody has been connected for a while."""
        changed = anyio.Event()

        def left() -> None:
            nonlocal changed
            changed.set()
            changed = anyio.Event()

        server.on_leave = left
        while True:
            with anyio.move_on_after(idle_s) as waited:
                await changed.wait()
            if waited.cancelled_caught and not server.sessions:
                logger.info("stopping: no connection for %g s", idle_s)
                self.stop()
                return


def _as_function(work: Coroutine[Any, Any, None]) -> Callable[[], Coroutine[Any, Any, None]]:
    return lambda: work


async def _shielded(close: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> None:
    with anyio.CancelScope(shield=True):
        await close(*args)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first plain exception of a group."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error  # pyright: ignore[reportUnknownArgumentType]
