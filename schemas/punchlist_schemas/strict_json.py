"""Strict reading of JSON: what JSON readers disagree about is refused before anything acts on it.

Refused are nesting and numbers of values beyond limits, invalid UTF-8, everything that RFC 8259 does not allow, lone
surrogates, numbers that are not finite, integers beyond ±2^53, and a name that occurs twice in one object. -0 and
\\u0000 are fine.

Each check has a cheap condition that can only say "certainly good", and an exact one, linear in the frame, behind it.
"""

import re
from collections.abc import Generator, Mapping
from itertools import accumulate
from math import isfinite
from typing import Any, cast

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import MAX_INTEGER

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
MOST_VALUES = 100_000
"""So many values one part of a frame may hold, members and elements: 1 MiB has room for five times as many of the
smallest ones, and everybody else would wait while they are read."""

MOST_PARTS = 10_000
"""An array with more elements is read as one part: no call takes so many tasks or changes."""

_PART_COMMAS = 1_000
"""What has fewer of them is one part: it is read quickly."""

_LEVELS = 4
"""Parts are the elements of an array in the params of a call, also of one in a batch."""

_LONG_DIGITS = 16
"""No shorter integer can lie beyond ±2^53."""
_LONG_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?([0-9]{%d,}+)(?![.eE])" % _LONG_DIGITS)

_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
"""Brackets as signed bytes: one level down, one level up."""

_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONG_RUN = b"0" * _LONG_DIGITS

_decode = msgspec.json.Decoder().decode
_split_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """The bytes are not JSON that we accept, for the reason in `rejection`."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.message)
        self.rejection = rejection


def parse(frame: bytes, max_depth: int) -> Any:
    """The value of `frame`, objects as dicts.

    Of several faults the one reported is the first in this order: number of values, depth, encoding and grammar,
    integers, names.

    Raises:
        Refused: `limit_exceeded` for the number of values and the depth, `parse_error` for all else.
    """
    opened = frame.count(b"{") + frame.count(b"[")
    if len(frame) > MOST_VALUES and opened + frame.count(b",") > MOST_VALUES:
        _check_values(frame)
    if opened > max_depth:
        _check_depth(frame, max_depth)
    try:
        if not frame.isascii():
            frame.decode()
        value = _decode(frame)
    except UnicodeDecodeError as error:
        raise _refused(f"The frame is not UTF-8 (byte {error.start}).") from None
    except RecursionError:
        raise Refused(too_deep(max_depth)) from None
    except msgspec.MsgspecError as error:
        raise _refused(f"The frame is not JSON: {error}.") from None
    if _LONG_RUN in frame.translate(_DIGITS_TO_ZERO):
        _check_integers(frame)
    # There are at least as many colons as names: as many as the outermost object and its `params` have different
    # names proves that no name occurs twice.
    names = len(value) if value.__class__ is dict else 0
    if names and (params := value.get("params")).__class__ is dict:
        names += len(params)
    if frame.count(b":") != names:
        _check_names(frame, value)
    return value


def check_limits(text: bytes, max_depth: int) -> None:
    """Check the depth and the integers of text that is JSON.

    Raises:
        Refused: As `parse`.
    """
    if text.count(b"{") + text.count(b"[") > max_depth:
        _check_depth(text, max_depth)
    if _LONG_RUN in text.translate(_DIGITS_TO_ZERO):
        _check_integers(text)


def has_many_parts(frame: bytes) -> bool:
    """Whether `parsing` pauses."""
    return frame.count(b",") >= _PART_COMMAS


def has_many_values(frame: bytes) -> bool:
    """Whether its values may take many times as many bytes as it has."""
    return frame.count(b",") + frame.count(b"[") + frame.count(b"{") >= _PART_COMMAS


def parsing(frame: bytes, max_depth: int, levels: int = _LEVELS) -> Generator[None, None, Any]:
    """As `parse`, with a pause after each part: `MOST_VALUES` bounds each of them, and not the frame.

    Raises:
        Refused: As `parse`; of several faults the one reported is that of the first part.
    """
    if not levels or not has_many_parts(frame):
        return parse(frame, max_depth)
    try:
        if levels == _LEVELS and not frame.isascii():
            frame.decode()
        opening = frame.lstrip(b" \t\r\n")[:1]
        if opening == b"{":
            members = _split_object(frame)
            yield
            _check_split_names(frame, members)
            found: dict[str, Any] = {}
            for name, part in members.items():
                found[name] = yield from parsing(bytes(part), max_depth - 1, levels - 1)
            return found
        if opening == b"[":
            elements = _split_array(frame)
            yield
            if len(elements) <= MOST_PARTS:
                values: list[Any] = []
                for part in elements:
                    values.append((yield from parsing(bytes(part), max_depth - 1, levels - 1)))
                    yield
                return values
    except (UnicodeDecodeError, RecursionError, msgspec.MsgspecError):
        pass  # whatever it is, the reading as a whole says what is wrong, and where
    return parse(frame, max_depth)


def check_numbers(value: Any) -> None:
    """Check a value that is going to be encoded: what JSON has no form for becomes null in it, without a word.

    Raises:
        Refused: `parse_error`: A number in it is NaN or infinite.
    """
    waiting: list[Any] = [value]
    for item in waiting:
        if isinstance(item, float) and not isfinite(item):
            raise _refused(f"A number is {item}, for which JSON has no form.")
        if isinstance(item, dict):
            waiting += cast(dict[Any, Any], item).values()
        elif isinstance(item, list | tuple | set | frozenset):
            waiting += cast(list[Any], item)


def _refused(message: str) -> Refused:
    return Refused(Rejection("parse_error", message))


def too_deep(maximum: int) -> Rejection:
    """The refusal of what is nested deeper than `maximum`."""
    data = {"limit": "depth", "value": maximum + 1, "maximum": maximum}
    return Rejection("limit_exceeded", f"JSON may be nested at most {maximum} deep.", data)


def _check_values(frame: bytes) -> None:
    # Most quotes begin or end a string, and each string is a value or the name of one: with so many of them there is
    # no need to take the strings out, which takes long where they are many.
    if frame.count(b'"') - frame.count(b'\\"') <= 4 * MOST_VALUES:
        bare = _between_strings(frame)
        if bare.count(b",") + bare.count(b"{") + bare.count(b"[") <= MOST_VALUES:
            return
    facts = {"limit": "values", "value": MOST_VALUES + 1, "maximum": MOST_VALUES}
    message = f"One task or change of a call may hold at most {MOST_VALUES:,} values. Send them in several calls."
    raise Refused(Rejection("limit_exceeded", message, facts))


def _check_depth(frame: bytes, maximum: int) -> None:
    steps = _STRING.sub(b"", frame).translate(_STEPS, _NOT_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > maximum:
        raise Refused(too_deep(maximum))


def _check_integers(frame: bytes) -> None:
    found: list[bytes] = _LONG_INTEGER.findall(_between_strings(frame))
    # The grammar is checked: no number begins with 0, so of those of one length the greatest sorts last.
    if found and (max(map(len, found)) > _LONG_DIGITS or max(found) > b"%d" % MAX_INTEGER):
        raise _refused("An integer lies beyond ±2^53.")


def _check_names(frame: bytes, value: Any) -> None:
    # A repeated name takes its first member out of the dict: written again, the value has fewer colons than the frame.
    if _between_strings(frame).count(b":") != _between_strings(_encode(value)).count(b":"):
        raise _refused("An object has the same name twice.")


def _check_split_names(frame: bytes, members: Mapping[str, msgspec.Raw]) -> None:
    # As `_check_names`: the first member of a repeated name has gone, and its colons with it. Those within names prove
    # nothing: one may be written as an escape, and stand for the one that has gone.
    inner = sum(bytes(part).count(b":") for part in members.values())
    if frame.count(b":") == inner + len(members):
        return
    if _between_strings(frame).count(b":") != len(members) + sum(
        _between_strings(bytes(part)).count(b":") for part in members.values()
    ):
        raise _refused("An object has the same name twice.")


def _between_strings(text: bytes) -> bytes:
    """What stands outside of all strings; in C alone, however many there are."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # now each quote begins or ends a string
    return b"".join(text.split(b'"')[::2])
