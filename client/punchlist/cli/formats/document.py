"""What every format shares: a named text, the error that says where it is wrong, and the check of one task."""

import json
from typing import Any, NamedTuple, cast

import msgspec

from punchlist.cli.failure import FormatError
from punchlist_schemas.params import NewTask

Plan = list[dict[str, Any]]
"""Members of `task.add_many`'s tasks, in order."""


class Document(NamedTuple):
    """A text and the name to use for it in messages."""

    name: str
    text: str


def load_json(document: Document) -> Any:
    """The JSON value of a document; a byte order mark is tolerated.

    Raises:
        FormatError: It is not JSON; tells the line and column.
    """
    try:
        return json.loads(document.text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise FormatError(f"not JSON: {error.msg} (column {error.colno})", document.name, error.lineno) from error
    except RecursionError as error:
        raise FormatError("nested too deeply", document.name) from error


def as_object(value: Any, where: str, name: str) -> dict[str, Any]:
    """`value` as a JSON object, or a FormatError that says where one was expected."""
    if not isinstance(value, dict):
        raise FormatError(f"{where}: expected an object", name)
    return cast("dict[str, Any]", value)


def as_list(value: Any, where: str, name: str) -> list[Any]:
    """`value` as a JSON array, or a FormatError that says where one was expected."""
    if not isinstance(value, list):
        raise FormatError(f"{where}: expected a list", name)
    return cast("list[Any]", value)


def checked(task: dict[str, Any], name: str, *, line: int = 0, where: str = "") -> dict[str, Any]:
    """`task` if the daemon would take it, without the members that have nothing to say.

    Raises:
        FormatError: A member is missing, unknown or wrong.
    """
    members = {key: value for key, value in task.items() if value not in ("", None, [], {})}
    try:
        msgspec.convert(members, NewTask)
    except msgspec.ValidationError as error:
        raise FormatError(f"{where}: {error}" if where else str(error), name, line) from error
    return members
