"""Strict reading of JSON: what JSON readers disagree about is refused before anything acts on it.

Refused are nesting beyond a limit, invalid UTF-8, everything that RFC 8259 does not allow, lone surrogates, numbers
that are not finite, integers beyond ±2^53, and a name that occurs twice in one object. -0 and \\u0000 are fine.

Each check has a cheap condition that can only say "certainly good", and an exact one, linear in the frame, behind it.
"""

import re
from itertools import accumulate
from math import isfinite
from typing import Any, cast

import msgspec

from punchlist_schemas.errors import Rejection
from punchlist_schemas.things import MAX_INTEGER

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
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


class Refused(Exception):
    """The bytes are not JSON that we accept, for the reason in `rejection`."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.message)
        self.rejection = rejection


def parse(frame: bytes, max_depth: int) -> Any:
    """The value of `frame`, objects as dicts.

    Of several faults the one reported is the first in this order: depth, encoding and grammar, integers, names.

    Raises:
        Refused: `limit_exceeded` for the depth, `parse_error` for all else.
    """
    if frame.count(b"{") + frame.count(b"[") > max_depth:
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


def _check_depth(frame: bytes, maximum: int) -> None:
    steps = _STRING.sub(b"", frame).translate(_STEPS, _NOT_BRACKETS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > maximum:
        raise Refused(too_deep(maximum))


def _check_integers(frame: bytes) -> None:
    for match in _LONG_INTEGER.finditer(_STRING.sub(b"", frame)):
        digits = match[1]
        if len(digits) > _LONG_DIGITS or int(digits) > MAX_INTEGER:
            raise _refused("An integer lies beyond ±2^53.")


def _check_names(frame: bytes, value: Any) -> None:
    # Each colon as written belongs to a member or to a string. A repeated name takes its first member out of the
    # dict, so that the dict accounts for fewer colons than the frame has; only escaped colons could make up for it.
    names, colons = _names_and_colons(value)
    if frame.count(b":") == names + colons and b"\\u003" not in frame:
        return
    if _STRING.sub(b"", frame).count(b":") != names:
        raise _refused("An object has the same name twice.")


def _names_and_colons(value: Any) -> tuple[int, int]:
    """How many members all objects have, and how many colons stand in names and strings."""
    names = colons = 0
    waiting: list[Any] = [value]
    for item in waiting:
        if type(item) is str:
            colons += item.count(":")
        elif type(item) is dict:
            members = cast(dict[str, Any], item)
            names += len(members)
            waiting += members
            waiting += members.values()
        elif type(item) is list:
            waiting += item
    return names, colons
