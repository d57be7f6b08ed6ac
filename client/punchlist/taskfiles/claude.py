"""The Claude form: a folder for each conversation with one JSON object for each task, `ID.json`. Pure."""

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

_SHOWN: dict[Status, str] = {"paused": "pending", "failed": "pending"}
"""What stands for the statuses that this form does not have."""

_STATUSES = ("pending", "in_progress", "completed", "deleted")
_MAX_DIGITS = 20


class Claude:
    """One file for each task, as Claude Code and programs like it keep them."""

    name = "claude"
    is_single = False

    def stems(self, conversation: str) -> tuple[str, ...]:
        return stems_of(conversation, keep_dashes=True)

    def conversation(self, stem: str) -> str | None:
        return conversation_of(stem, keep_dashes=True)

    def folder(self, stem: str) -> tuple[str, ...]:
        return (stem,)

    def is_document(self, name: str, stem: str) -> bool:
        number, dot, ending = name.partition(".")
        is_number = number.isascii() and number.isdecimal() and number[:1] != "0"
        return is_number and len(number) <= _MAX_DIGITS and dot + ending == ".json"

    def render(self, origin: Origin, tasks: Iterable[Task], stem: str) -> dict[str, bytes]:
        said = {"conversation": origin.conversation, "epoch": origin.epoch, "version": origin.version}
        files: dict[str, bytes] = {}
        for task in tasks:
            item = _item(task.id, self.fields(task))
            files[f"{task.id}.json"] = write({**item, MEMBER: {**said, "digest": digest_of(item)}})
        return files

    def merge_foreign_members(self, data: bytes, present: bytes) -> bytes:
        """The file as it is: in this form a member that is missing has been cleared, and others have `metadata`."""
        return data

    def parse(self, name: str, data: bytes) -> Document:
        """The one task in a file; its name counts, whatever id is written inside."""
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
            "status": _SHOWN.get(task.status, task.status),
            "metadata": task.metadata,
            "blocks": frozenset(task.blocks),
            "blocked_by": frozenset(task.blocked_by),
        }


def _item(task: str, fields: Fields) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": task,
        "subject": fields["title"],
        "description": fields["description"],
        # Readers are known that pass over a task without it.
        "activeForm": fields["active_form"],
        "status": fields["status"],
        "blocks": sorted(fields["blocks"], key=_number),
        "blockedBy": sorted(fields["blocked_by"], key=_number),
    }
    return item | {name: fields[name] for name in ("owner", "metadata") if fields[name]}


def _number(task: str) -> tuple[int, str]:
    return (len(task), task)


def _ids(value: dict[str, Any], member: str) -> frozenset[str]:
    found: Any = value.get(member) or []
    if not isinstance(found, list):
        raise Unreadable(f"{member}: expected a list of ids")
    ids = cast("list[Any]", found)
    if not all(isinstance(one, str | int) and not isinstance(one, bool) for one in ids):
        raise Unreadable(f"{member}: expected a list of ids")
    return frozenset(str(one) for one in ids)
