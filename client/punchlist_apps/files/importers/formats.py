"""The table of formats, the detection of a file's format, and one function that reads files of any format."""

import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from punchlist_apps.files.importers.document import Document, read_file
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.wrong import FormatError


class Format(NamedTuple):
    """A format: its module in `files.importers`, the name of its reader function, and a description."""

    module: str
    function: str
    about: str


FORMATS: dict[str, Format] = {
    "markdown": Format("markdown", "read", "check lists and plans"),
    "kiro": Format("markdown", "read", "Kiro's tasks.md"),
    "spec-kit": Format("markdown", "read", "Spec-Kit's tasks.md"),
    "openspec": Format("markdown", "read", "OpenSpec's tasks.md"),
    "obsidian": Format("markdown", "read", "notes with fields of Obsidian Tasks"),
    "kanban": Format("markdown", "read", "boards of Obsidian Kanban"),
    "logseq": Format("markdown", "read", "Logseq's pages"),
    "backlog": Format("backlog", "read", "Backlog.md: its folder, or one task"),
    "json": Format("export", "read", "punch export"),
    "beads": Format("beads", "read", "bd export, .beads/issues.jsonl, tables of its Dolt database"),
    "taskwarrior": Format("taskwarrior", "read", "task export"),
    "taskmaster": Format("taskmaster", "read", ".taskmaster/tasks/tasks.json"),
    "claude": Format("claude", "read", "~/.claude/tasks, or the folder of one session"),
    "todowrite": Format("claude", "read_todos", "the todos of TodoWrite or OpenCode"),
    "codex": Format("records", "read_codex", "the plan of Codex's update_plan"),
    "gemini": Format("records", "read_gemini", "the todos of Gemini's write_todos"),
    "features": Format("records", "read_features", "feature_list.json, or other tasks in JSON"),
    "prd": Format("records", "read_prd", "Ralph's prd.json"),
    "shrimp": Format("records", "read_shrimp", "Shrimp task manager"),
    "github": Format("github", "read", "gh issue list --json …"),
    "gitlab": Format("records", "read_gitlab", "issues from GitLab's API"),
    "trello": Format("trello", "read", "JSON export of a Trello board"),
    "googletasks": Format("records", "read_google_tasks", "Google Tasks"),
    "csv": Format("tables", "read_csv", "tables with a title column"),
    "linear": Format("tables", "read_linear", "Linear's CSV"),
    "jira": Format("tables", "read_jira", "Jira's CSV"),
    "todotxt": Format("todotxt", "read", "todo.txt"),
    "org": Format("org", "read", "Org mode"),
    "ics": Format("ics", "read", "to-dos of a calendar"),
}
"""The formats of `punch import --from`."""

_MARKDOWN = (".md", ".markdown")
_BY_SUFFIX = {".org": "org", ".ics": "ics", ".ical": "ics", ".vcs": "ics"}
_BY_FOLDER = {".json": "claude", ".md": "backlog"}
"""Suffix of the files in a folder -> format."""

_MAX_FILES = 10_000
_KNOWN_FILES = (
    *(".beads/issues.jsonl", "issues.jsonl", ".taskmaster/tasks/tasks.json", "tasks/tasks.json", "prd.json"),
    *("feature_list.json", "shrimp_data/tasks.json", ".shrimp/tasks.json", "tasks.json"),
)
"""Paths of the files that are searched for in a folder, relative to it."""

# No possessive group: before 3.11.5, Python mishandles backtracking inside such a group (python/cpython#106052).
_LIST = re.compile(
    r"(?:[^\S\n]*+(?!(?:[-*+]|\d{1,9}[.)])[ \t])(?:#.*|[^\n]*:[ \t]*)?\n)*[^\S\n]*+(?:[-*+]|\d{1,9}[.)])[ \t]"
)
"""Matches text that starts with a list, possibly after headings or lines that end in a colon."""


def read_documents(path: str) -> list[Document]:
    """Read a file, or the task files of a folder.

    Raises:
        FormatError: The folder has no task files or too many, or a file can't be read.
        OSError: A file can't be opened.
    """
    if path == "-" or not os.path.isdir(path):
        return [read_file(path)]
    from punchlist_apps.files.importers import backlog
    from punchlist_apps.files.importers.beads import TABLES

    for suffix in (".jsonl", ".csv"):
        tables = [os.path.join(path, f"{stem}{suffix}") for stem in ("issues", *TABLES)]
        present = [table for table in tables if os.path.isfile(table)]
        if present[:1] == tables[:1] and (present[1:] or suffix == ".csv"):
            return [read_file(table) for table in present]
    names = [name for name in _KNOWN_FILES if os.path.isfile(os.path.join(path, name))]
    if len(names) > 1:
        raise FormatError(f"this folder has {len(names)} task files; import one: {', '.join(names)}", path)
    if names:
        return [read_file(os.path.join(path, names[0]))]
    if tasks := backlog.list_files(path):
        return _read_files(tasks, path)
    files = [os.path.join(path, name) for name in _list_names(path, ".json")]
    for folder in sorted(os.scandir(path), key=lambda entry: entry.name):
        if folder.is_dir() and not folder.name.startswith("."):
            files += [os.path.join(folder.path, name) for name in _list_names(folder.path, ".json")]
    if not files:
        raise FormatError(
            f"no tasks in this folder: looked for *.json, */*.json, {', '.join(_KNOWN_FILES)}, issues.csv, backlog",
            path,
        )
    return _read_files(files, path)


def _read_files(files: Sequence[str], path: str) -> list[Document]:
    if len(files) > _MAX_FILES:
        raise FormatError(f"more than {_MAX_FILES:,} files", path)
    return [read_file(file) for file in files]


def _list_names(folder: str, suffix: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(suffix) and not name.startswith("."))


def build_draft(documents: Sequence[Document], name: str = "") -> Draft:
    """Parse the files in the format `name`, or in the detected format if it is empty.

    Raises:
        FormatError: A file is invalid. The message names the file, the line and the error.
    """
    chosen = name or (
        detect_format(documents[0]) if len(documents) == 1 else _BY_FOLDER.get(documents[0].suffix, "beads")
    )
    if len(documents) > 1 and chosen not in (*_BY_FOLDER.values(), "beads"):
        raise FormatError(
            f"a folder is read as files of Claude Code, tasks of Backlog.md or tables of beads, not as {chosen}",
            documents[0].name,
        )
    form = FORMATS[chosen]
    reader: Callable[..., Draft] = getattr(
        import_module(f"punchlist_apps.files.importers.{form.module}"), form.function
    )
    try:
        draft = reader(documents, chosen) if form.module == "markdown" else reader(documents)
    except RecursionError as error:
        raise FormatError("nested too deeply", documents[0].name) from error
    for document in documents:
        if document.encoding:
            draft.note_change(f"a file in {document.encoding}")
    return draft


def detect_format(document: Document) -> str:  # noqa: PLR0911 - an ordered list of tests
    """Return the format of a file, detected by its content, or else by its name.

    Raises:
        FormatError: The file starts like JSON but is invalid, or its format is unknown.
    """
    from punchlist_apps.files.importers import shapes

    text = document.text.lstrip()
    if not text:
        raise FormatError("the file is empty", document.name)
    if text.startswith("{") or (
        text.startswith("[") and not re.match(r"\[[^\]\n]?\][ \t]+\S", text) and re.match(r"\[\s*[\[\]{\"\d]", text)
    ):
        return shapes.detect_json(document)
    if text[:40].upper().startswith("BEGIN:VCALENDAR"):
        return "ics"
    if document.suffix in _MARKDOWN:
        return _detect_markdown(document)
    if document.suffix in _BY_SUFFIX:
        return _BY_SUFFIX[document.suffix]
    if document.suffix in (".csv", ".tsv") or shapes.is_tabular(text):
        return shapes.detect_table(document)
    from punchlist_apps.files.importers import org, todotxt

    if org.is_org(text):
        return "org"
    is_named = document.suffix == ".txt" and document.stem.lower() in ("todo", "done")
    if todotxt.is_todotxt(text) or (is_named and not _LIST.match(text) and "[ ] " not in text):
        return "todotxt"
    return _detect_markdown(document)


def _detect_markdown(document: Document) -> str:
    from punchlist_apps.files.importers import backlog, markdown_forms

    return "backlog" if backlog.is_task(document) else markdown_forms.detect_form(document).name
