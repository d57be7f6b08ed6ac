"""Reads JSON that anybody may have written: the input of hooks and small files of hosts' sessions."""

import json
from typing import Any


def members(data: bytes, defaults: dict[str, Any]) -> dict[str, Any]:
    """Some members of a JSON object that anybody may have written.

    Args:
        data: JSON in UTF-8.
        defaults: The members that count, and what they are where they are left out. A value is of its default's type:
            text, a truth value, a tuple of texts, or, where the default is None, a whole number or null.

    Returns:
        The members; all of them by default if any is of another type or the whole is no JSON object.
    """
    try:
        text = data.decode()
        found = json.loads(text)
        given = {name: _checked(found[name], default) for name, default in defaults.items() if name in found}
        return defaults | given
    except (ValueError, TypeError, RecursionError):
        return defaults


def _checked(value: Any, default: str | bool | tuple[str, ...] | None) -> Any:
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
