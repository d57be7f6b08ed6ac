"""The protocol between relays and their worker, `relay/1`. Knows no MCP, and imports nothing, to load fast.

A frame is `OP NUMBER LENGTH`, a newline and LENGTH bytes. A relay numbers its host's lines, and keeps each one until
the worker reports what becomes of it. A worker that ends loses nothing: the next one gets the kept lines again.
"""

VERSION = "relay/1"

HELLO = b"h"
"""To the worker: a session begins or is resumed. Body: see `encode_hello`."""

MEMORY = b"m"
"""Both ways: what the next worker needs to know about the session, opaque to the relay. It sends the newest one after
each hello."""

LINE = b"l"
"""To the worker: a new line N."""

ANSWERED = b"s"
"""To the worker: line N, which an earlier worker answered. Process it, but write nothing."""

AGAIN = b"r"
"""To the worker: line N, which an earlier worker may have begun. Make its changes with the same keys."""

ALONE = b"q"
"""To the worker: as `AGAIN`, but several workers have ended during line N. Begin no other such line at the same time,
so that the next end of a worker is certainly due to this line."""

BROKEN = b"p"
"""To the worker: line N, during which too many workers ended. Reject it."""

PING = b"i"
"""Both ways: the worker returns it, which shows that it isn't hanging."""

STOP = b"t"
"""To the worker, instead of a hello: end, and start no successor."""

STATUS = b"e"
"""Both ways, instead of a hello: the worker returns its status, as JSON."""

ACCEPT = b"a"
"""From the worker: the session is served."""

DECLINE = b"n"
"""From the worker: the session can't be served here. Body: the reason."""

OUTPUT = b"o"
"""From the worker: write the body to the host. Line N is done."""

BEGIN = b"b"
"""From the worker: a change may follow from line N. With a body: it replaces line N once the next `OUTPUT` has arrived,
so that a worker that ends between the two neither loses nor repeats this output."""

KEEP = b"k"
"""From the worker: write the body to the host, and keep line N for all later workers."""

DONE = b"d"
"""From the worker: line N is done, and nothing is written."""

WILL = b"w"
"""From the worker: write the body to the host if this worker ends before `VOID` with the same number."""

VOID = b"u"

LEAVE = b"g"
"""From the worker: it ends on purpose. N is 1 if a successor is ready, 0 to connect when the host sends a line."""

EXIT = b"x"
"""From the worker: end with exit code N. Body: text for standard error."""

_MAX_HEAD_BYTES = 64


class InvalidFrame(Exception):
    """The peer doesn't speak this protocol."""


def encode(op: bytes, number: int = 0, body: bytes = b"") -> bytes:
    return b"%s %d %d\n%s" % (op, number, len(body), body)


class Decoder:
    """Splits a stream into frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> "list[tuple[bytes, int, bytes]]":
        """Return the frames that these bytes complete: op, number and body.

        Raises:
            InvalidFrame: The stream contains something else.
        """
        self._data += data
        frames: list[tuple[bytes, int, bytes]] = []
        while (end := self._data.find(b"\n", 0, _MAX_HEAD_BYTES)) >= 0:
            try:
                op, number, length = self._data[:end].split()
                body = end + 1, end + 1 + int(length)
                if len(self._data) < body[1]:
                    return frames
                frames.append((bytes(op), int(number), bytes(self._data[slice(*body)])))
            except ValueError:
                raise InvalidFrame from None
            del self._data[: body[1]]
        if len(self._data) >= _MAX_HEAD_BYTES:
            raise InvalidFrame
        return frames


class Hello:
    """What identifies a session.

    Attributes:
        session: 32 hex digits drawn by the relay.
        is_resumed: Whether an earlier worker has served the session.
        directory: The relay's working directory.
        words: The arguments of the command.
        env: The environment variables that concern a session.
    """

    __slots__ = ("directory", "env", "is_resumed", "session", "words")

    def __init__(
        self, session: str, *, is_resumed: bool, directory: str, words: "list[str]", env: "dict[str, str]"
    ) -> None:
        self.session = session
        self.is_resumed = is_resumed
        self.directory = directory
        self.words = words
        self.env = env


def encode_hello(hello: Hello) -> bytes:
    """Encode a hello. No argument, path or variable can contain a NUL."""
    variables = [f"{name}={value}" for name, value in hello.env.items()]
    head = [VERSION, hello.session, "1" if hello.is_resumed else "0", hello.directory, str(len(hello.words))]
    return "\0".join([*head, *hello.words, *variables]).encode("utf-8", "surrogateescape")


def decode_hello(body: bytes) -> Hello:
    """Decode a hello.

    Raises:
        InvalidFrame: The relay speaks another version of the protocol.
    """
    version, *rest = body.decode("utf-8", "surrogateescape").split("\0")
    if version != VERSION:
        raise InvalidFrame(version)
    session, is_resumed, directory, count, *words = rest
    variables = (variable.partition("=") for variable in words[int(count) :])
    env = {name: value for name, _, value in variables}
    return Hello(session, is_resumed=is_resumed == "1", directory=directory, words=words[: int(count)], env=env)
