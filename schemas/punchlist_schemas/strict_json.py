"""Strict parsing of JSON: rejects input that JSON parsers interpret differently.

It rejects invalid UTF-8, all input that RFC 8259 does not allow, lone surrogates, numbers that are not finite, integers
beyond ±2^53, duplicate names in an object, and input beyond the limits for depth and number of values. -0 and \\u0000
are allowed.

Each check first tests a cheap sufficient condition. Only if that fails does it run an exact scan, which takes time
linear in the length of the frame.
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
MAX_VALUES = 100_000
"""Maximum number of values (members and elements) in one part of a frame. A frame of 1 MiB can contain five times as
many, and parsing them would stall all other connections.
"""

_MAX_PARTS = 10_000
"""Arrays with more elements are parsed as one part, because no call accepts that many tasks or changes."""

_PART_COMMAS = 1_000
"""Input with fewer commas is parsed as one part, because that is fast enough."""

_LEVELS = 4
"""Depth to which a frame is split into parts: the elements of an array in the params of a call in a batch."""

_LONG_DIGITS = 16
"""Number of digits of the shortest integer that can be beyond ±2^53."""
_LONG_INTEGER = re.compile(rb"(?<![0-9.eE+-])-?([0-9]{%d,}+)(?![.eE])" % _LONG_DIGITS)

_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
"""Brackets → change of depth as a signed byte."""

_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_LONG_RUN = b"0" * _LONG_DIGITS

_decode = msgspec.json.Decoder().decode
_split_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_split_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class Refused(Exception):
    """The bytes are not acceptable JSON; `rejection` is the reason."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.message)
        self.rejection = rejection


def parse(frame: bytes, max_depth: int) -> Any:
    """Parse `frame`; objects become dicts.

    If several checks fail, the first in this order is reported: number of values, depth, encoding and grammar,
    integers, names.

    Raises:
        Refused: `limit_exceeded` for the number of values and the depth, otherwise `parse_error`.
    """
    opened = frame.count(b"{") + frame.count(b"[")
    if len(frame) > MAX_VALUES and opened + frame.count(b",") > MAX_VALUES:
        _check_values(frame)
    if opened > max_depth:
        _check_depth(frame, max_depth)
    try:
        if not frame.isascii():
            frame.decode()
        value = _decode(frame)
    except UnicodeDecodeError as error:
        raise _parse_error(f"The frame is not UTF-8 (byte {error.start}).") from None
    except RecursionError:
        raise Refused(reject_depth(max_depth)) from None
    except msgspec.MsgspecError as error:
        raise _parse_error(f"The frame is not JSON: {error}.") from None
    if _LONG_RUN in frame.translate(_DIGITS_TO_ZERO):
        _check_integers(frame)
    # Each name in an object needs a colon. If the frame has only as many colons as there are different names in the
    # outermost object and its `params`, no name occurs twice.
    names = len(value) if value.__class__ is dict else 0
    if names and (params := value.get("params")).__class__ is dict:
        names += len(params)
    if frame.count(b":") != names:
        _check_names(frame, value)
    return value


def check_limits(text: bytes, max_depth: int) -> None:
    """Check the depth and the integers of valid JSON.

    Raises:
        Refused: As for `parse`.
    """
    if text.count(b"{") + text.count(b"[") > max_depth:
        _check_depth(text, max_depth)
    if _LONG_RUN in text.translate(_DIGITS_TO_ZERO):
        _check_integers(text)


def has_many_values(frame: bytes) -> bool:
    """Return whether the parsed values may need many times the memory of the frame."""
    return frame.count(b",") + frame.count(b"[") + frame.count(b"{") >= _PART_COMMAS


def parse_in_slices(frame: bytes, max_depth: int, levels: int = _LEVELS) -> Generator[None, None, Any]:
    """Generator form of `parse`: yields after each part. `MAX_VALUES` applies to each part, not to the frame.

    Raises:
        Refused: As for `parse`; if several parts are invalid, the first is reported.
    """
    if not levels or frame.count(b",") < _PART_COMMAS:
        return parse(frame, max_depth)
    try:
        if levels == _LEVELS and not frame.isascii():
            frame.decode()
        opening = frame.lstrip(b" \t\r\n")[:1]
        if opening == b"{":
            members = _split_object(frame)
            yield
            _check_split_names(frame, members)
            value: dict[str, Any] = {}
            for name, part in members.items():
                value[name] = yield from parse_in_slices(bytes(part), max_depth - 1, levels - 1)
            return value
        if opening == b"[":
            elements = _split_array(frame)
            yield
            if len(elements) <= _MAX_PARTS:
                values: list[Any] = []
                for part in elements:
                    values.append((yield from parse_in_slices(bytes(part), max_depth - 1, levels - 1)))
                    yield
                return values
    except (UnicodeDecodeError, RecursionError, msgspec.MsgspecError):
        pass  # parsing the whole frame reports the error with its position
    return parse(frame, max_depth)


def check_numbers(value: Any) -> None:
    """Reject numbers that the encoder would silently replace with null.

    Raises:
        Refused: `parse_error`: The value contains NaN or an infinite number.
    """
    items: list[Any] = [value]
    for item in items:
        if isinstance(item, float) and not isfinite(item):
            raise _parse_error(f"JSON can't represent the number {item}.")
        if isinstance(item, dict):
            items += cast(dict[Any, Any], item).values()
        elif isinstance(item, list | tuple | set | frozenset):
            items += cast(list[Any], item)


def _parse_error(message: str) -> Refused:
    return Refused(Rejection("parse_error", message))


def reject_depth(maximum: int) -> Rejection:
    """Return the error for JSON that is nested deeper than `maximum`."""
    data = {"limit": "depth", "value": maximum + 1, "maximum": maximum}
    return Rejection("limit_exceeded", f"JSON may have at most {maximum} levels of nesting.", data)


def _check_values(frame: bytes) -> None:
    # Each string is a value or the name of one, and has two unescaped quotes. More quotes than the limit below prove
    # that there are too many values, without removing the strings, which is slow if there are many.
    if frame.count(b'"') - frame.count(b'\\"') <= 4 * MAX_VALUES:
        bare = _remove_strings(frame)
        if bare.count(b",") + bare.count(b"{") + bare.count(b"[") <= MAX_VALUES:
            return
    data = {"limit": "values", "value": MAX_VALUES + 1, "maximum": MAX_VALUES}
    message = f"One task or change of a call may have at most {MAX_VALUES:,} values. Split it into several calls."
    raise Refused(Rejection("limit_exceeded", message, data))


def _check_depth(frame: bytes, maximum: int) -> None:
    steps = _STRING.sub(b"", frame).translate(_STEPS, _NOT_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > maximum:
        raise Refused(reject_depth(maximum))


def _check_integers(frame: bytes) -> None:
    integers: list[bytes] = _LONG_INTEGER.findall(_remove_strings(frame))
    # In valid JSON no integer begins with 0, so integers of equal length sort by value.
    if integers and (max(map(len, integers)) > _LONG_DIGITS or max(integers) > b"%d" % MAX_INTEGER):
        raise _parse_error("An integer is beyond ±2^53.")


def _check_names(frame: bytes, value: Any) -> None:
    # The dict has only the last member with a duplicate name, so its encoding has fewer colons than the frame.
    if _remove_strings(frame).count(b":") != _remove_strings(_encode(value)).count(b":"):
        raise _parse_error("An object has the same name twice.")


def _check_split_names(frame: bytes, members: Mapping[str, msgspec.Raw]) -> None:
    # As in `_check_names`, the colons of all but the last member with a duplicate name are missing. Colons in names are
    # not counted, because one that is escaped in the frame could hide a missing one.
    inner = sum(bytes(part).count(b":") for part in members.values())
    if frame.count(b":") == inner + len(members):
        return
    if _remove_strings(frame).count(b":") != len(members) + sum(
        _remove_strings(bytes(part)).count(b":") for part in members.values()
    ):
        raise _parse_error("An object has the same name twice.")


def _remove_strings(text: bytes) -> bytes:
    # Uses only functions written in C, which are fast for any number of strings.
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")  # now each quote begins or ends a string
    return b"".join(text.split(b'"')[::2])
