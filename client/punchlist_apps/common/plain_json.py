"""JSON with the C accelerators alone: the module `json` would load regular expressions, which cost more than a call."""

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Plain:
    """What the C scanner asks of a decoder: plain values, strict strings."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: "dict[str, str]" = {}


_scan = _json.make_scanner(_Plain)  # pyright: ignore[reportArgumentType] - any object with these members will do
_ASCII = _json.encode_basestring_ascii
_encode = _json.make_encoder(None, None, _ASCII, None, ":", ",", False, False, True)  # pyright: ignore[reportArgumentType]


def decode(text: str) -> "Any":
    """The value of a JSON text that begins with it.

    Raises:
        ValueError, StopIteration: It is not JSON.
    """
    return _scan(text, 0)[0]


def encode(value: "Any") -> str:
    return "".join(_encode(value, 0))


def members(data: bytes, defaults: "dict[str, Any]") -> "dict[str, Any]":
    """Some members of a JSON object that anybody may have written.

    Args:
        data: JSON in UTF-8.
        defaults: The members that count, and what they are where they are left out. A value is of its default's type:
            text, a truth value, a tuple of texts, or, where the default is None, a whole number or null.

    Returns:
        The members; all of them by default if any is of another type or the whole is no JSON object.
    """
    try:
        text = data.decode().strip()
        found, end = _scan(text, 0)
        given = {name: _checked(found[name], default) for name, default in defaults.items() if name in found}
        return defaults | given if end == len(text) else defaults
    except (ValueError, TypeError, StopIteration, RecursionError):
        return defaults


def _checked(value: "Any", default: "str | bool | tuple[str, ...] | None") -> "Any":
    if value is None and default is None:
        return None
    if isinstance(default, tuple):
        if type(value) is not list:
            raise TypeError
        return tuple([_checked(one, "") for one in value])  # pyright: ignore[reportUnknownVariableType]
    if type(value) is not (int if default is None else type(default)):
        raise TypeError
    if isinstance(value, str):
        value.encode()  # half a surrogate pair is no text
    return value
