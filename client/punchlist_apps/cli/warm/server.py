"""The warm process. It forks a worker if no idle one accepts a connection.

It has no threads and no event loop, since neither survives a fork. It ends when the program's files change, after an
idle time, and with `punch daemon stop`; its idle workers then end too.
"""

import fcntl
import gc
import importlib
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from select import select
from types import FrameType
from typing import NoReturn

from punchlist.connection import launch
from punchlist_apps.cli.parsing.index import COMMANDS
from punchlist_apps.cli.parsing.parser import build_command_parser
from punchlist_apps.cli.printing import exit_codes
from punchlist_apps.cli.warm.linux import watch_directories
from punchlist_apps.cli.warm.worker import Worker

IDLE_EXIT_S = 900
"""Time without commands after which the warm process ends, in seconds."""

WORKER_IDLE_EXIT_S = 60
"""Time without commands after which a worker ends, in seconds."""

_CHECK_S = 60
"""Time without a command between two checks that no other process has replaced the socket, in seconds."""

_ACCEPT_S = 0.002
"""Time that an idle worker has to accept a connection, in seconds."""

_START_S = 0.5
"""Upper limit for the time until a new worker accepts connections, in seconds."""

_BACKLOG = 64
_LAZY = ("punchlist.clients.sync", "punchlist_apps.cli.calling.completions", "punchlist_apps.files.importers.export")
"""Modules that commands load only when they use them."""

_SIGNALS = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTSTP)
"""Signals that commands get from their callers and handle as the system does by default."""


def main() -> int:
    """Serve commands on the socket that the argument names, unless another process does."""
    path = sys.argv[1]
    os.umask(0o077)
    _reset_signals()
    try:
        listener, changes, file = _prepare(path)
    except BlockingIOError:
        return exit_codes.LOST_RACE
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGCHLD, _reap)
    try:
        _serve(listener, changes, path, file)
    finally:
        if _identify(path) == file:
            os.unlink(path)
    return exit_codes.OK


def _reset_signals() -> None:
    """Undo what the command that started this process ignores or blocks, such as Ctrl-C in a background job."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _prepare(path: str) -> tuple[socket.socket, int, tuple[int, int] | None]:
    """Listen at `path`, with all commands loaded.

    Returns:
        The socket, a descriptor that is readable after the program's files changed, and the socket's file.

    Raises:
        BlockingIOError: Another process listens there, or is about to.
    """
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(ConnectionRefusedError, FileNotFoundError):
            launch.connect(path).close()
            raise BlockingIOError
        changes = _load()
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        return listener, changes, _identify(path)
    finally:
        os.close(folder)


def _identify(path: str) -> tuple[int, int] | None:
    """Return what distinguishes a file from a later one with its path; None if there is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_ctime_ns


def _load() -> int:
    """Load all commands, and watch the directories of all modules.

    Raises:
        BlockingIOError: A module's file changed after it was loaded. The next command starts another warm process.
    """
    began_s = time.time()
    for entry in COMMANDS.values():
        build_command_parser(entry)
    for name in _LAZY:
        importlib.import_module(name)
    files = [file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))]
    gc.collect()
    gc.freeze()
    changes = watch_directories({os.path.dirname(file) for file in files})
    if any(os.stat(file).st_ctime > began_s for file in files if os.path.exists(file)):
        raise BlockingIOError
    return changes


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit


def _reap(number: int, frame: FrameType | None) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(listener: socket.socket, changes: int, path: str, file: tuple[int, int] | None) -> None:
    alive, until_end = os.pipe()
    last = time.monotonic()
    while time.monotonic() - last < IDLE_EXIT_S and _identify(path) == file:
        ready = select([listener, changes], [], [], _CHECK_S)[0]
        if changes in ready:
            return
        if ready:
            last = time.monotonic()
            time.sleep(_ACCEPT_S)
            if select([listener], [], [], 0)[0]:
                _start_worker(listener, [changes, alive], until_end)


def _start_worker(listener: socket.socket, ends: list[int], until_end: int) -> None:
    """Fork a worker, and wait until it accepts connections. Otherwise one connection could get several workers."""
    started, ready = os.pipe()
    if os.fork() == 0:
        os.close(until_end)
        os.close(started)
        _work(listener, ends, ready)
    os.close(ready)
    select([started], [], [], _START_S)
    os.close(started)


def _work(listener: socket.socket, ends: list[int], ready: int) -> NoReturn:
    """Run commands until a descriptor of `ends` is readable, none comes for a while, or one leaves something behind.

    Args:
        ready: Descriptor to which a byte is written when the worker accepts connections.
    """
    code = exit_codes.FAULT
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        worker = Worker(listener)
        with suppress(BrokenPipeError):
            os.write(ready, b"\0")
        while worker.is_clean() and select([listener, *ends], [], [], WORKER_IDLE_EXIT_S)[0] == [listener]:
            with suppress(BlockingIOError):  # another worker was faster
                link, _ = listener.accept()
                with link:
                    worker.serve(link)
        code = exit_codes.OK
    except (ConnectionError, KeyboardInterrupt):  # the program has ended
        pass
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
