"""Events for commands to print: those in the log, page by page, and those to come, by push."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from punchlist.errors import Damaged, Gap
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.printing.failure import StateError, show_gap

if TYPE_CHECKING:
    from punchlist.calls.cursor import Change

_PAGE = 10_000


def read_events(context: Context, *, everywhere: bool = False) -> Iterator[dict[str, Any]]:
    """All events of the conversation (or of all), from the first, page by page.

    They end before damage in the log of one conversation; the context notes where.
    """
    after = 0
    conversation = None if everywhere else context.existing_conversation
    while True:
        try:
            page = context.call("event.read", conversation=conversation, after=after, limit=_PAGE)
        except Gap as gap:
            after = show_gap(gap)
            continue
        except Damaged as damaged:
            context.note_truncation(damaged.data["seq"], "its log is damaged there")
            return
        yield from page["events"]
        if not page["events"] or page["next"] <= after:
            return
        after = page["next"]


def find_version(context: Context, point: tuple[int | None, int]) -> int:
    """The version that a list was at: a version, or the newest one at a time in milliseconds since 1970 UTC."""
    version, at = point
    if version is not None:
        return version
    found = 0
    for event in read_events(context):
        if event["at"] > at:
            break
        found = event["version"]
    if not found:
        raise StateError(
            f"the list {context.conversation} was not there yet at that time; punch log shows when it began"
        )
    return found


def stream_events(context: Context, *, after: int | None = None, everywhere: bool = False) -> Iterator[dict[str, Any]]:
    """Events as they happen, as values of the wire; for ever."""
    client = context.client
    while True:
        one = None if everywhere else client.conversation(context.existing_conversation)
        try:
            with client.watch(after=after) if one is None else one.watch(after=after) as changes:
                for change in changes:
                    yield to_wire_value(change)
            return
        except Gap as gap:
            after = show_gap(gap)


def to_wire_value(change: "Change") -> dict[str, Any]:
    """An event as it stands on the wire, also one of a type that this version does not know."""
    import msgspec

    from punchlist_schemas.events import UnknownEvent

    event = change.event
    shown: Any = msgspec.json.decode(event.raw) if isinstance(event, UnknownEvent) else msgspec.to_builtins(event)
    head = {name: getattr(change, name) for name in ("seq", "conversation", "version", "at", "actor")}
    return {**head, "event": shown}
