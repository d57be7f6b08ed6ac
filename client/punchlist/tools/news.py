"""What others have changed since an agent last looked, from the log.

How far an agent has been told is kept for the life of the process. After a restart its last own event is looked up:
all that was said to it before that is known, and what came later is told again rather than missed.
"""

from collections.abc import Generator
from typing import Any

import msgspec

from punchlist.calls import Call, itself
from punchlist.cursor import TaskList
from punchlist.errors import Gap, WrongEpoch
from punchlist.tools.model import Desk
from punchlist_schemas.events import AnyEvent, Deleted, ListCleared, TaskAdded, decode_event
from punchlist_schemas.params import EventRead, EventWait
from punchlist_schemas.results import EventsResult

_PAGE = 1_000
_FARTHEST = 64_000
"""How many positions of the log are looked at for an agent's last event."""


class News(msgspec.Struct):
    """What happened behind a position: ids of tasks with who changed them last, and whether anything was missed.

    `seq` is the position up to which it tells. With `everything`, the whole list has to be looked at.
    """

    seq: int
    changed: dict[str, str] = {}
    gone: dict[str, str] = {}
    everything: bool = False


def seen(desk: Desk) -> Generator[Call[Any], Any, int | None]:
    """The position up to which the agent has been told, or None if it never looked."""
    key = (desk.conversation, desk.actor)
    if key not in desk.memory.seen:
        tasks: TaskList = yield desk.calls.list(limit=1)
        found = yield from _last_own(desk, tasks.seq)
        if found is None:
            return None
        desk.memory.seen[key] = found
    return desk.memory.seen[key]


def mark(desk: Desk, seq: int) -> None:
    """The agent has been told everything up to this position."""
    desk.memory.seen[(desk.conversation, desk.actor)] = seq


def since(desk: Desk, after: int) -> Generator[Call[Any], Any, News]:
    """What others have changed behind a position."""
    news = News(after)
    try:
        while True:
            page: EventsResult = yield _read(desk, news.seq)
            _take(news, page, desk.actor)
            if len(page.events) < _PAGE:
                return news
            if news.seq - after > _FARTHEST:
                break
    except (Gap, WrongEpoch):
        pass
    tasks: TaskList = yield desk.calls.list(limit=1)
    return News(tasks.seq, everything=True)


def wait(desk: Desk, after: int, timeout_ms: int) -> Call[EventsResult]:
    """Events behind a position, as soon as there are any, or none when the time is up."""
    params = EventWait(after=after, conversation=desk.conversation, timeout_ms=timeout_ms, limit=_PAGE)
    return Call("event.wait", params, itself)


def is_others(desk: Desk, result: EventsResult) -> bool:
    """Whether somebody else than the agent has done any of it."""
    return any(event.actor != desk.actor for event in result.events)


def _take(news: News, page: EventsResult, own: str) -> None:
    for recorded in page.events:
        event = decode_event(recorded.event)
        if isinstance(event, ListCleared) and recorded.actor != own:
            news.everything = True  # and numbers mean other tasks from here on
        task = _task_of(event)
        if task is None:
            continue
        place, other = (news.gone, news.changed) if isinstance(event, Deleted) else (news.changed, news.gone)
        if other.pop(task, None) is not None or task in place or recorded.actor != own:
            place[task] = recorded.actor
    news.seq = max(news.seq, page.next)


def _task_of(event: AnyEvent) -> str | None:
    if isinstance(event, TaskAdded):
        return event.task.id
    return getattr(event, "task", None)


def _read(desk: Desk, after: int) -> Call[EventsResult]:
    return Call("event.read", EventRead(after=after, conversation=desk.conversation, limit=_PAGE), itself)


def _last_own(desk: Desk, head: int) -> Generator[Call[Any], Any, int | None]:
    """The position of the agent's last event: the log is read backwards in windows that double."""
    end, size = head, _PAGE
    while end > 0 and head - end < _FARTHEST:
        start = max(0, end - size)
        found: int | None = None
        after = start
        while after < end:
            page: EventsResult = yield _read(desk, after)
            own = [event.seq for event in page.events if event.actor == desk.actor and event.seq <= end]
            found = own[-1] if own else found
            if not page.events or page.next <= after:
                break
            after = page.next
        if found is not None:
            return found
        end, size = start, size * 2
    return None
