"""Claude Code: the files of one session's folder in `~/.claude/tasks`, those of all sessions, or a TodoWrite list."""

import os
from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, expect_list, expect_object, parse_json, to_text, to_texts
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.wrong import FormatError

_READ = frozenset("id subject description activeForm owner status metadata blocks blockedBy".split())
_READ_TODO = frozenset("content activeForm status priority id".split())
_STATUSES = frozenset(("", "pending", "in_progress", "completed"))
_TODO_STATUSES = _STATUSES | {"cancelled"}
_SESSION_LENGTH = 8


def read(documents: Sequence[Document]) -> Draft:
    """Read the tasks of one or more sessions. If there is more than one session, each task gets a label `session-…`.

    Dependencies on missing tasks are dropped, since they block nothing in Claude Code. Deleted tasks are skipped.
    """
    draft = Draft("claude", documents[0].name)
    blocks: list[tuple[str, str]] = []
    sessions = {_get_session(document) for document in documents}
    for document in sorted(documents, key=lambda file: (_get_session(file), _get_sort_key(file.stem))):
        session = _get_session(document)
        labels = [f"session-{session[:_SESSION_LENGTH]}"] if len(sessions) > 1 else []
        value = parse_json(document)
        if isinstance(value, list):
            _add_todos(draft, document, cast("list[Any]", value), [f"session-{document.stem[:_SESSION_LENGTH]}"])
            continue
        blocks += _add_task(draft, document, expect_object(value, "the file", document.name), session, labels)
    for task, blocker in blocks:
        if (item := draft.find(task)) is not None:
            item.blocked_by.append(blocker)
    for item in draft.items:
        item.blocked_by = [blocker for blocker in item.blocked_by if draft.find(blocker)]
    return draft.finish()


def read_todos(documents: Sequence[Document]) -> Draft:
    """Read the tasks of a TodoWrite call, `{"todos": [{"content", "status", "activeForm"}]}` or just the list.

    OpenCode's todos have the same form, and may be cancelled.
    """
    document = documents[0]
    draft = Draft("todowrite", document.name)
    value = parse_json(document)
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("todos")
    _add_todos(draft, document, expect_list(value, "todos", document.name), [])
    return draft.finish()


def _add_todos(draft: Draft, document: Document, todos: list[Any], labels: list[str]) -> None:
    for index, value in enumerate(todos):
        where = f"todos[{index}]"
        todo = expect_object(value, where, document.name)
        draft.skip_unread(todo, _READ_TODO)
        if not isinstance(todo.get("content"), str):
            raise FormatError(f"{where}.content: expected a string", document.name)
        _check_status(todo, f"{where}.status", document.name, _TODO_STATUSES)
        draft.add(
            todo["content"],
            active_form=to_text(todo.get("activeForm")),
            priority=words.parse_priority(draft, to_text(todo.get("priority"))),
            state=words.parse_status(draft, to_text(todo.get("status"))),
            labels=labels,
        )


def _add_task(
    draft: Draft, document: Document, task: dict[str, Any], session: str, labels: list[str]
) -> list[tuple[str, str]]:
    """Add a task. Return a pair for each task that it blocks: the blocked task and this task."""
    ident = to_text(task.get("id"))
    if not ident:
        raise FormatError("id: expected the task's number", document.name)
    if not isinstance(task.get("subject"), str):
        raise FormatError("subject: expected a string", document.name)
    key = f"{session}/{ident}"
    if draft.find(key):
        raise FormatError(f"id {ident} is already used in this session", document.name)
    if task.get("status") == "deleted":
        draft.skip("deleted tasks")
        return []
    _check_status(task, "status", document.name)
    draft.skip_unread(task, _READ)
    draft.add(
        task["subject"],
        key=key,
        description=to_text(task.get("description")),
        active_form=to_text(task.get("activeForm")),
        owner=to_text(task.get("owner")),
        status=to_text(task.get("status")) or "pending",
        metadata=task["metadata"] if isinstance(task.get("metadata"), dict) else {},
        labels=labels,
        blocked_by=[f"{session}/{blocker}" for blocker in to_texts(task.get("blockedBy"))],
    )
    return [(f"{session}/{blocked}", key) for blocked in to_texts(task.get("blocks"))]


def _check_status(record: dict[str, Any], where: str, name: str, allowed: frozenset[str] = _STATUSES) -> None:
    if to_text(record.get("status")) not in allowed:
        raise FormatError(f"{where}: expected one of {', '.join(sorted(filter(None, allowed)))}", name)


def _get_session(document: Document) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(document.name)))


def _get_sort_key(stem: str) -> tuple[int, int, str]:
    return (0, int(stem), "") if stem.isdecimal() else (1, 0, stem)
