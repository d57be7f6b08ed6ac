"""Which format a file is in, and one function that reads them all."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from punchlist.cli.failure import FormatError
from punchlist.cli.formats import markdown, objects
from punchlist.cli.formats.document import Document, Plan, load_json

PARSERS: dict[str, Callable[[Document], Plan]] = {
    "markdown": markdown.parse,
    "todowrite": objects.parse_todos,
    "json": objects.parse_export,
}
FORMATS = (*PARSERS, "folder")
"""What `punch import --format` knows."""


def detect(document: Document) -> str:
    """The format of one file: JSON by the members it has, everything else is Markdown.

    Raises:
        FormatError: It begins like JSON and is none, or none that we know.
    """
    text = document.text.removeprefix("\ufeff").lstrip()
    if not text.startswith(("{", "[")) or text.startswith(("[ ]", "[x]")):
        return "markdown"
    try:
        value = load_json(document)
    except FormatError as error:
        if error.line > 1 and all(map(_is_json, text.split("\n", 2)[:2])):
            advice = "JSON lines are not read; punch export --format json writes what can be"
            raise FormatError(advice, document.name) from error
        raise
    if isinstance(value, list):
        return "todowrite"
    members = cast("dict[str, Any]", value)
    for member, name in (("todos", "todowrite"), ("tasks", "json"), ("subject", "folder")):
        if member in members:
            return name
    raise FormatError('no tasks found: expected "todos", "tasks" or "subject"; --format names one', document.name)


def _is_json(line: str) -> bool:
    try:
        load_json(Document("", line))
    except FormatError:
        return False
    return True


def parse(documents: Sequence[Document], name: str = "") -> tuple[str, Plan]:
    """The format's name and the tasks of a file, or of the files of a folder.

    Raises:
        FormatError: Says which file, which line and what is wrong.
    """
    found = name or (detect(documents[0]) if len(documents) == 1 else "folder")
    if found == "folder":
        return found, objects.parse_folder(documents)
    if len(documents) > 1:
        raise FormatError(f"a folder is read as task files, not as {found}", documents[0].name)
    return found, PARSERS[found](documents[0])
