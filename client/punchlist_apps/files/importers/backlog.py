"""Reads the tasks of Backlog.md: a Markdown file for each task, with its members in the front matter."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from punchlist_apps.files.importers.document import Document, find_encoding, to_text, to_texts
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.words import parse_priority, parse_status
from punchlist_apps.files.importers.wrong import FormatError

_FOLDERS = ("tasks", "completed", "drafts", "archive/tasks", "archive/drafts")
"""Folders with tasks, in a project's folder `backlog`. Only the first two are imported."""

_LEFT_OUT = re.compile(r"(?:^|[/\\])(drafts|archive)(?:[/\\](?:tasks|drafts))?[/\\][^/\\]+$")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_HAS_ID = re.compile(r"---[ \t]*\n(?:(?!---).*\n)*?id:")
_MEMBER = re.compile(r"^([\w-]+):(.*)$")
_ELEMENT = re.compile(r"^[ \t]*-[ \t](.*)$")
_COMMENT = re.compile(r"^[ \t]*<!-- [A-Z:]+ -->[ \t]*\n?", re.MULTILINE)
_HEADING = re.compile(r"\A## Description[ \t]*\n+")
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})*")
_ID = re.compile(r"(?:[A-Za-z]+-)?(\d+(?:\.\d+)*)")
_SAMPLE_BYTES = 4_096
_NEEDED = ("id", "title", "status")
_READ = (
    *_NEEDED,
    "labels",
    "dependencies",
    "priority",
    "parent_task_id",
    "assignee",
    "type",
    "milestone",
    "references",
)
_HISTORY = (
    "created_date",
    "updated_date",
    "completed_date",
    "created",
    "updated",
    "ordinal",
    "reporter",
    "modified_files",
)


def list_files(path: str) -> list[str]:
    """Return the Markdown files of a project, its folder `backlog`, or a folder of tasks; empty if none is a task."""
    root = next(
        (folder for folder in (os.path.join(path, "backlog"), path) if os.path.isdir(os.path.join(folder, "tasks"))), ""
    )
    folders = [os.path.join(root, name) for name in _FOLDERS] if root else [path]
    names = [
        os.path.join(folder, name)
        for folder in folders
        if os.path.isdir(folder)
        for name in sorted(os.listdir(folder), key=_get_order)
    ]
    files = [name for name in names if name.endswith(".md") and os.path.isfile(name)]
    return files if any(map(_has_id, files)) else []


def _get_order(name: str) -> tuple[list[int], str]:
    number = _NUMBER.search(name)
    return [int(part) for part in number[0].split(".")] if number else [], name


def _has_id(path: str) -> bool:
    with open(path, "rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    encoding, start = find_encoding(sample)
    text = sample[start:].decode(encoding, "replace").replace("\r\n", "\n")
    return _HAS_ID.match(text) is not None


def is_task(document: Document) -> bool:
    """Return whether a file is a task of Backlog.md.

    Raises:
        FormatError: It looks like one, but lacks a member.
    """
    front = _FRONT.match(document.text)
    members = dict(_parse_members(front[1])) if front else {}
    missing = [name for name in _NEEDED if not members.get(name)]
    is_similar = "\n## Acceptance Criteria" in document.text or "<!-- AC:BEGIN -->" in document.text
    if len(missing) == 1 and is_similar:
        raise FormatError(
            f"its front matter has no {missing[0]}, which a task of Backlog.md needs; add it, "
            "or read only the checkboxes: --from markdown",
            document.name,
        )
    return not missing and (is_similar or "dependencies" in members or "created_date" in members)


def read(documents: Sequence[Document]) -> Draft:
    draft = Draft("backlog", documents[0].name)
    for document in documents:
        front = _FRONT.match(document.text)
        members = dict(_parse_members(front[1])) if front else {}
        if len(documents) > 1 and (place := _LEFT_OUT.search(document.name)):
            draft.skip(f"tasks in the folder {place[1]}")
        elif len(documents) > 1 and not members.get("id"):
            draft.skip("files without an id in their front matter")
        elif missing := [name for name in _NEEDED if not members.get(name)]:
            raise FormatError(f"not a task of Backlog.md: its front matter has no {missing[0]}", document.name)
        else:
            _add(draft, members, document.text[front.end() if front else 0 :])
    return draft.finish()


def _add(draft: Draft, members: dict[str, Any], body: str) -> None:
    labels = to_texts(members.get("labels"))
    labels += [to_text(members[name]) for name in ("type", "milestone") if members.get(name)]
    assignees = [name.removeprefix("@") for name in to_texts(members.get("assignee"))]
    if len(assignees) > 1:
        draft.skip("assignees beyond the first", count=len(assignees) - 1)
    references = to_texts(members.get("references"))
    urls = [text for text in references if text.startswith(("http://", "https://"))]
    if len(urls) < len(references):
        draft.skip("references that are not addresses", count=len(references) - len(urls))
    number = _get_number(to_text(members["id"]))
    draft.skip_unread(members, (*_READ, *_HISTORY))
    draft.add(
        members["title"],
        key=to_text(members["id"]),
        ref=number,
        description=_HEADING.sub("", _COMMENT.sub("", body).strip("\n")).strip(),
        state=parse_status(draft, to_text(members["status"])),
        priority=parse_priority(draft, to_text(members.get("priority"))),
        owner=assignees[0] if assignees else "",
        labels=labels,
        links=[("url", url) for url in urls],
        parent=_get_number(to_text(members.get("parent_task_id"))) or number.rpartition(".")[0],
        blocked_by=[_get_number(name) for name in to_texts(members.get("dependencies"))],
    )


def _get_number(name: str) -> str:
    """Return the number of an id such as `BACK-4.2`. A project's prefix may change, and old references keep theirs."""
    match = _ID.fullmatch(name.strip())
    return match[1] if match else name.strip()


def _parse_members(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the members of front matter. Values are strings, or lists of strings."""
    name, value = "", ""
    elements: list[str] = []
    for line in (*text.split("\n"), "end:"):
        if match := _MEMBER.match(line):
            if name:
                yield name, elements if elements and not value.strip(">|-") else _parse_value(value)
            name, value, elements = match[1], match[2].strip(), []
        elif match := _ELEMENT.match(line):
            elements.append(_unquote(match[1].strip()))
        elif line.strip() and not line.startswith("#"):
            value = f"{value.removesuffix('-').strip('>|')} {line.strip()}".strip()  # a folded or wrapped value


def _parse_value(value: str) -> str | list[str]:
    if value.startswith("[") and value.endswith("]"):
        return [text for part in value[1:-1].split(",") if (text := _unquote(part.strip()))]
    return _unquote(value)


def _unquote(value: str) -> str:
    if value[:1] == value[-1:] == "'":
        return value[1:-1].replace("''", "'")
    if value[:1] == value[-1:] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return value
