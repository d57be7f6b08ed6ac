"""Reads untrusted JSON: the input of hooks, and small files about hosts' sessions."""

import json
from typing import Any


def read_members(data: bytes, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return those members of a JSON object that `defaults` names.

    Args:
        data: JSON in UTF-8.
        defaults: Member names and their default values. A value must have its default's type: a string, a boolean or
            a tuple of strings. If the default is None, the value must be an integer or null.

    Returns:
        The members, or `defaults` if a member has another type or the text isn't a JSON object.
    """
    try:
        text = data.decode()
        values = json.loads(text)
        checked = {name: _check_type(values[name], default) for name, default in defaults.items() if name in values}
        return defaults | checked
    except (ValueError, TypeError, RecursionError):
        return defaults


def _check_type(value: Any, default: str | bool | tuple[str, ...] | None) -> Any:
    if value is None and default is None:
        return None
    if isinstance(default, tuple):
        if type(value) is not list:
            raise TypeError
        return tuple([_check_type(item, "") for item in value])  # pyright: ignore[reportUnknownVariableType]
    if type(value) is not (int if default is None else type(default)):
        raise TypeError
    if isinstance(value, str):
        value.encode()  # rejects lone surrogates
    return value
