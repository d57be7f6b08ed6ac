"""Creates and connects the parts of a daemon: start order, readiness, and shutdown order."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from punchlist_schemas.rendezvous import status_path, stopped_path
from punchlist_schemas.results import FileIdentity
from punchlistd.app.backups import back_up
from punchlistd.app.machines import Machines, is_configured
from punchlistd.app.report import StartTime, build_status
from punchlistd.engine.claims import Claims
from punchlistd.engine.lists.access import Access
from punchlistd.engine.lists.conversations import Conversations
from punchlistd.engine.lists.history import History
from punchlistd.engine.lists.titles import Titles
from punchlistd.engine.reading.queries import Queries
from punchlistd.engine.reading.search import Search
from punchlistd.engine.timers.deferrals import Deferrals
from punchlistd.engine.timers.idle import Idle
from punchlistd.engine.watching.subscriptions import Subscriptions
from punchlistd.engine.writing.confirm import Confirmer
from punchlistd.engine.writing.idempotency import Replays
from punchlistd.engine.writing.inbox import Inbox
from punchlistd.engine.writing.maintenance import Maintenance, Totals
from punchlistd.engine.writing.transaction import Transactor
from punchlistd.engine.writing.undos import Undos
from punchlistd.engine.writing.writer import Spawn, Writer
from punchlistd.metrics import Metrics
from punchlistd.net.connection import Connection
from punchlistd.net.connection.connections import Connections
from punchlistd.net.listener import (
    BACKLOG,
    InheritedSocket,
    ListeningSocket,
    OwnSocket,
    PlaceUnusable,
    open_private_directory,
)
from punchlistd.net.methods import ConnectionMethods
from punchlistd.net.router import Router, build_table
from punchlistd.net.sharing import Sharing
from punchlistd.offline.leftovers import remove_leftovers
from punchlistd.process.guards import Faults, Replaced, pick_exception, watch
from punchlistd.process.lock import DataLock
from punchlistd.process.status_file import StatusFile
from punchlistd.settings import Settings
from punchlistd.store.file.files import sibling
from punchlistd.store.port import Damaged, EventLog, StorageFailed, StorageFull
from punchlistd.store.recovery.aside import reject_unfinished_restore
from punchlistd.store.search import discard
from punchlistd.store.sqlite import SqliteLog

logger = logging.getLogger(__name__)

TAKE_OVER_S = 10.0
"""Maximum time that a daemon with an inherited socket waits for its predecessor to release the lock, in seconds."""

# Since Python 3.13, asyncio unlinks the socket by default, even if it is inherited or another daemon has bound it.
_LEAVE_SOCKET: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}


class Engine:
    """The parts between the log and the connections' calls.

    Args:
        log: The event log.
        settings: The daemon's settings.
        spawn: Runs a coroutine in the background.
        show: Called with the numbers of unfinished and in-progress tasks in lists without a user, whenever one of these
            numbers changes.
    """

    def __init__(self, log: EventLog, settings: Settings, *, spawn: Spawn, show: Callable[[int, int], None]) -> None:
        self.log = log
        self.inbox = Inbox()
        self.metrics = Metrics()
        self.claims = Claims(settings.grace_s, self.inbox.submit)
        self.idle = Idle(settings.idle_clear_s, self.inbox.submit)
        self.deferrals = Deferrals(self.inbox.submit)
        self.confirmer = Confirmer(settings.confirm_s, settings.later_s)
        self.history = History(log)
        self.conversations = Conversations(
            log,
            self.history,
            self.inbox.wait_until_settled,
            loaded=(self.claims.on_loaded, self.idle.follow, self.deferrals.follow),
            add_claim_details=self.claims.add_details,
            present=self.claims.present,
        )
        self.claims.reservations.loaded = lambda: [entry.state for entry in self.conversations.loaded.values()]
        self.access = Access(log, self.conversations)
        self.subscriptions = Subscriptions(
            log, self.conversations, self.access, settings, spawn, Titles(self.conversations, self.history)
        )
        self.claims.leases.show = self.claims.reservations.show = self.subscriptions.show_tasks
        self.search = Search(
            sibling(settings.log_path, ".search"),
            settings.log_path,
            log,
            self.conversations,
            self.access,
            refresh=lambda: self.maintenance.refresh(),  # noqa: PLW0108 - created below, because it depends on search
        )
        self.maintenance = Maintenance(
            log,
            self.conversations,
            Totals(show),
            metrics=self.metrics,
            settings=settings,
            wake=self.inbox.work.give,
            forget=self.search.forget,
        )
        undos = Undos(self.conversations, self.access, self.history)
        self.transactor = transactor = Transactor(
            log,
            self.conversations,
            self.access,
            claims=self.claims,
            idle=self.idle,
            deferrals=self.deferrals,
            confirmer=self.confirmer,
            undos=undos,
        )
        self.writer = Writer(
            log,
            self.inbox,
            transactor,
            conversations=self.conversations,
            access=self.access,
            history=self.history,
            claims=self.claims,
            undos=undos,
            replays=Replays(log, self.conversations, self.access, self.history),
            subscriptions=self.subscriptions,
            maintenance=self.maintenance,
            metrics=self.metrics,
            batch_calls=settings.batch_calls,
            spawn=spawn,
        )
        self.connections: Connections[Connection] = Connections(
            settings,
            claims=self.claims,
            subscriptions=self.subscriptions,
            metrics=self.metrics,
            wait_for_writer=self.inbox.barrier,
            spawn=spawn,
        )

    def build_router(
        self,
        queries: Queries,
        stop: Callable[[], None],
        sharing: Sharing,
        *,
        spawn: Spawn,
        lock: FileIdentity | None = None,
        read_only: bool = False,
    ) -> Router:
        """Build the router that dispatches calls to these parts, to `queries` and to `sharing`.

        Args:
            queries: Answers read calls.
            stop: Stops the daemon.
            sharing: Answers calls about spaces and shared lists.
            spawn: Runs a coroutine in the background.
            lock: Identity of the data directory's lock.
            read_only: Whether all changes are rejected.
        """
        return Router(
            build_table(ConnectionMethods(queries, self.confirmer, stop, lock), queries, self.search, sharing),
            self.connections,
            queries,
            inbox=self.inbox,
            submit=self.writer.submit,
            claims=self.claims,
            spawn=spawn,
            read_only=read_only,
        )

    def close(self) -> None:
        """Stop all timers. Call after the writer has ended."""
        self.claims.close()
        self.idle.close()
        self.deferrals.close()


class App:
    """One daemon, from start to end.

    Args:
        settings: The settings.
        inherited: A listening socket from the service manager. If None, the daemon binds its own socket.
        read_only: Whether all changes are rejected.
        ending: Called when a fatal condition ends the daemon.
    """

    def __init__(
        self,
        settings: Settings,
        inherited: InheritedSocket | None = None,
        read_only: bool = False,
        ending: Callable[[], None] = lambda: None,
    ) -> None:
        if inherited is not None:
            settings = msgspec.structs.replace(settings, socket=inherited.path)
        self.settings = settings
        self.ready = anyio.Event()
        self.stopping = anyio.Event()
        self._inherited = inherited
        self._read_only = read_only
        self._ending = ending
        self._lock: FileIdentity | None = None
        self._start_time = StartTime()
        self._check: Callable[[], Coroutine[Any, Any, None]]

    def stop(self) -> None:
        self.stopping.set()

    async def check(self) -> None:
        """Wait until the writer is idle and the database thread has responded. Call only after `ready`."""
        await self._check()

    async def run(self, signals: bool = True) -> None:
        """Serve until stopped.

        The lock is taken and the socket opened before the log, so that clients can connect and wait while a long log is
        being opened.

        Raises:
            AlreadyRunning: Another daemon holds the data directory.
            SocketTaken: Another daemon serves the socket.
            PlaceUnusable: The socket's directory or the data directory can't be used.
            LogUnusable: The log can't be used; it was not changed.
            StorageFailed: The outcome of a write is unknown.
            Replaced: The lock or the socket was removed or replaced.
            Exception: Any other exception from a background task.
        """
        settings = self.settings
        async with AsyncExitStack() as stack:
            lock = await anyio.to_thread.run_sync(self._acquire_lock)
            stack.callback(lock.close)
            self._lock = None if self._read_only else FileIdentity(**lock.identity)
            listening = await anyio.to_thread.run_sync(self._listen)
            stack.push_async_callback(_close_shielded, anyio.to_thread.run_sync, listening.close)
            for path in await anyio.to_thread.run_sync(
                remove_leftovers, settings.data_dir, os.path.dirname(settings.socket)
            ):
                logger.info("removed %s, left behind by a killed process", path)
            await anyio.to_thread.run_sync(reject_unfinished_restore, settings.data_dir)
            log = await SqliteLog.open(
                settings.log_path,
                watch=(settings.lock_path, settings.socket),
                twin=f"{settings.socket}.mark",
                reserve_bytes=settings.reserve_bytes,
            )
            stack.push_async_callback(_close_shielded, log.close)
            await _finish_erasures(log)
            guarded = {settings.lock_path: lock.is_in_place, settings.socket: listening.is_in_place}
            try:
                await self._serve(log, listening, guarded, signals)
            except ExceptionGroup as failures:
                raise pick_exception(failures, (StorageFailed, Replaced)) from None

    def _acquire_lock(self) -> DataLock:
        os.close(open_private_directory(self.settings.data_dir))
        path = self.settings.lock_path
        try:
            patience_s = 0.0 if self._inherited is None else TAKE_OVER_S
            return DataLock(path, patience_s, self.settings.socket)
        except OSError as error:
            message = f"{path} can't be opened or locked: {error.strerror}. Choose another data directory."
            raise PlaceUnusable(message) from error

    def _listen(self) -> ListeningSocket:
        listening = self._inherited or OwnSocket(self.settings.socket)
        # The file records that the previous daemon was stopped on purpose. Delete the file so that it is missing if
        # this daemon ends in any other way.
        with contextlib.suppress(OSError):
            os.unlink(stopped_path(self.settings.socket))
        return listening

    async def _serve(
        self, log: SqliteLog, listening: ListeningSocket, guarded: dict[str, Callable[[], bool]], signals: bool
    ) -> None:
        faults = Faults(self._ending)
        with faults.capture():
            async with anyio.create_task_group() as background:
                engine, router, machines = self._connect(log, background)
                if not self._read_only and await anyio.to_thread.run_sync(is_configured, self.settings, os.environ):
                    # Start this before any list is loaded, so that every change to a shared list goes through its lane.
                    await machines.start()
                background.start_soon(engine.maintenance.recover)
                background.start_soon(faults.raise_first)
                background.start_soon(watch, guarded, self.settings.watch_s)
                if signals:
                    await background.start(self._await_signals)
                if self.settings.idle_exit_s is not None:
                    background.start_soon(self._watch_idleness, engine, self.settings.idle_exit_s)
                async with anyio.create_task_group() as writing:
                    writing.start_soon(engine.writer.run)
                    await self._accept(engine, router, listening)
                    await machines.close()
                    engine.inbox.close()
                engine.close()
                await self._drain(engine.connections)
                await engine.search.close()
                background.cancel_scope.cancel()

    def _connect(self, log: SqliteLog, background: anyio.abc.TaskGroup) -> tuple[Engine, Router, Machines]:

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            background.start_soon(_as_function(work))

        status_file = StatusFile(status_path(self.settings.socket))
        engine = Engine(log, self.settings, spawn=spawn, show=status_file.show)
        connections = engine.connections
        queries = Queries(
            log,
            engine.conversations,
            engine.access,
            engine.history,
            engine.subscriptions,
            data_dir=str(self.settings.data_dir),
            refresh=engine.maintenance.refresh,
            backup=lambda params: back_up(log, params),
            status=lambda user: build_status(user, self._start_time, log, engine.conversations, connections),
        )
        machines = Machines(self.settings, os.environ, engine, spawn, read_only=self._read_only)
        router = engine.build_router(
            queries, self.stop, machines, spawn=spawn, lock=self._lock, read_only=self._read_only
        )
        if self._read_only:
            engine.idle.close()
            engine.deferrals.close()
            engine.search.stay_in_memory()
        if log.regressed is not None:
            marked, head = log.regressed
            message = (
                f"log_regressed: it ends at {head} but had reached {marked}; the "
                "events between are lost, and the log has a new epoch"
            )
            logger.error("%s: %s", self.settings.log_path, message)
            engine.metrics.error(message)

        async def check() -> None:
            await engine.inbox.wait_until_settled()
            await log.sizes()

        self._check = check
        background.start_soon(status_file.run)
        return engine, router, machines

    async def _accept(self, engine: Engine, router: Router, listening: ListeningSocket) -> None:
        """Serve connections until `stopping` is set.

        Connections that arrive later stay in the socket's backlog until the data directory is released. If they were
        rejected before that, their clients would start a daemon that can't get the lock.
        """
        connections, loop = engine.connections, asyncio.get_running_loop()
        server_socket = listening.sock.dup()
        server = await loop.create_unix_server(
            lambda: Connection(connections, router.begin), sock=server_socket, backlog=BACKLOG, **_LEAVE_SOCKET
        )
        logger.info("serving %s from %s", self.settings.socket, self.settings.data_dir)
        self.ready.set()
        try:
            await self.stopping.wait()
        finally:
            # Finish connections that are just being accepted: closing the server would leak them (CPython's gh-109564).
            loop.remove_reader(server_socket)
            with anyio.CancelScope(shield=True):
                await asyncio.sleep(0)
            server.close()
            connections.close()

    async def _drain(self, connections: Connections[Connection]) -> None:
        for connection in list(connections.live):
            connection.finish()
        with anyio.move_on_after(self.settings.drain_s):
            while connections.live:
                await connections.left_signal.take()
        for connection in list(connections.live):
            connection.abort()

    # Background tasks

    async def _await_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            task_status.started()
            async for number in received:
                logger.info("stopping on %s", signal.Signals(number).name)
                self.stop()

    async def _watch_idleness(self, engine: Engine, idle_s: float) -> None:
        """Stop after `idle_s` seconds without connections, unless a claim's lease is still running."""
        connections = engine.connections
        while True:
            with anyio.move_on_after(idle_s) as timeout:
                await connections.left_signal.take()
            if timeout.cancelled_caught and not connections.live and not len(engine.claims.leases):
                logger.info("stopping: no connection for %g s", idle_s)
                self.stop()
                return


async def _finish_erasures(log: SqliteLog) -> None:
    """Finish the erasures of a daemon that was killed after it wrote a tombstone. Call before the first read.

    Only tombstones that aren't indexed yet are handled. Maintenance repeats erasures that fail because of damage or a
    full disk.
    """
    with contextlib.suppress(StorageFull):
        try:
            for name in log.just_deleted:
                discard(sibling(log.path, ".search"))  # It may contain erased text, and is rebuilt on demand.
                await log.erase(name)
        except Damaged as error:
            logger.error("%s: deleted data is not erased yet: %s", log.path, error)


def _as_function(work: Coroutine[Any, Any, None]) -> Callable[[], Coroutine[Any, Any, None]]:
    return lambda: work


async def _close_shielded(close: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> None:
    with anyio.CancelScope(shield=True):
        await close(*args)
