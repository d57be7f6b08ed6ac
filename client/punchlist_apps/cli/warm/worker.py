"""Runs commands for the program in `client/punch.c`, one at a time, in the caller's surroundings.

A fork costs more than a command that only makes a call. Therefore a worker runs another command after a command of
`REPEATABLE`, if that command left nothing behind: no thread, process or open file, and no interrupt or fault.
"""

import fcntl
import os
import resource
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any, NamedTuple

from punchlist.connection import launch
from punchlist_apps.cli import dispatch
from punchlist_apps.cli.parsing.index import OWN_PROCESS, REPEATABLE
from punchlist_apps.cli.printing import exit_codes, stored
from punchlist_apps.cli.warm.linux import create_proof, read_confinement
from punchlist_apps.common import process
from punchlist_schemas.system import os_calls

MAX_MEMORY_KIB = 128 << 10
"""Memory use after which a worker runs no further command, in KiB."""

_REFUSED = b"\0"
"""In place of the number of the proof's descriptor."""

_PLAIN = 256
"""In place of an exit code: the plain program has to run the command."""

_UNWRITTEN = 120
"""The interpreter's exit code if it can't write the last output."""

_STDERR = 2
_NUMBERS = 3
_HEAD_BYTES = 4 * _NUMBERS
_DESCRIPTORS = 4


class NeedsOwnProcess(BaseException):
    """The command can't run in a worker. It has changed nothing yet, so the plain program can run it from its start."""


class Command(NamedTuple):
    """A command as `send_command` in `client/punch.c` sends it.

    Attributes:
        proof: What the program read in place of this process's descriptor.
        descriptors: Standard input, output and error, and the working directory.
    """

    proof: bytes
    arguments: list[bytes]
    environment: list[bytes]
    umask: int
    descriptors: list[int]


class Worker:
    """Runs commands, one at a time, from connections to `listener`."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        os.environ.clear()
        self._confinement = read_confinement(os.getpid())
        # Landlock shows in no file of /proc, but it denies reading the descriptors of a process outside.
        self._proof, self._proof_file = create_proof()
        self._log = os.dup(_STDERR)
        self._open_files = _count_open_files()
        self._is_repeatable = True
        self._may_repeat = False
        self._link: socket.socket | None = None

    def is_clean(self) -> bool:
        """Return whether the last command left nothing behind, so that this process can run another one."""
        return (
            self._is_repeatable
            and threading.active_count() == 1
            and _count_open_files() == self._open_files
            and not _has_children()
            and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < MAX_MEMORY_KIB
        )

    def serve(self, link: socket.socket) -> None:
        """Receive a command, run it, and send its exit code."""
        link.setblocking(True)
        # The program outside checks this process, too. Nothing may be carried into or out of a sandbox.
        try:
            caller = os_calls.read_peer(link)[0]
            is_equal = self._is_equal(caller)
            link.send(bytes([self._proof_file]) if is_equal else _REFUSED)
        except OSError:  # the program has ended, or no longer waits
            return
        if not is_equal or (command := _receive(link)) is None or command.proof != self._proof:
            return
        self._is_repeatable = self._may_repeat = False
        try:
            _enter(command)
        except OSError:  # the plain program says what is wrong with a stream
            code = _PLAIN
        else:
            process.record_pid(caller)
            self._watch(link)
            code = self._run()
            signal.signal(signal.SIGIO, signal.SIG_IGN)
        _leave(self._log)
        with suppress(BrokenPipeError):
            link.send(code.to_bytes(4, sys.byteorder))

    def _is_equal(self, caller: int) -> bool:
        """Return whether a process has this one's confinement, as far as it can be read."""
        try:
            return read_confinement(caller) == self._confinement
        except OSError:
            return False

    def _run(self) -> int:
        try:
            code = dispatch.run(sys.argv[1:], self._admit)
            sys.stdout.flush()
            sys.stderr.flush()
        except NeedsOwnProcess:
            return _PLAIN
        except KeyboardInterrupt:
            return exit_codes.INTERRUPTED
        except OSError:  # output that can't be written must not reach the next command's streams
            return _UNWRITTEN
        self._is_repeatable = self._may_repeat and code not in (exit_codes.FAULT, exit_codes.INTERRUPTED)
        return code

    def _admit(self, command: str, waits: bool) -> None:
        if command in OWN_PROCESS:
            raise NeedsOwnProcess
        self._may_repeat = command in REPEATABLE and not waits
        if not self._may_repeat:
            # If the warm process is killed, no process accepts connections to a listener that is still open here.
            self._listener.close()

    def _watch(self, link: socket.socket) -> None:
        """Raise the caller's signals in this process, and end with the caller."""
        self._link = link
        signal.signal(signal.SIGIO, self._raise_signals)
        fcntl.fcntl(link, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(link, fcntl.F_SETFL, os.O_ASYNC)
        self._raise_signals()

    def _raise_signals(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        assert self._link is not None, "set by _watch"
        waiting = socket.MSG_DONTWAIT
        while True:
            try:
                data = self._link.recv(1, waiting)
            except BlockingIOError:
                return
            if not data:  # the caller was killed
                os._exit(exit_codes.INTERRUPTED)
            if data[0] == signal.SIGTSTP:
                waiting = 0  # suspended
            elif data[0] == signal.SIGCONT:
                waiting = socket.MSG_DONTWAIT
            else:
                os.kill(0, data[0])


class _Terminal:
    """Standard input from a terminal, which this process can't share with the caller's shell as jobs do."""

    def __getattr__(self, name: str) -> Any:
        raise NeedsOwnProcess


def _receive(link: socket.socket) -> Command | None:
    """Return the next command; None if the program gave up."""
    head, descriptors, _, _ = socket.recv_fds(link, _HEAD_BYTES, _DESCRIPTORS)
    if len(head) < _HEAD_BYTES or len(descriptors) < _DESCRIPTORS:
        return None
    size, count, umask = memoryview(head).cast("I")
    data = link.recv(size - _HEAD_BYTES, socket.MSG_WAITALL)
    if len(data) < size - _HEAD_BYTES:
        return None
    proof, *texts = data.split(b"\0")[:-1]
    return Command(proof, texts[:count], texts[count:], umask, descriptors)


def _enter(command: Command) -> None:
    """Adopt the caller's surroundings."""
    *standard, directory = command.descriptors
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    os.fchdir(directory)
    for descriptor in command.descriptors:
        os.close(descriptor)
    os.umask(command.umask)
    for entry in reversed(command.environment):  # the first of two entries counts
        name, equals, value = entry.partition(b"=")
        if name and equals:
            os.environb[name] = value
    time.tzset()
    sys.argv = [os.fsdecode(argument) for argument in command.arguments]
    _open_streams()


def _open_streams() -> None:
    """Open the standard streams as the interpreter does at its start. Their encodings depend on the same settings."""
    first = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        original = first[number]
        assert original is not None, "the warm process starts with all three"
        buffering = 1 if number == _STDERR or os.isatty(number) else -1
        stream: Any = open(number, mode, buffering, original.encoding, original.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, _Terminal() if name == "stdin" and os.isatty(number) else stream)


def _leave(log: int) -> None:
    """Let go of the caller's surroundings: a reader of its output must see the end. Faults go to `log` again."""
    null = os.open(os.devnull, os.O_RDWR)
    for number, own in enumerate((null, null, log)):
        os.dup2(own, number)
    os.close(null)
    os.chdir("/")
    os.environ.clear()  # it may contain secrets
    forget_command()


def forget_command() -> None:
    """Forget all that a repeatable command leaves in the modules."""
    stored.forget()
    launch.forget_connections()


def _count_open_files() -> int:
    return len(os.listdir(os_calls.OPEN_FILES))


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True
