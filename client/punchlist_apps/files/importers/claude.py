"""Claude Code: the files of a session's folder in `~/.claude/tasks`, of all sessions, or a TodoWrite list."""

import os
from collections.abc import Sequence
from typing import Any, cast

from punchlist_apps.files.importers import words
from punchlist_apps.files.importers.document import Document, as_list, as_object, json_value, text_of, texts_of
from punchlist_apps.files.importers.draft import Draft
from punchlist_apps.files.importers.wrong import FormatError

_READ = frozenset("id subject description activeForm owner status metadata blocks blockedBy".split())
_READ_TODO = frozenset("content activeForm status priority id".split())
_STATES = frozenset(("", "pending", "in_progress", "completed"))
_SHORT = 8


def read(documents: Sequence[Document]) -> Draft:
    """The tasks of one session or of many; with many each has a label `session-…` of its session.

    An edge to a task that is not there (any more) never blocked anything; deleted tasks are passed over.
    """
    draft = Draft("claude", documents[0].name)
    blocks: list[tuple[str, str]] = []
    sessions = {_session(document) for document in documents}
    for document in sorted(documents, key=lambda one: (_session(one), _number(one.stem))):
        session = _session(document)
        labels = [f"session-{session[:_SHORT]}"] if len(sessions) > 1 else []
        value = json_value(document)
        if isinstance(value, list):
            _todos(draft, document, cast("list[Any]", value), [f"session-{document.stem[:_SHORT]}"])
            continue
        blocks += _task(draft, document, as_object(value, "the file", document.name), session, labels)
    for task, blocker in blocks:
        if (item := draft.find(task)) is not None:
            item.blocked_by.append(blocker)
    for item in draft.items:
        item.blocked_by = [one for one in item.blocked_by if draft.find(one)]
    return draft.finish()


def read_todos(documents: Sequence[Document]) -> Draft:
    """Read the tasks of a TodoWrite call: `{"todos": [{"content", "status", "activeForm"}]}` or the bare list."""
    document = documents[0]
    draft = Draft("todowrite", document.name)
    value = json_value(document)
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("todos")
    _todos(draft, document, as_list(value, "todos", document.name), [])
    return draft.finish()


def _todos(draft: Draft, document: Document, todos: list[Any], labels: list[str]) -> None:
    for index, one in enumerate(todos):
        where = f"todos[{index}]"
        todo = as_object(one, where, document.name)
        draft.pass_over_rest(todo, _READ_TODO)
        if not isinstance(todo.get("content"), str):
            raise FormatError(f"{where}.content: expected a string", document.name)
        _check_state(todo, f"{where}.status", document.name)
        draft.add(
            todo["content"],
            active_form=text_of(todo.get("activeForm")),
            priority=words.priority(draft, text_of(todo.get("priority"))),
            status=text_of(todo.get("status")) or "pending",
            labels=labels,
        )


def _task(
    draft: Draft, document: Document, task: dict[str, Any], session: str, labels: list[str]
) -> list[tuple[str, str]]:
    """Add a task; what it blocks, with itself."""
    ident = text_of(task.get("id"))
    if not ident:
        raise FormatError("id: expected the task's number", document.name)
    if not isinstance(task.get("subject"), str):
        raise FormatError("subject: expected a string", document.name)
    key = f"{session}/{ident}"
    if draft.find(key):
        raise FormatError(f"id {ident} is already used in this session", document.name)
    if task.get("status") == "deleted":
        draft.pass_over("deleted tasks")
        return []
    _check_state(task, "status", document.name)
    draft.pass_over_rest(task, _READ)
    draft.add(
        task["subject"],
        key=key,
        description=text_of(task.get("description")),
        active_form=text_of(task.get("activeForm")),
        owner=text_of(task.get("owner")),
        status=text_of(task.get("status")) or "pending",
        metadata=task["metadata"] if isinstance(task.get("metadata"), dict) else {},
        labels=labels,
        blocked_by=[f"{session}/{one}" for one in texts_of(task.get("blockedBy"))],
    )
    return [(f"{session}/{one}", key) for one in texts_of(task.get("blocks"))]


def _check_state(record: dict[str, Any], where: str, name: str) -> None:
    if text_of(record.get("status")) not in _STATES:
        raise FormatError(f"{where}: expected one of {', '.join(sorted(filter(None, _STATES)))}", name)


def _session(document: Document) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(document.name)))


def _number(stem: str) -> tuple[int, int, str]:
    return (0, int(stem), "") if stem.isdecimal() else (1, 0, stem)
