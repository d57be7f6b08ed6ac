"""The events of MCP Events (SEP-3415), their filters and cursors: plain values, without the SDK.

A cursor is `EPOCH.SEQ`, the position after which events follow. The id of an event is the cursor right after it.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from punchlist.base.actors import belongs_to_agent
from punchlist.calls.cursor import Change
from punchlist_schemas.events import AnyEvent, ListCleared, StatusChanged, TaskAdded

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
"""Member of a notification's `_meta` with the id of the request that opened the stream."""

CONVERSATION_KEY = "punchlist/conversation"
"""Member of `_meta` with a list: of a call's request, or of a stream's notification."""

RESUMED_KEY = "punchlist/resumed"
"""Member of a request's `_meta`: an earlier worker has opened this stream."""

_CURSOR = re.compile(r"([0-9a-f]{1,64})\.([0-9]{1,15})")
_MAX_TASKS = 1_000
_FINISHED = frozenset({"completed", "failed"})


class Position(NamedTuple):
    """A position in a log, which `epoch` identifies."""

    epoch: str
    seq: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}"


def parse_cursor(text: str) -> Position:
    """Parse a cursor.

    Raises:
        ValueError: It isn't a cursor of this server.
    """
    if (match := _CURSOR.fullmatch(text)) is None:
        raise ValueError(f"{text[:80]!r} isn't a cursor of this server; pass null to start now")
    return Position(match[1], int(match[2]))


class EventType(NamedTuple):
    """A type of events: its description, and which events of the log belong to it."""

    description: str
    matches: Callable[[AnyEvent], bool]


def _is_any(_event: AnyEvent) -> bool:
    return True


def _is_added(event: AnyEvent) -> bool:
    return isinstance(event, TaskAdded)


def _is_end(event: AnyEvent) -> bool:
    return isinstance(event, StatusChanged) and event.to in _FINISHED and event.from_ != event.to


EVENT_TYPES: dict[str, EventType] = {
    "task.changed": EventType(
        "Anything that happens to a task: added, edited, started, claimed, noted, finished, moved, deleted",
        _is_any,
    ),
    "task.added": EventType("A task was added to the list", _is_added),
    "task.finished": EventType(
        "A task was completed or has failed",
        _is_end,
    ),
}

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "conversation": {"type": "string", "description": "The list (default: the list of this session)"},
        "tasks": {"type": "array", "items": {"type": "string"}, "description": "Only these tasks, by their ids"},
        "actor": {"type": "string", "description": "Only changes by this agent or person, or by a host's agents"},
    },
}
PAYLOAD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["conversation", "seq", "actor", "change"],
    "properties": {
        "conversation": {"type": "string"},
        "seq": {"type": "integer", "description": "Position in the log"},
        "actor": {"type": "string"},
        "task": {"type": "string", "description": "Id of the task; missing if the change concerns all tasks"},
        "change": {"type": "object", "required": ["type"], "description": "As in event.read"},
    },
}


class Arguments(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a client selects with `arguments`."""

    conversation: str | None = None
    tasks: tuple[str, ...] | None = None
    actor: str | None = None


class Selection(NamedTuple):
    """The events that a client requests: those of one type that match the arguments."""

    name: str
    arguments: Arguments

    @classmethod
    def parse(cls, name: str, arguments: object) -> "Selection":
        """Parse what a client sent.

        Raises:
            KeyError: Unknown type of events.
            ValueError: Invalid arguments.
        """
        if name not in EVENT_TYPES:
            raise KeyError(name)
        parsed = msgspec.convert(arguments or {}, Arguments)
        if parsed.tasks is not None and len(parsed.tasks) > _MAX_TASKS:
            raise ValueError(f"arguments.tasks has more than {_MAX_TASKS} ids; subscribe to all tasks instead")
        return cls(name, parsed)

    def list_occurrences(self, changes: list[Change], epoch: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the position and the wire form of each selected event."""
        for change in changes:
            if self._matches(change):
                yield change.seq, _build_occurrence(self.name, change, epoch)

    def _matches(self, change: Change) -> bool:
        wanted, task = self.arguments, _get_task(change.event)
        if task is None and not isinstance(change.event, ListCleared):
            return False
        return (
            EVENT_TYPES[self.name].matches(change.event)
            and (wanted.tasks is None or task is None or task in wanted.tasks)
            and (wanted.actor is None or belongs_to_agent(change.actor, wanted.actor))
        )


def _get_task(event: AnyEvent) -> str | None:
    return event.task.id if isinstance(event, TaskAdded) else getattr(event, "task", None)


def _build_occurrence(name: str, change: Change, epoch: str) -> dict[str, Any]:
    data: dict[str, Any] = {"conversation": change.conversation, "seq": change.seq, "actor": change.actor}
    if (task := _get_task(change.event)) is not None:
        data["task"] = task
    data["change"] = msgspec.to_builtins(change.event)
    at = datetime.fromtimestamp(change.at / 1000, UTC).isoformat(timespec="milliseconds")
    return {
        "eventId": str(Position(epoch, change.seq)),
        "name": name,
        "timestamp": at.replace("+00:00", "Z"),
        "data": data,
    }
