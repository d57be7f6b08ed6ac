"""Fuzz targets, as functions of bytes: each input must be accepted or rejected with the documented error."""

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from punchlist.base.text import JOINERS, safe
from punchlist_faults.fuzz_space import nats_message, postgres_row
from punchlist_faults.options import need
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import decode_event
from punchlist_schemas.framing import Framer
from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import Mutation
from punchlist_schemas.results import Limits
from punchlist_testing.calls import parse_params
from punchlist_testing.domain import Recorder, check_invariants, strip_stamps
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import initial_state
from punchlistd.domain.state.snapshot import dump_state, load_state
from punchlistd.engine.replies import Outcome
from punchlistd.net import jsonrpc
from punchlistd.net.connection.protocol import ServerProtocol

_LIMITS = Limits()
_SMALL = Limits(frame_bytes=4_096, batch=20)
_BEYOND_64_BITS = re.compile(rb"\d{19}")

STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of characters that a terminal may interpret."""


def _feed(pieces: list[bytes]) -> tuple[list[bytes], bytes]:
    protocol = ServerProtocol(_SMALL)
    for piece in pieces:
        protocol.receive_data(piece)
    _answer_all(protocol, lambda call: call.rejection if isinstance(call, jsonrpc.Malformed) else b"{}")
    need(protocol.in_flight == 0, f"{protocol.in_flight} calls are never answered")
    return protocol.data_to_send(), protocol.fault


def _answer_all(protocol: ServerProtocol, carry_out: Callable[[jsonrpc.Call | jsonrpc.Malformed], Outcome]) -> int:
    """Respond to every call. Return the number of calls with an id."""
    requests = 0
    while protocol.members or protocol.frames:
        call, batch = protocol.next_call()
        requests += call.id is not None
        outcome = carry_out(call)
        if batch is None:
            protocol.answer(call.id, outcome)
        else:
            protocol.answer_in_batch(batch, call.id, outcome)
    return requests


def frames(data: bytes) -> None:
    """Check that a connection sends the same responses and ends with the same fault, however its bytes are split."""
    cut = data[0] % 13 + 1 if data else 1
    stream = data[1:]
    whole = _feed([stream])
    pieces = _feed([stream[place : place + cut] for place in range(0, len(stream), cut)])
    need(whole == pieces, f"pieces of {cut} give {pieces}, the whole {whole}")
    framer = Framer()
    framer.kind = "headers" if stream.lstrip(b" \t\r\n")[:1] in (b"C", b"c") else "lines"
    for frame in framer.feed(b"".join(whole[0])):
        msgspec.json.decode(frame)


def dispatch(data: bytes) -> None:
    """Check that each line, a call, is answered once, and that the list keeps its invariants."""
    recorder = Recorder()
    protocol = ServerProtocol(_LIMITS)
    protocol.receive_data(data + b"\n")
    answered, asked = 0, _answer_all(protocol, partial(_outcome, recorder))
    for reply in Framer().feed(b"".join(protocol.data_to_send())):
        answered += len(msgspec.json.decode(reply, type=list[Any])) if reply.startswith(b"[") else 1
    need((answered, protocol.in_flight) == (asked, 0), f"{asked} calls, {answered} answers")
    check_invariants(recorder.state)


def _outcome(recorder: Recorder, call: jsonrpc.Call | jsonrpc.Malformed) -> Outcome:
    if isinstance(call, jsonrpc.Malformed):
        return call.rejection
    method = METHODS.get(call.method)
    params = jsonrpc.unknown_method(call.method) if method is None else parse_params(method, call.params)
    if isinstance(params, Rejection):
        return params
    outcome = recorder.call(params) if isinstance(params, Mutation) else None
    return outcome if isinstance(outcome, Rejection) else b"{}"


def reducer(data: bytes) -> None:
    """Check that any decodable event can be folded, and that a snapshot of the result restores it."""
    state = initial_state("c")
    for seq, line in enumerate(data.split(b"\n"), 1):
        try:
            event = decode_event(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        state = evolve(state, event, seq, seq, 1_000 + seq)
    # Calls with such integers are rejected, so no log contains them, and a snapshot can't store them.
    if _BEYOND_64_BITS.search(data):
        return
    need(
        strip_stamps(load_state("c", dump_state(state))) == strip_stamps(state),
        "a snapshot is not what it was taken of",
    )


def escaper(data: bytes) -> None:
    """Check that plain text is unchanged, and that nothing that controls a terminal remains."""
    text = data.decode("utf-8", "surrogateescape")
    for keep in ("", "\n\t"):
        shown = safe(text, keep)
        bad = [
            char
            for before, char, after in zip(" " + shown, shown, shown[1:] + " ", strict=False)
            if unicodedata.category(char) in STEERING
            and char not in keep
            and not (char in JOINERS and all(unicodedata.category(other)[0] in "LMNPS" for other in (before, after)))
        ]
        need(not bad, f"{bad[:3]!r} of {text!r} reach the terminal")
    need(not (text.isascii() and text.isprintable()) or safe(text) == text, "plain text is changed")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": frames,
    "dispatch": dispatch,
    "reducer": reducer,
    "escaper": escaper,
    "nats": nats_message,
    "postgres": postgres_row,
}
