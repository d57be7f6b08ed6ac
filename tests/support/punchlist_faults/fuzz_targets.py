"""What is fuzzed, as functions of bytes: whatever those are, each either works or refuses in the way it says."""

import re
import unicodedata
from collections.abc import Callable

import msgspec

from punchlist.text import safe
from punchlist_faults.options import need
from punchlist_schemas.errors import Rejection, error_object
from punchlist_schemas.events import decode_event
from punchlist_schemas.framing import Framer, FramingError
from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import Mutation
from punchlist_schemas.results import Limits
from punchlist_testing.domain import Recorder, check_invariants, tell
from punchlistd.domain.evolve import evolve
from punchlistd.domain.snapshot import dump_state, load_state
from punchlistd.domain.state import initial_state
from punchlistd.net import jsonrpc

_LIMITS = Limits()
_SMALL_FRAME = 4_096
_BEYOND_64_BITS = re.compile(rb"\d{19}")

STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that a terminal may obey."""


def _fed(pieces: list[bytes]) -> tuple[list[bytes], str | None]:
    framer = Framer(_SMALL_FRAME)
    frames: list[bytes] = []
    try:
        for piece in pieces:
            frames += framer.feed(piece)
    except FramingError as error:
        return frames + error.frames, error.rejection.kind
    return frames, None


def frames(data: bytes) -> None:
    """However a stream is cut, it gives the same frames and the same error."""
    cut = data[0] % 13 + 1 if data else 1
    stream = data[1:]
    whole = _fed([stream])
    pieces = _fed([stream[place : place + cut] for place in range(0, len(stream), cut)])
    need(whole == pieces, f"pieces of {cut} give {pieces}, the whole {whole}")
    need(all(len(frame) <= _SMALL_FRAME for frame in whole[0]), "a frame is too long")


def dispatch(data: bytes) -> None:
    """Every line is a call that is answered, and the list keeps its invariants."""
    recorder = Recorder()
    for line in data.split(b"\n"):
        decoded = jsonrpc.decode(line, _LIMITS)
        for call in decoded if isinstance(decoded, list) else [decoded]:
            _answer(recorder, call)
    check_invariants(recorder.state)


def _answer(recorder: Recorder, call: jsonrpc.Call | jsonrpc.Malformed) -> None:
    if isinstance(call, jsonrpc.Malformed):
        msgspec.json.decode(jsonrpc.failure(call.id, call.rejection))
        return
    method = METHODS.get(call.method)
    params = jsonrpc.unknown_method(call.method) if method is None else jsonrpc.parse_params(method, call.params)
    if isinstance(params, Mutation):
        outcome = recorder.call(params)
        if isinstance(outcome, Rejection):
            msgspec.json.encode(error_object(outcome))
    elif isinstance(params, Rejection):
        msgspec.json.decode(jsonrpc.failure(call.id or jsonrpc.NULL, params))


def reducer(data: bytes) -> None:
    """Any decodable event can be folded, and a snapshot of the result is the result."""
    state = initial_state("c")
    for seq, line in enumerate(data.split(b"\n"), 1):
        try:
            event = decode_event(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        state = evolve(state, event, seq, seq, 1_000 + seq)
    if _BEYOND_64_BITS.search(data):  # the door refuses those, so no log of ours has them; a snapshot can't
        return
    need(tell(load_state("c", dump_state(state))) == tell(state), "a snapshot is not what it was taken of")


def escaper(data: bytes) -> None:
    """Nothing that steers a terminal gets through, and plain text does."""
    text = data.decode("utf-8", "surrogateescape")
    for keep in ("", "\n\t"):
        shown = safe(text, keep)
        bad = [char for char in shown if unicodedata.category(char) in STEERING and char not in keep]
        need(not bad, f"{bad[:3]!r} of {text!r} reach the terminal")
    need(not (text.isascii() and text.isprintable()) or safe(text) == text, "plain text is changed")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": frames,
    "dispatch": dispatch,
    "reducer": reducer,
    "escaper": escaper,
}
