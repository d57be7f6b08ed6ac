"""One session: lines between a host's pipes and the worker's socket, with a buffer each way.

Neither side's slowness stops the other direction, and no write blocks. After a worker has ended, the kept lines go to
the next one, so that the host notices nothing.
"""

import os
import select
import time

from punchlist_apps.relay import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Callable

    OnFrame = Callable[[int, bytes], object]

PATIENCE_S = 30.0
"""Upper limit for the start of a worker before the first line is read, in seconds."""

RESUME_S = 120.0
"""Upper limit for the time without a worker later, in seconds."""

PING_S = 5.0
"""Time without a byte from the worker after which it is pinged, in seconds."""

HANG_S = 15.0
"""Time without a reply to a ping after which the worker is ended, in seconds. It is suspended: a worker whose loop is
blocked ends itself before."""

MAX_LINE_BYTES = 16 << 20
BUFFER_BYTES = 256 << 10
"""Size of a direction's buffer above which its source isn't read."""

SUSPECT_BREAKS = 2
"""Number of workers that must end during a line before the line runs alone. Most workers are killed for another
reason, and with many lines at once."""

MAX_BREAKS = 5
"""Number of workers that must end during a line before the line is rejected."""

_HANG_BREAKS = 3
"""Weight in these numbers of a worker that hung."""

TOO_LONG = 65
NO_WORKER = 69

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_CHUNK = 1 << 16
_POLL_S = 0.05
"""Time between attempts to connect while another relay starts the worker, in seconds."""

_PAUSES_S = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Time before the next worker is tried, after each one that ended before it finished a line; the last value repeats."""
_NO_REPLY = "no worker replies"
_FAILED = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Unavailable(Exception):
    """No worker can be started."""


def show(text: str) -> None:
    """Write to standard error, as far as somebody reads it."""
    try:
        os.write(_STDERR, text.encode("utf-8", "surrogateescape"))
    except OSError:
        pass


class _End(Exception):
    """The session ends with an exit code; None if it never began."""

    def __init__(self, code: "int | None") -> None:
        super().__init__(code)
        self.code = code


class _Line:
    """A line of the host that isn't done.

    Attributes:
        breaks: Number of workers that ended after they had begun the line; one that hung counts more.
    """

    __slots__ = ("breaks", "has_begun", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.has_begun = False
        self.breaks = 0

    def choose_op(self) -> bytes:
        """Return how the next worker gets the line."""
        if self.breaks < SUSPECT_BREAKS:
            return frames.AGAIN
        return frames.ALONE if self.breaks < MAX_BREAKS else frames.BROKEN


class Relay:
    """One session of a host.

    Attributes:
        trouble: Why no worker serves the session; empty if one did until the end.

    Args:
        connect: Return a connected socket, after starting a worker if needed; None to try again later. Raises
            `Unavailable`.
        end: End the worker at the other end of a socket, because it hangs.
        hello: What identifies the session.
    """

    def __init__(
        self, connect: "Callable[[], Socket | None]", end: "Callable[[Socket], None]", hello: frames.Hello
    ) -> None:
        self.trouble = ""
        self._connect = connect
        self._end = end
        self._hello = hello
        self._sock: Socket | None = None
        self._from_worker = frames.Decoder()
        self._to_worker = bytearray()
        self._to_host = bytearray()
        self._part: list[bytes] = []
        self._part_bytes = 0
        self._number = 0
        self._open: dict[int, _Line] = {}
        self._kept: dict[int, bytes] = {}
        self._wills: dict[int, bytes] = {}
        self._advances: dict[int, bytes] = {}
        """New texts of open lines, which the next output of the worker completes."""
        self._memory = b""
        self._has_ended = False
        """Whether the host has closed its end."""
        self._is_idle = False
        """Whether to connect only when the host sends a line."""
        self._is_accepted = False
        self._is_pinged = False
        self._is_shut = False
        self._code: int | None = None
        self._reason = _NO_REPLY
        """Why the last attempt to reach a worker failed."""
        self._failures = 0
        """Number of workers in a row that ended, or couldn't be started, before they finished a line."""
        self._heard_at = self._retry_at = time.monotonic()
        self._deadline = self._heard_at + PATIENCE_S
        self._on_frame: dict[bytes, OnFrame] = {
            frames.ACCEPT: self._accept,
            frames.DECLINE: self._decline,
            frames.OUTPUT: self._output,
            frames.BEGIN: self._begin,
            frames.KEEP: self._keep,
            frames.DONE: self._forget,
            frames.WILL: self._wills.__setitem__,
            frames.VOID: self._void,
            frames.MEMORY: self._remember,
            frames.LEAVE: self._leave,
            frames.EXIT: self._exit,
        }

    def run(self) -> "int | None":
        """Relay until the session ends, and return the exit code.

        Return None if there is no worker. Nothing was read from the host then, so that the caller can serve it.
        """
        was_blocking = os.get_blocking(_STDOUT)
        os.set_blocking(_STDOUT, False)
        try:
            while self._code is None or self._to_host:
                self._step()
        except _End as end:
            return end.code
        finally:
            # The terminal of a person shares this setting with the shell.
            os.set_blocking(_STDOUT, was_blocking)
        return self._code

    def _step(self) -> None:
        if self._sock is None and self._is_needed and time.monotonic() >= self._retry_at:
            self._dial()
        if self._has_ended and not self._to_worker and self._sock is not None and not self._is_shut:
            self._sock.shutdown(1)
            self._is_shut = True
        if self._has_ended and self._sock is None and not self._open and not self._to_host:
            raise _End(0)
        for descriptor, event in self._poll():
            if descriptor == _STDIN:
                self._read_host()
            elif descriptor == _STDOUT:
                self._write_host(event)
            else:
                self._exchange(event)

    def _poll(self) -> "list[tuple[int, int]]":
        poll = select.poll()
        if self._has_begun and not self._has_ended and self._count_unsent_bytes() < BUFFER_BYTES:
            poll.register(_STDIN, select.POLLIN)
        poll.register(_STDOUT, select.POLLOUT if self._to_host else 0)  # 0: reports only that the host is gone
        is_reading = len(self._to_host) < BUFFER_BYTES
        if self._sock is None:
            return poll.poll(max(0.0, self._retry_at - time.monotonic()) * 1000 if self._is_needed else None)
        reading = select.POLLIN if is_reading else 0
        poll.register(self._sock, reading | (select.POLLOUT if self._to_worker else 0))
        is_waiting = is_reading and (self._open or self._is_pinged or not self._is_accepted)
        limit_s = HANG_S if self._is_pinged or not self._is_accepted else PING_S
        heard_by = self._heard_at + limit_s
        events = poll.poll(max(0.0, heard_by - time.monotonic()) * 1000 if is_waiting else None)
        is_heard = any(number == self._sock.fileno() and event & (select.POLLIN | _FAILED) for number, event in events)
        if is_waiting and not is_heard and time.monotonic() >= heard_by:
            self._on_silence(self._sock)
        return events

    def _count_unsent_bytes(self) -> int:
        """Return the size of what the host sent, and a worker has yet to get."""
        return len(self._to_worker) if self._sock is not None else sum(len(line.text) for line in self._open.values())

    @property
    def _has_begun(self) -> bool:
        return self._is_accepted or self._hello.is_resumed

    @property
    def _is_needed(self) -> bool:
        """Whether a missing worker is needed now."""
        return self._code is None and (bool(self._open) or not (self._is_idle or self._has_ended))

    def _on_silence(self, sock: "Socket") -> None:
        if self._is_accepted and not self._is_pinged:
            self._is_pinged = True
            self._to_worker += frames.encode(frames.PING)
            self._heard_at = time.monotonic()
        else:
            self._end(sock)
            self._lose()

    def _dial(self) -> None:
        try:
            self._sock = self._connect()
        except Unavailable as error:
            self._reason = str(error)
            if not self._hello.is_resumed:
                raise self._give_up() from None
            self._fail()
            return
        if self._sock is None:
            self._retry_after(_POLL_S)
            return
        self._sock.setblocking(False)
        self._is_accepted = self._is_pinged = self._is_shut = self._is_idle = False
        self._heard_at = time.monotonic()
        self._to_worker += frames.encode(frames.HELLO, 0, frames.encode_hello(self._hello))
        self._to_worker += frames.encode(frames.MEMORY, 0, self._memory)
        for number in sorted({*self._kept, *self._open}):
            if number in self._kept:
                self._to_worker += frames.encode(frames.ANSWERED, number, self._kept[number])
            else:
                line = self._open[number]
                self._to_worker += frames.encode(line.choose_op(), number, line.text)

    def _lose(self, *, on_purpose: bool = False) -> None:
        """Let go of a worker that has ended."""
        if self._sock is not None:
            self._sock.close()
        self._sock = None
        self._from_worker = frames.Decoder()
        self._to_worker.clear()
        self._advances.clear()
        for will in self._wills.values():
            self._to_host += will
        self._wills.clear()
        weight = 0 if on_purpose else _HANG_BREAKS if self._is_pinged else 1
        for line in self._open.values():
            line.breaks += weight * line.has_begun
            line.has_begun = False
        if self._is_accepted:
            self._is_accepted, self._hello.is_resumed = False, True
            self._deadline = time.monotonic() + RESUME_S
        self._fail()

    def _fail(self) -> None:
        self._retry_after(_PAUSES_S[min(self._failures, len(_PAUSES_S) - 1)])
        self._failures += 1

    def _retry_after(self, pause_s: float) -> None:
        now = time.monotonic()
        if now > self._deadline:
            raise self._give_up()
        self._retry_at = now + pause_s

    def _give_up(self) -> _End:
        self.trouble = self._reason
        return _End(NO_WORKER if self._hello.is_resumed else None)

    def _read_host(self) -> None:
        try:
            data = os.read(_STDIN, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # such as a reset connection
        if not data:
            self._has_ended = True
            data = b"\n" if self._part else b""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add_line(b"".join([*self._part, end, b"\n"]))
            self._part, self._part_bytes = [], 0
        if rest:
            self._part.append(rest)
            self._part_bytes += len(rest)
        if self._part_bytes > MAX_LINE_BYTES:
            show("punch: a line of the host is longer than 16 MiB\n")
            raise _End(TOO_LONG)

    def _add_line(self, text: bytes) -> None:
        if not text.strip():
            return
        if not self._open and not self._is_pinged:
            self._heard_at = time.monotonic()  # nothing was expected from the worker before
        self._number += 1
        self._open[self._number] = _Line(text)
        if self._sock is not None:
            self._to_worker += frames.encode(frames.LINE, self._number, text)
        elif self._is_idle:
            # The last worker may have left hours ago. The next one gets the usual time from now.
            self._is_idle, self._deadline = False, time.monotonic() + RESUME_S

    def _write_host(self, event: int) -> None:
        if event & _FAILED:
            raise _End(0)  # the host is gone
        try:
            del self._to_host[: os.write(_STDOUT, self._to_host)]
        except BlockingIOError:
            pass
        except OSError:
            raise _End(0) from None

    def _exchange(self, event: int) -> None:
        """Write to the worker and read from it, as far as its socket allows."""
        if (sock := self._sock) is None:
            return
        if event & select.POLLOUT:
            try:
                del self._to_worker[: sock.send(self._to_worker)]
            except BlockingIOError:
                pass
            except OSError:
                # What the worker wrote before it ended can still be read.
                self._to_worker.clear()
        if not event & (select.POLLIN | _FAILED):
            return
        try:
            data = sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        self._heard_at, self._is_pinged = time.monotonic(), False
        try:
            for op, number, body in self._from_worker.feed(data):
                if self._sock is sock and op in self._on_frame:
                    self._on_frame[op](number, body)
        except frames.InvalidFrame:
            self._lose()  # another program listens there

    def _accept(self, _number: int, _body: bytes) -> None:
        self._is_accepted, self._reason = True, _NO_REPLY

    def _decline(self, _number: int, body: bytes) -> None:
        self._reason = body.decode("utf-8", "replace")
        if not self._has_begun:
            raise self._give_up()
        self._lose()

    def _output(self, number: int, body: bytes) -> None:
        self._to_host += body
        for advanced, text in self._advances.items():
            if (line := self._open.get(advanced)) is not None:
                line.text, self._failures = text, 0
        self._advances.clear()
        if self._open.pop(number, None) is not None:
            self._failures = 0

    def _begin(self, number: int, body: bytes) -> None:
        if body:
            self._advances[number] = body
        elif (line := self._open.get(number)) is not None:
            line.has_begun = True

    def _keep(self, number: int, body: bytes) -> None:
        self._to_host += body
        if (line := self._open.pop(number, None)) is not None:
            self._kept[number] = line.text

    def _forget(self, number: int, _body: bytes) -> None:
        self._open.pop(number, None)
        self._kept.pop(number, None)

    def _void(self, number: int, _body: bytes) -> None:
        self._wills.pop(number, None)

    def _remember(self, _number: int, body: bytes) -> None:
        self._memory = body

    def _leave(self, has_successor: int, _body: bytes) -> None:
        self._failures = 0
        self._is_idle = not has_successor
        self._lose(on_purpose=True)

    def _exit(self, code: int, text: bytes) -> None:
        show(text.decode("utf-8", "replace"))
        self._code = code
        self._lose(on_purpose=True)
