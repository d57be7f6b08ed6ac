"""The Claude format: a folder for each conversation with a JSON file for each task, `ID.json`. No I/O."""

from collections.abc import Iterable
from typing import Any, cast

from punchlist.taskfiles.file_format import (
    MEMBER,
    Document,
    Fields,
    Origin,
    Unreadable,
    digest_of,
    id_in,
    load_object,
    origin_in,
    text_in,
    title_in,
    write,
)
from punchlist.taskfiles.file_names import conversation_of, stems_of
from punchlist_schemas.things import Status, Task

_SUBSTITUTES: dict[Status, str] = {"paused": "pending", "failed": "pending"}
"""Statuses that this format lacks -> the statuses written instead."""

_STATUSES = ("pending", "in_progress", "completed", "deleted")
_MAX_DIGITS = 20


class Claude:
    """One file for each task, as Claude Code and similar programs write them."""

    name = "claude"
    is_single = False

    def stems(self, conversation: str) -> tuple[str, ...]:
        return stems_of(conversation, keep_dashes=True)

    def conversation(self, stem: str) -> str | None:
        return conversation_of(stem, keep_dashes=True)

    def folder(self, stem: str) -> tuple[str, ...]:
        return (stem,)

    def is_document(self, name: str, stem: str) -> bool:
        number, dot, extension = name.partition(".")
        is_number = number.isascii() and number.isdecimal() and number[:1] != "0"
        return is_number and len(number) <= _MAX_DIGITS and dot + extension == ".json"

    def render(self, origin: Origin, tasks: Iterable[Task], stem: str) -> dict[str, bytes]:
        source = {"conversation": origin.conversation, "epoch": origin.epoch, "version": origin.version}
        files: dict[str, bytes] = {}
        for task in tasks:
            item = _item(task.id, self.fields(task))
            files[f"{task.id}.json"] = write({**item, MEMBER: {**source, "digest": digest_of(item)}})
        return files

    def merge_foreign_members(self, data: bytes, present: bytes) -> bytes:
        # In this format, a missing member means a cleared value, and programs keep their own data in `metadata`.
        return data

    def parse(self, name: str, data: bytes) -> Document:
        """Parse the single task in a file. The file name is its id."""
        value = load_object(data)
        task = name.removesuffix(".json")
        if id_in(value) not in ("", task):
            raise Unreadable(f"id: expected {task}")
        status = value.get("status", "pending")
        if status not in _STATUSES:
            raise Unreadable(f"status: expected one of {', '.join(_STATUSES)}")
        metadata: Any = value.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise Unreadable("metadata: expected an object")
        fields: Fields = {
            "title": title_in(value, "subject"),
            "description": text_in(value, "description"),
            "active_form": text_in(value, "activeForm"),
            "owner": text_in(value, "owner"),
            "status": status,
            "metadata": metadata,
            "blocks": _ids(value, "blocks"),
            "blocked_by": _ids(value, "blockedBy"),
        }
        digest = digest_of(_item(task, fields))
        deleted = frozenset({task} if status == "deleted" else ())
        return Document({task: fields}, origin_in(value), digest, deleted)

    def fields(self, task: Task) -> Fields:
        return {
            "title": task.title,
            "description": task.description,
            "active_form": task.active_form,
            "owner": task.owner,
            "status": _SUBSTITUTES.get(task.status, task.status),
            "metadata": task.metadata,
            "blocks": frozenset(task.blocks),
            "blocked_by": frozenset(task.blocked_by),
        }


def _item(task: str, fields: Fields) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": task,
        "subject": fields["title"],
        "description": fields["description"],
        # Some programs skip tasks without this member.
        "activeForm": fields["active_form"],
        "status": fields["status"],
        "blocks": sorted(fields["blocks"], key=_number),
        "blockedBy": sorted(fields["blocked_by"], key=_number),
    }
    return item | {name: fields[name] for name in ("owner", "metadata") if fields[name]}


def _number(task: str) -> tuple[int, str]:
    return (len(task), task)


def _ids(value: dict[str, Any], member: str) -> frozenset[str]:
    items: Any = value.get(member) or []
    if not isinstance(items, list):
        raise Unreadable(f"{member}: expected a list of ids")
    ids = cast("list[Any]", items)
    if not all(isinstance(id, str | int) and not isinstance(id, bool) for id in ids):
        raise Unreadable(f"{member}: expected a list of ids")
    return frozenset(str(id) for id in ids)
