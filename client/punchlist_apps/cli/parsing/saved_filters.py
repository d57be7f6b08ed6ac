"""Named filters of `punch list` in a project file.

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
"""Members of a task by which a list can be sorted."""


def _parse_texts(value: Any) -> list[str]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):  # pyright: ignore[reportUnknownVariableType]
        raise ArgumentTypeError("a string or a list of strings")
    return words  # pyright: ignore[reportUnknownVariableType]


def _parse_statuses(value: Any) -> list[str]:
    words = _parse_texts(value)
    if not set(words).issubset(STATUSES):
        raise ArgumentTypeError(f"some of {', '.join(STATUSES)}")
    return words


def _make_check(kind: type, expected: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise ArgumentTypeError(expected)
        return value

    return check


def _parse_sort(value: Any) -> str:
    if value not in SORTS:
        raise ArgumentTypeError(f"one of {', '.join(SORTS)}")
    return str(value)


_MEMBERS: dict[str, Callable[[Any], Any]] = {
    "status": _parse_statuses,
    "owner": _make_check(str, "a string"),
    "ready": _make_check(bool, "true or false"),
    "label": _parse_texts,
    "parent": _make_check(str, 'a task, such as "3"'),
    "due": lambda value: parse_time(str(value)),
    "text": _make_check(str, "a string"),
    "limit": _make_check(int, "a number"),
    "sort": _parse_sort,
}
"""Member of a filter, named after an option of `punch list` → parser of its value."""


def load_filter(name: str) -> dict[str, Any]:
    """Return the options of a named filter in the current directory's project file.

    Raises:
        UsageError: The directory has no project file, or the file has no valid filter with this name.
        DirectoryError: The project file can't be used.
    """
    import tomllib

    meant = directory.find_list(None)
    if meant is None or meant.file is None:
        raise StateError(f"no {project_file.NAME} found; write one: punch init")
    try:
        filters = tomllib.loads(project_file.read_small_file(meant.file).decode("utf-8")).get("filters", {})
    except (OSError, ValueError, RecursionError) as error:
        raise StateError(f"{meant.file}: {error}") from None
    members = filters.get(name) if isinstance(filters, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not isinstance(members, dict):
        known = ", ".join(map(str, filters)) if isinstance(filters, dict) else ""  # pyright: ignore[reportUnknownArgumentType]
        raise StateError(f"{meant.file} has no filter {name!r}" + (f"; choose from {known}" if known else ""))
    options: dict[str, Any] = {}
    for key, value in members.items():  # pyright: ignore[reportUnknownVariableType]
        if key not in _MEMBERS:
            raise UsageError(f"{meant.file}: filters.{name}.{key}: unknown member; choose from {', '.join(_MEMBERS)}")
        try:
            options[str(key)] = _MEMBERS[str(key)](value)  # pyright: ignore[reportUnknownArgumentType]
        except ArgumentTypeError as error:
            raise UsageError(f"{meant.file}: filters.{name}.{key}: expected {error}") from None
    return options
