"""Filters of `punch list` that a project keeps in its project file, by name.

[filters.soon]
label = ["ops"]
due = "7d"
sort = "due"
"""

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Any

from punchlist_apps.cli.printing.failure import StateError, UsageError
from punchlist_apps.common.terminal.argument_types import parse_time
from punchlist_schemas import directory, project_file
from punchlist_schemas.vocabulary import STATUSES

SORTS = ("due", "priority", "created", "updated", "title")
"""What a list can be sorted by."""


def _words(value: Any) -> list[str]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):  # pyright: ignore[reportUnknownVariableType]
        raise ArgumentTypeError("a text or a list of texts")
    return words  # pyright: ignore[reportUnknownVariableType]


def _statuses(value: Any) -> list[str]:
    words = _words(value)
    if not set(words).issubset(STATUSES):
        raise ArgumentTypeError(f"some of {', '.join(STATUSES)}")
    return words


def _of(kind: type, said: str) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if type(value) is not kind:
            raise ArgumentTypeError(said)
        return value

    return checked


def _sort(value: Any) -> str:
    if value not in SORTS:
        raise ArgumentTypeError(f"one of {', '.join(SORTS)}")
    return str(value)


_MEMBERS: dict[str, Callable[[Any], Any]] = {
    "status": _statuses,
    "owner": _of(str, "a text"),
    "ready": _of(bool, "true or false"),
    "label": _words,
    "parent": _of(str, 'a task, such as "3"'),
    "due": lambda value: parse_time(str(value)),
    "text": _of(str, "a text"),
    "limit": _of(int, "a number"),
    "sort": _sort,
}
"""What a filter may say, in the words of the options of `punch list`."""


def saved(name: str) -> dict[str, Any]:
    """The options that the present directory's project file keeps under a name.

    Raises:
        UsageError: There is no such file or name, or it says something else.
        DirectoryError: The file must not be read.
    """
    import tomllib

    meant = directory.meant(None)
    if meant is None or meant.file is None:
        raise StateError(f"no {project_file.NAME} here keeps filters: punch init writes one")
    try:
        filters = tomllib.loads(project_file.small_file(meant.file).decode("utf-8")).get("filters", {})
    except (OSError, ValueError, RecursionError) as error:
        raise StateError(f"{meant.file}: {error}") from None
    found = filters.get(name) if isinstance(filters, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(found, dict):
        known = ", ".join(map(str, filters)) if isinstance(filters, dict) else ""  # pyright: ignore[reportUnknownArgumentType]
        raise StateError(f"{meant.file} has no filter {name!r}" + (f"; it has {known}" if known else ""))
    options: dict[str, Any] = {}
    for key, value in found.items():  # pyright: ignore[reportUnknownVariableType]
        if key not in _MEMBERS:
            raise UsageError(f"{meant.file}: filters.{name}.{key}: there are {', '.join(_MEMBERS)}")
        try:
            options[str(key)] = _MEMBERS[str(key)](value)  # pyright: ignore[reportUnknownArgumentType]
        except ArgumentTypeError as error:
            raise UsageError(f"{meant.file}: filters.{name}.{key}: expected {error}") from None
    return options
