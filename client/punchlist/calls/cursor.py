"""The position of a subscription and the items it delivers. No I/O.

A cursor survives reconnects: it requests the items after the last one it delivered, drops duplicates, and rejects
positions in another log.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

import msgspec

from punchlist.calls.rows import Rows
from punchlist.connection.core import decode
from punchlist.errors import RequestRefused, build_error
from punchlist_schemas.errors import ERRORS, ErrorObject
from punchlist_schemas.events import About, AnyEvent, Recorded, decode_event
from punchlist_schemas.jsonrpc import Notice
from punchlist_schemas.params import EventSubscribe
from punchlist_schemas.results import (
    BoardPush,
    EndPush,
    EventsPush,
    ListPush,
    PresencePush,
    Present,
    RowsPush,
    SubscribeResult,
    TaskListResult,
)
from punchlist_schemas.things import Counts, Damage, Shared, Task

T = TypeVar("T")


class Change(msgspec.Struct, frozen=True, gc=False):
    """An event of a conversation.

    Attributes:
        seq: Position in the whole log. Pass it as `after` to continue from here.
        version: Position in the conversation.
        at: Time in milliseconds since 1970 UTC.
        event: A struct of `punchlist_schemas.events`.
        about: The titles of its task and list, if they were requested.
    """

    seq: int
    conversation: str
    version: int
    at: int
    actor: str
    event: AnyEvent
    about: About | None = None

    @classmethod
    def of(cls, recorded: Recorded) -> "Change":
        event, about = decode_event(recorded.event), recorded.about
        return cls(recorded.seq, recorded.conversation, recorded.version, recorded.at, recorded.actor, event, about)


class TaskList(list[Task]):
    """Tasks in list order, with attributes for the whole list.

    Attributes:
        counts: Number of tasks in each state, in the whole list.
        version: Version of the conversation that these tasks show.
        seq: Position in the log. Watch with `after=tasks.seq` to get every later change.
        total: Number of matching tasks before `offset` and `limit` were applied.
        damaged: Damage to the log, at which the list ends; None if the list is complete.
        shared: Why a shared list may lack its latest changes on this machine; None if it is up to date.
    """

    def __init__(  # noqa: PLR0913 - the tasks and the attributes of their list
        self,
        tasks: Iterable[Task],
        counts: Counts,
        *,
        version: int,
        seq: int,
        total: int,
        damaged: Damage | None = None,
        shared: Shared | None = None,
    ) -> None:
        super().__init__(tasks)
        self.counts = counts
        self.version = version
        self.seq = seq
        self.total = total
        self.damaged = damaged
        self.shared = shared

    @classmethod
    def of(cls, source: TaskListResult | ListPush | SubscribeResult | Rows) -> "TaskList":
        """Return the list contained in a result, a push or rows."""
        tasks = (source.order if isinstance(source, Rows) else source.tasks) or ()
        return cls(
            tasks,
            source.counts or Counts(),
            version=source.version or 0,
            seq=source.seq,
            total=source.total if isinstance(source, TaskListResult) else len(tasks),
            damaged=source.damaged,
            shared=source.shared,
        )

    @property
    def remaining(self) -> int:
        """Number of unfinished tasks in the whole list."""
        return self.counts.pending + self.counts.in_progress + self.counts.paused


Until = Literal["done", "idle", "change"] | Callable[[TaskList], bool]
"""Condition to wait for: `done` (no unfinished task), `idle` (none in progress or ready), `change`, or a predicate."""


def to_predicate(until: Until) -> Callable[[TaskList], bool]:
    """Return a predicate for the condition. Call it with each state of the list, starting with the current one."""
    if not isinstance(until, str):
        return until
    if until == "done":
        return lambda tasks: tasks.remaining == 0
    if until == "idle":
        return lambda tasks: tasks.counts.in_progress == 0 and tasks.counts.ready == 0
    versions: set[int] = set()
    return lambda tasks: versions.add(tasks.version) is None and len(versions) > 1


class View(ABC, Generic[T]):
    """The kind of items that a subscription delivers, and how to decode them."""

    name: Literal["events", "list", "rows", "board", "presence"]
    resumes = True
    """Whether the subscription continues from a position after a reconnect."""
    shows_lists = False
    """Whether items are current states, not events. If the daemon's log was replaced by another one, a subscription to
    states starts over, and one to events raises `WrongEpoch`.
    """
    repeats = False
    """Whether several items may have the same position."""
    about = False
    """Whether events have the titles of their tasks and lists."""

    def first(self, result: SubscribeResult) -> list[T]:  # noqa: ARG002 - most views start with a notification
        """Return the items in the response to the subscription."""
        return []

    @abstractmethod
    def items(self, params: msgspec.Raw) -> list[T]:
        """Return the items in a notification."""
        ...

    @abstractmethod
    def position(self, item: T) -> int:
        """Return the item's position in the log."""
        ...

    def unversioned_state(self, item: T) -> str:  # noqa: ARG002 - most items have none
        """Return state that changes without an event, and so without a new position: sharing, and departed owners."""
        return ""


class EventsView(View[Change]):
    """Every event, once and in order, as a `Change`.

    Args:
        about: Add the titles of the events' tasks and lists.
    """

    name = "events"

    def __init__(self, *, about: bool = False) -> None:
        self.about = about

    def items(self, params: msgspec.Raw) -> list[Change]:
        return [Change.of(recorded) for recorded in decode(params, EventsPush).events]

    def position(self, item: Change) -> int:
        return item.seq


class ListView(View[TaskList]):
    """The current list after each change. Intermediate states may be skipped."""

    name = "list"
    shows_lists = True
    resumes = False

    def first(self, result: SubscribeResult) -> list[TaskList]:
        return [TaskList.of(result)]

    def items(self, params: msgspec.Raw) -> list[TaskList]:
        return [TaskList.of(decode(params, ListPush))]

    def position(self, item: TaskList) -> int:
        # Don't use `seq`, which also grows with changes to other conversations.
        return item.version

    def unversioned_state(self, item: TaskList) -> str:
        return _state(item.shared) + " ".join(task.id for task in item if task.left_at is not None)


class FoldView(View[Rows]):
    """The rows of the current list after each change: always the same `Rows` object, which records the changes."""

    name = "rows"
    shows_lists = True

    def __init__(self) -> None:
        self.rows = Rows()

    def first(self, result: SubscribeResult) -> list[Rows]:
        self.rows.begin()
        return []

    def items(self, params: msgspec.Raw) -> list[Rows]:
        return [self.rows] if self.rows.fold(decode(params, RowsPush)) else []

    def position(self, item: Rows) -> int:
        return item.seq

    def unversioned_state(self, item: Rows) -> str:
        return f"{_state(item.shared)}{item.departures or ''}"


class RowsView(View[TaskList]):
    """The current list after each change, built from the changed rows only. Use it for long lists."""

    name = "rows"
    shows_lists = True

    def __init__(self) -> None:
        self._fold = FoldView()

    def first(self, result: SubscribeResult) -> list[TaskList]:
        self._fold.first(result)
        return []

    def items(self, params: msgspec.Raw) -> list[TaskList]:
        return [TaskList.of(rows) for rows in self._fold.items(params)]

    def position(self, item: TaskList) -> int:
        return item.seq

    def unversioned_state(self, item: TaskList) -> str:  # noqa: ARG002 - the rows also count departures
        return self._fold.unversioned_state(self._fold.rows)


def _state(shared: Shared | None) -> str:
    return "" if shared is None else shared.state


class BoardStart(msgspec.Struct, frozen=True, gc=False):
    """The first item of a board: the cards that follow show changes after position `seq`.

    Get the lists that already exist from `conversation.list`.
    """

    seq: int


class BoardView(View[BoardPush | BoardStart]):
    """A card for each list that changes. `BoardStart` comes first, and again if the daemon's log is replaced by another
    one."""

    name = "board"
    shows_lists = True
    repeats = True

    def __init__(self) -> None:
        self._epoch = ""

    def first(self, result: SubscribeResult) -> list[BoardPush | BoardStart]:
        if result.epoch == self._epoch:
            return []
        self._epoch = result.epoch
        return [BoardStart(result.seq)]

    def items(self, params: msgspec.Raw) -> list[BoardPush | BoardStart]:
        return [decode(params, BoardPush)]

    def position(self, item: BoardPush | BoardStart) -> int:
        # Cards delivered together have the same position, up to which the board is complete.
        return item.seq


class PresenceView(View[tuple[Present, ...]]):
    """The subscribers of a list: at the start, after each change, and after each reconnect."""

    name = "presence"
    shows_lists = True
    resumes = False
    repeats = True

    def items(self, params: msgspec.Raw) -> list[tuple[Present, ...]]:
        return [decode(params, PresencePush).present]

    def position(self, item: tuple[Present, ...]) -> int:
        return 0


class Cursor(Generic[T]):
    """The position of one subscription, across reconnects.

    Args:
        conversation: Its conversation; None for all conversations.
        view: The kind of items to deliver.
        after: Position to start after; None to start now.
        epoch: Epoch of the log that `after` belongs to.
    """

    def __init__(
        self, conversation: str | None, view: View[T], after: int | None = None, epoch: str | None = None
    ) -> None:
        self._conversation = conversation
        self._view = view
        self._after = after
        self._epoch = epoch
        self._unversioned_state = ""

    def subscribe(self, epoch: str | None = None) -> EventSubscribe:
        """Return the parameters that start or resume this subscription.

        Args:
            epoch: Epoch of the connected daemon's log, if known.
        """
        # Positions in another log are meaningless, so views of lists start from the beginning.
        if self._view.shows_lists and epoch is not None and self._epoch not in (None, epoch):
            self._after = None
        after = self._after if self._view.resumes else None
        epoch = self._epoch if after is not None else None
        return EventSubscribe(
            conversation=self._conversation,
            after=after,
            view=self._view.name,
            epoch=epoch,
            about=self._view.about,
        )

    def begin(self, result: SubscribeResult) -> list[T]:
        """Process the response to `subscribe`, and return the items to deliver.

        Raises:
            WrongEpoch: This event subscription started with another log.
        """
        is_another = self._epoch not in (None, result.epoch)
        if is_another and not self._view.shows_lists:
            row = ERRORS["wrong_epoch"]
            facts = {"epoch": self._epoch, "expected": result.epoch}
            raise RequestRefused.kinds[row.kind](row.kind, row.code, row.meaning, facts)
        self._epoch = result.epoch
        items = self._view.first(result)
        # If the list's log was found to be damaged, the list ends at an earlier version.
        went_back = any(self._view.position(item) < (self._after or 0) for item in items)
        if is_another or went_back:
            self._after = None
        items = self._drop_known(items)
        if self._after is None and self._view.name == "events":
            self._after = result.seq
        return items

    def take(self, push: Notice) -> list[T]:
        """Process a notification, and return the items that were not delivered before.

        Raises:
            RequestRefused: The daemon ended the subscription; this is its error.
        """
        if push.method == "end":
            error = msgspec.convert(decode(push.params, EndPush).error, ErrorObject)
            raise build_error(error.code, error.message, error.data)
        if push.method != self._view.name:
            return []
        return self._drop_known(self._view.items(push.params))

    def _drop_known(self, items: list[T]) -> list[T]:
        fresh: list[T] = []
        for item in items:
            position, state = self._view.position(item), self._view.unversioned_state(item)
            may_repeat = self._view.repeats or state != self._unversioned_state
            if self._after is None or position > self._after or (may_repeat and position == self._after):
                self._after, self._unversioned_state = position, state
                fresh.append(item)
        return fresh
