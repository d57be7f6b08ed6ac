"""The table of the forms, which one a file is in, and one function that reads them all."""

import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

from punchlist_apps.files.importers.document import Document, json_value, read
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.wrong import FormatError


class Form(NamedTuple):
    """A form: the module below `files.importers` and the function of it that reads it, and what it is of."""

    module: str
    function: str
    about: str


FORMS: dict[str, Form] = {
    "markdown": Form("markdown", "read", "check lists and plans"),
    "json": Form("export", "read", "punch export"),
    "beads": Form("beads", "read", "bd export, .beads/issues.jsonl, tables of its Dolt database"),
    "taskwarrior": Form("taskwarrior", "read", "task export"),
    "taskmaster": Form("taskmaster", "read", ".taskmaster/tasks/tasks.json"),
    "claude": Form("claude", "read", "~/.claude/tasks, or the folder of one session"),
    "todowrite": Form("claude", "read_todos", "the todos of a TodoWrite call"),
    "github": Form("github", "read", "gh issue list --json …"),
    "linear": Form("tables", "read_linear", "Linear's CSV"),
    "jira": Form("tables", "read_jira", "Jira's CSV"),
    "todotxt": Form("todotxt", "read", "todo.txt"),
    "org": Form("org", "read", "Org mode"),
    "ics": Form("ics", "read", "to-dos of a calendar"),
}
"""What `punch import --from` knows."""

_BY_SUFFIX = {".md": "markdown", ".markdown": "markdown", ".org": "org", ".ics": "ics", ".ical": "ics", ".vcs": "ics"}
_MOST_FILES = 10_000
_INSIDE = (".beads/issues.jsonl", "issues.jsonl", ".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
"""What is looked for in a folder, relative to it."""

_ELEMENTS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("content", "status")), "todowrite"),
    (frozenset(("subject",)), "claude"),
    (frozenset(("uuid", "description")), "taskwarrior"),
    (frozenset(("description", "entry")), "taskwarrior"),
    (frozenset(("number", "title")), "github"),
    (frozenset(("id", "title", "issue_type")), "beads"),
    (frozenset(("id", "title", "status")), "beads"),
    (frozenset(("content",)), "todowrite"),
)
"""Members that an object of a list or of a line has → its form; the first row that fits decides."""

_EVENT = frozenset(("seq", "version"))
# No possessive group: Python before 3.11.5 matches one that backtracks inside wrongly (python/cpython#106052).
_LIST = re.compile(
    r"(?:[^\S\n]*+(?!(?:[-*+]|\d{1,9}[.)])[ \t])(?:#.*|[^\n]*:[ \t]*)?\n)*[^\S\n]*+(?:[-*+]|\d{1,9}[.)])[ \t]"
)
"""A text that begins with a list, perhaps below a heading or a line that ends in a colon."""


def documents(path: str) -> list[Document]:
    """The file, or the files of a folder that hold tasks.

    Raises:
        FormatError: There are none, too many, or one can't be read.
        OSError: A file can't be opened.
    """
    if path == "-" or not os.path.isdir(path):
        return [read(path)]
    from punchlist_apps.files.importers.beads import TABLES

    for suffix in (".jsonl", ".csv"):
        tables = [os.path.join(path, f"{stem}{suffix}") for stem in ("issues", *TABLES)]
        there = [table for table in tables if os.path.isfile(table)]
        if there[:1] == tables[:1] and (there[1:] or suffix == ".csv"):
            return [read(table) for table in there]
    if (inside := [one for one in _INSIDE if os.path.isfile(os.path.join(path, one))]) and inside != ["tasks.json"]:
        return [read(os.path.join(path, inside[0]))]
    files = [os.path.join(path, name) for name in _names(path, ".json")]
    for folder in sorted(os.scandir(path), key=lambda one: one.name):
        if folder.is_dir() and not folder.name.startswith("."):
            files += [os.path.join(folder.path, name) for name in _names(folder.path, ".json")]
    if not files:
        raise FormatError(
            f"no tasks in this folder: looked for *.json, */*.json, {', '.join(_INSIDE)}, issues.csv", path
        )
    if len(files) > _MOST_FILES:
        raise FormatError(f"more than {_MOST_FILES:,} files", path)
    return [read(file) for file in files]


def _names(folder: str, suffix: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(suffix) and not name.startswith("."))


def drafted(found: Sequence[Document], name: str = "") -> Draft:
    """The tasks of a file, or of the files of a folder, in the form `name` or the one that it is in.

    Raises:
        FormatError: Says which file, which line and what is wrong.
    """
    chosen = name or (detected(found[0]) if len(found) == 1 else "claude" if found[0].suffix == ".json" else "beads")
    if len(found) > 1 and chosen not in ("claude", "beads"):
        raise FormatError(
            f"a folder is read as files of Claude Code or tables of beads, not as {chosen}", found[0].name
        )
    form = FORMS[chosen]
    reader: Callable[[Sequence[Document]], Draft] = getattr(
        import_module(f"punchlist_apps.files.importers.{form.module}"), form.function
    )
    draft = reader(found)
    for document in found:
        if document.encoding:
            draft.change(f"a file in {document.encoding}")
    return draft


def detected(document: Document) -> str:  # noqa: PLR0911 - a table of tests in their order
    """The form of one file: by what it says, and where that leaves it open by its name.

    Raises:
        FormatError: It begins like JSON and is none, or none that we know.
    """
    text = document.text.lstrip()
    if not text:
        raise FormatError("the file is empty", document.name)
    if text.startswith("{") or (
        text.startswith("[") and not re.match(r"\[[^\]\n]?\][ \t]+\S", text) and re.match(r"\[\s*[\[\]{\"\d]", text)
    ):
        return _of_json(document, text)
    if text[:40].upper().startswith("BEGIN:VCALENDAR"):
        return "ics"
    if document.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[document.suffix]
    if document.suffix in (".csv", ".tsv") or _looks_tabular(text):
        return _of_table(document)
    from punchlist_apps.files.importers import org, todotxt

    if org.is_like(text):
        return "org"
    is_named = document.suffix == ".txt" and document.stem.lower() in ("todo", "done")
    if todotxt.is_like(text) or (is_named and not _LIST.match(text) and "[ ] " not in text):
        return "todotxt"
    return "markdown"


def _of_json(document: Document, text: str) -> str:
    lines = text.split("\n", 1)
    if (
        text.startswith("{")
        and len(lines) > 1
        and lines[1].strip()
        and _members(Document(document.name, lines[0].rstrip().rstrip(",")))
    ):
        return _of_members(_members(Document(document.name, lines[0].rstrip().rstrip(","))), document.name)
    value = json_value(document)
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        if not listed:
            raise FormatError("no tasks found: an empty list", document.name)
        first: Any = listed[0]
        members = frozenset(cast("dict[str, Any]", first)) if isinstance(first, dict) else frozenset[str]()
        return _of_members(members, document.name)
    return _of_object(cast("dict[str, Any]", value), document.name)


def _of_object(value: dict[str, Any], name: str) -> str:
    if "todos" in value:
        return "todowrite"
    tasks: Any = value.get("tasks")
    if isinstance(tasks, list):
        known: set[str] = set()
        for one in cast("list[Any]", tasks):
            known |= set(cast("dict[str, Any]", one)) if isinstance(one, dict) else set()
        is_own = value.get("format") == "punchlist" or not known & {
            "dependencies",
            "subtasks",
            "testStrategy",
            "details",
        }
        return "json" if is_own else "taskmaster"
    if any(isinstance(one, dict) and "tasks" in one for one in value.values()):
        return "taskmaster"
    for member in ("rows", "issues", "items"):
        listed = value.get(member)
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            return _of_members(frozenset(cast("dict[str, Any]", listed[0])), name)
    return _of_members(frozenset(value), name)


def _of_members(members: frozenset[str], name: str) -> str:
    if members >= _EVENT and "title" not in members:
        raise FormatError("these are events; punch export --format json writes what can be read back", name)
    for wanted, form in _ELEMENTS:
        if members >= wanted:
            return form
    shown = ", ".join(sorted(members)[:8]) or "nothing"
    raise FormatError(f"JSON of no known form (members: {shown}); --from names one", name)


def _members(document: Document) -> frozenset[str]:
    try:
        value = json_value(document)
    except FormatError:
        return frozenset()
    return frozenset(cast("dict[str, Any]", value)) if isinstance(value, dict) else frozenset()


def _looks_tabular(text: str) -> bool:
    first = text.split("\n", 1)[0].lower()
    return max(map(first.count, ",;\t")) > 1 and ("summary" in first or "title" in first) and "status" in first


def _of_table(document: Document) -> str:
    from punchlist_apps.files.importers.tables import header

    names = frozenset(header(document))
    if "summary" in names and names & {"issue key", "key", "issue id", "issue type"}:
        return "jira"
    if names >= {"id", "title", "issue_type"}:
        return "beads"
    if names >= {"id", "title", "status"}:
        return "linear"
    shown = ", ".join(sorted(names)[:8])
    raise FormatError(f"a table of no known form (columns: {shown}); --from jira or --from linear", document.name, 1)
