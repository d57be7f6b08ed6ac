"""Accepts relays, opens a session for each, and decides when the worker ends."""

import asyncio
import faulthandler
import json
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any, cast

from punchlist.base import __version__, host_variables
from punchlist.connection import starter
from punchlist_apps.common.http.connections import raise_connection_limit
from punchlist_apps.mcp.updates import Feeds, open_feeds
from punchlist_apps.relay import frames
from punchlist_apps.worker.installation import read_stamp
from punchlist_apps.worker.opening import Refused, open_server
from punchlist_apps.worker.place import Place
from punchlist_apps.worker.session import LEAVE_S, FrameReader, Session
from punchlist_schemas.build import build_stamp
from punchlist_schemas.system import os_calls

MAX_SESSIONS = 256

FAULT = 70
"""Exit code of a session whose code failed."""

_CHECK_S = 60.0
"""Time between two checks whether the installation has changed, in seconds."""

_SUCCESSOR_S = 30.0

# Since Python 3.13, asyncio unlinks the socket by default, even if the successor has it.
_LEAVE_SOCKET: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
_log = logging.getLogger(__name__)


class Worker:
    """The worker of one installation and data directory.

    Args:
        path: Path of its socket.
        stamp: What `read_stamp` returned before this module was loaded.
        place: Its socket and its lock.
        idle_s: Time without a session after which the worker ends, in seconds; 0 for never.
        hang_s: Time for which the event loop may be blocked, in seconds.
    """

    def __init__(  # noqa: PLR0913 - the options of a process
        self, path: str, data_dir: str, stamp: int, place: Place, idle_s: float, hang_s: float
    ) -> None:
        self._path = path
        self._data_dir = data_dir
        self._place = place
        self._idle_s = idle_s
        self._hang_s = hang_s
        self._sessions: set[Session] = set()
        self._suspects = asyncio.Lock()
        self._started_at = time.time()
        self._stamp = self._failed_stamp = stamp
        self._build = build_stamp(__version__)
        self._feeds: Feeds
        self._used_at = 0.0
        self._ended = asyncio.Event()
        self._emptied = asyncio.Event()
        self._handover: asyncio.Task[None] | None = None

    async def serve(self, ready: int | None) -> None:
        """Serve relays until the worker is idle, stopped or replaced."""
        loop = asyncio.get_running_loop()
        self._used_at = loop.time()
        async with open_feeds() as self._feeds:
            server = await asyncio.start_unix_server(self._serve_relay, sock=self._place.listen(), **_LEAVE_SOCKET)
            loop.add_signal_handler(signal.SIGTERM, self._ended.set)
            loop.add_signal_handler(signal.SIGUSR1, self.hand_over)
            if ready is not None:
                os.write(ready, b"ready")
                os.close(ready)
            self._place.notify("READY=1")
            tasks = [asyncio.create_task(task()) for task in (self._watch_loop, self._watch_life)]
            await self._ended.wait()
            server.close()
            has_successor = self._handover is not None or not self._place.is_found
            if self._handover is None:
                # The next worker need not wait for running calls. A successor that was late keeps the lock.
                self._place.leave()
            await self._leave_sessions(has_successor=has_successor)
            for task in tasks:
                task.cancel()

    async def _leave_sessions(self, *, has_successor: bool) -> None:
        await asyncio.gather(*(session.leave(has_successor=has_successor) for session in self._sessions))
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                while self._sessions:
                    self._emptied.clear()
                    await self._emptied.wait()

    async def _serve_relay(self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if os_calls.read_peer(writer.get_extra_info("socket"))[1] == os.getuid():
                await self._serve_session(FrameReader(stream), writer)
        except Exception as error:
            if not _is_disconnection(error):
                raise
        finally:
            self._used_at = asyncio.get_running_loop().time()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _serve_session(self, reader: FrameReader, writer: asyncio.StreamWriter) -> None:
        op, _, body = await anext(reader, (b"", 0, b""))
        if op == frames.STOP:
            self._ended.set()
            await asyncio.Event().wait()  # the end of this process closes the connection
        if op == frames.STATUS:
            writer.write(frames.encode(frames.STATUS, 0, self._encode_status()))
        if op != frames.HELLO or self._ended.is_set():
            return
        self._check_installation()
        hello = frames.decode_hello(body)
        op, _, memory = await anext(reader, (b"", 0, b""))
        session = Session(hello.session, reader, writer, self._suspects)
        if len(self._sessions) >= MAX_SESSIONS:
            session.send(frames.DECLINE, 0, b"the worker serves %d sessions" % MAX_SESSIONS)
            return
        self._sessions.add(session)
        try:
            pid = os_calls.read_peer(writer.get_extra_info("socket"))[0]
            remember = partial(session.send, frames.MEMORY, 0)
            async with open_server(hello, pid, self._feeds, memory, remember) as server:
                session.send(frames.ACCEPT)
                await session.serve(server)
            session.end()
        except Refused as refused:
            session.end(refused.code, refused.text.encode())
        except Exception as error:
            if _is_disconnection(error):
                raise
            # The error of one session ends this session alone.
            _log.exception("a session failed")
            session.end(FAULT, b"punch: this session failed; the log is mcp.log\n")
        finally:
            self._sessions.discard(session)
            self._emptied.set()

    def _encode_status(self) -> bytes:
        status = {"sessions": len(self._sessions), "since": int(self._started_at * 1000), "build": self._build}
        return json.dumps(status).encode()

    def _check_installation(self) -> None:
        """Hand over to a successor if the installation's files have changed."""
        if read_stamp() not in (self._stamp, self._failed_stamp):
            self.hand_over()

    def hand_over(self) -> None:
        """Start a successor. Once it is ready, the sessions move to it, and this worker ends."""
        if self._handover is None and not self._ended.is_set():
            self._handover = asyncio.create_task(self._start_successor())

    async def _start_successor(self) -> None:
        stamp, (inherited, passed) = read_stamp(), self._place.bequeath()
        program = starter.worker(self._path, self._data_dir, *inherited, passed=passed)
        pid = 0
        try:
            starting = await asyncio.to_thread(starter.Starting, program)
            pid, report = starting.pid, await asyncio.to_thread(starting.wait, _SUCCESSOR_S)
        except OSError as error:
            report = starter.Report(ready=False, reason=str(error))
        if report is None or not report.ready:
            _log.error("no successor started: %s", report and report.reason)
            self._failed_stamp, self._handover = stamp, None
            return
        # The service manager would end the successor with this process.
        self._place.notify(f"MAINPID={pid}")
        self._ended.set()

    async def _watch_loop(self) -> None:
        """End this process, with all stacks in the log, if its event loop is blocked."""
        while True:
            faulthandler.dump_traceback_later(self._hang_s, exit=True)
            await asyncio.sleep(self._hang_s / 4)

    async def _watch_life(self) -> None:
        """End when there was no session for some time, or the socket is gone. Look for a newer installation."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_CHECK_S, self._idle_s or _CHECK_S))
            is_idle = self._idle_s and not self._sessions and loop.time() - self._used_at >= self._idle_s
            # Without its socket it would keep new relays from a worker. The next one serves its sessions.
            if is_idle or (self._handover is None and not self._place.is_found):
                self._ended.set()
            self._check_installation()


def _is_disconnection(error: Exception) -> bool:
    """Return whether the relay is gone, or the peer isn't a relay."""
    if isinstance(error, ExceptionGroup):
        return all(_is_disconnection(part) for part in cast("ExceptionGroup[Exception]", error).exceptions)
    return isinstance(error, ConnectionError | frames.InvalidFrame)


def run(worker: Worker, ready: int | None) -> None:
    """Serve until the worker ends."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    raise_connection_limit()
    os.umask(0o077)
    os.chdir("/")
    host_variables.remove(os.environ)  # each session brings its own
    asyncio.run(worker.serve(ready))
    sys.stderr.flush()
