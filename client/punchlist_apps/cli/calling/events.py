"""Events for commands to print, either read from the log in pages or pushed as they happen."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from punchlist.errors import Damaged, Gap
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.printing.failure import StateError, show_gap

if TYPE_CHECKING:
    from punchlist.calls.cursor import Change

_PAGE = 10_000


def read_events(context: Context, *, everywhere: bool = False) -> Iterator[dict[str, Any]]:
    """Yield all events of the list, or of all lists, starting with the first.

    If the list's log is damaged, the iteration ends at the damage, and the context records the position.
    """
    after = 0
    conversation = None if everywhere else context.existing_conversation
    while True:
        try:
            page = context.call("event.read", conversation=conversation, after=after, limit=_PAGE)
        except Gap as gap:
            after = show_gap(gap)
            continue
        except Damaged as damage:
            context.note_truncation(damage.data["seq"], "its log is damaged there")
            return
        yield from page["events"]
        if not page["events"] or page["next"] <= after:
            return
        after = page["next"]


def find_version(context: Context, point: tuple[int | None, int]) -> int:
    """Return the list's version at a point, which is a version or a time in milliseconds since 1970 UTC."""
    version, at = point
    if version is not None:
        return version
    newest = 0
    for event in read_events(context):
        if event["at"] > at:
            break
        newest = event["version"]
    if not newest:
        raise StateError(f"the list {context.conversation} did not exist at that time; see its first change: punch log")
    return newest


def stream_events(context: Context, *, after: int | None = None, everywhere: bool = False) -> Iterator[dict[str, Any]]:
    """Yield events as they happen, as wire values; never returns."""
    client = context.client
    while True:
        source = client if everywhere else client.conversation(context.existing_conversation)
        try:
            with source.watch(after=after) as changes:
                for change in changes:
                    yield to_wire_value(change)
            return
        except Gap as gap:
            after = show_gap(gap)


def to_wire_value(change: "Change") -> dict[str, Any]:
    """Return an event, including one of an unknown type, as plain JSON values."""
    import msgspec

    from punchlist_schemas.events import UnknownEvent

    event = change.event
    body: Any = msgspec.json.decode(event.raw) if isinstance(event, UnknownEvent) else msgspec.to_builtins(event)
    head = {name: getattr(change, name) for name in ("seq", "conversation", "version", "at", "actor")}
    return {**head, "event": body}
