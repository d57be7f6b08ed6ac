"""The position of a subscription and the items that it delivers, without any input or output.

One cursor outlives many connections: it asks for what follows the last delivered item, drops what it has seen before,
and refuses positions of another log.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

import msgspec

from punchlist.calls.rows import Rows
from punchlist.connection.core import decode
from punchlist.errors import RequestRefused, build_error
from punchlist_schemas.errors import ERRORS, ErrorObject
from punchlist_schemas.events import AnyEvent, Recorded, decode_event
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
    """One thing that happened.

    `seq` is its position in the whole log (pass it as `after` to continue from here), `version` its position in the
    conversation, and `at` its time in milliseconds since 1970 UTC. `event` is a struct of `punchlist_schemas.events`.
    """

    seq: int
    conversation: str
    version: int
    at: int
    actor: str
    event: AnyEvent

    @classmethod
    def of(cls, recorded: Recorded) -> "Change":
        event = decode_event(recorded.event)
        return cls(recorded.seq, recorded.conversation, recorded.version, recorded.at, recorded.actor, event)


class TaskList(list[Task]):
    """Tasks in the order of their list, with facts about the whole list.

    Attributes:
        counts: How many tasks of the whole list are in each state.
        version: The version of the conversation that these tasks show.
        seq: The position in the log: watch with `after=tasks.seq` to miss nothing.
        total: How many tasks matched before `offset` and `limit` cut them.
        damaged: Where the list ends because its log is damaged; None if the list is whole.
        shared: Why the newest changes of a list of a space may be missing here; None if they are not.
    """

    def __init__(  # noqa: PLR0913 - tasks, and what is said of their list
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
    def of(cls, shown: TaskListResult | ListPush | SubscribeResult | Rows) -> "TaskList":
        """The list in an answer or a push, or made of rows."""
        tasks = (shown.order if isinstance(shown, Rows) else shown.tasks) or ()
        return cls(
            tasks,
            shown.counts or Counts(),
            version=shown.version or 0,
            seq=shown.seq,
            total=shown.total if isinstance(shown, TaskListResult) else len(tasks),
            damaged=shown.damaged,
            shared=shown.shared,
        )

    @property
    def remaining(self) -> int:
        """How many tasks of the whole list are unfinished."""
        return self.counts.pending + self.counts.in_progress + self.counts.paused


Until = Literal["done", "idle", "change"] | Callable[[TaskList], bool]
"""What to wait for: `done` (no unfinished task), `idle` (none in progress and none ready), `change`, or a predicate."""


def to_predicate(until: Until) -> Callable[[TaskList], bool]:
    """A predicate to call for each list in turn, beginning with the current one."""
    if not isinstance(until, str):
        return until
    if until == "done":
        return lambda tasks: tasks.remaining == 0
    if until == "idle":
        return lambda tasks: tasks.counts.in_progress == 0 and tasks.counts.ready == 0
    versions: set[int] = set()
    return lambda tasks: versions.add(tasks.version) is None and len(versions) > 1


class View(ABC, Generic[T]):
    """What a subscription delivers: events one by one, or (`shows_lists`) the newest state.

    With `resumes` it continues from a position.
    """

    name: Literal["events", "list", "rows", "board", "presence"]
    resumes = True
    shows_lists = False
    repeats = False
    """Whether several items may stand at one position."""

    def first(self, result: SubscribeResult) -> list[T]:  # noqa: ARG002 - most views begin with a notification
        """What the answer to the subscription holds already."""
        return []

    @abstractmethod
    def items(self, params: msgspec.Raw) -> list[T]:
        """What a notification holds."""
        ...

    @abstractmethod
    def position(self, item: T) -> int:
        """Where the item stands in the log."""
        ...

    def unversioned_state(self, item: T) -> str:  # noqa: ARG002 - most items have none
        """Return the parts of a list that change without an event: how it is shared, and departures; empty for most."""
        return ""


class EventsView(View[Change]):
    """Every event, once and in order."""

    name = "events"

    def items(self, params: msgspec.Raw) -> list[Change]:
        return [Change.of(recorded) for recorded in decode(params, EventsPush).events]

    def position(self, item: Change) -> int:
        return item.seq


class ListView(View[TaskList]):
    """The newest list after each change; intermediate ones may be skipped."""

    name = "list"
    shows_lists = True
    resumes = False

    def first(self, result: SubscribeResult) -> list[TaskList]:
        return [TaskList.of(result)]

    def items(self, params: msgspec.Raw) -> list[TaskList]:
        return [TaskList.of(decode(params, ListPush))]

    def position(self, item: TaskList) -> int:
        """The version that it is the list of: the log goes on without this conversation."""
        return item.version

    def unversioned_state(self, item: TaskList) -> str:
        return _state(item.shared) + " ".join(task.id for task in item if task.left_at is not None)


class FoldView(View[Rows]):
    """The rows of the newest list after each change: always the same object, which tells what changed."""

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
    """The newest list after each change, folded from the rows that changed: for long lists."""

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

    def unversioned_state(self, item: TaskList) -> str:  # noqa: ARG002 - the rows know more
        return self._fold.unversioned_state(self._fold.rows)


def _state(shared: Shared | None) -> str:
    return "" if shared is None else shared.state


class BoardStart(msgspec.Struct, frozen=True, gc=False):
    """A board begins behind `seq`: `conversation.list` tells the lists that there are by now."""

    seq: int


class BoardView(View[BoardPush | BoardStart]):
    """Every list that changes, as a card. `BoardStart` comes first, and again if another log answers."""

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
        """The position up to which every card was told: several that come together share it."""
        return item.seq


class PresenceView(View[tuple[Present, ...]]):
    """Who follows a list, at first and each time that this changes; after a reconnect it is told again."""

    name = "presence"
    shows_lists = True
    resumes = False
    repeats = True

    def items(self, params: msgspec.Raw) -> list[tuple[Present, ...]]:
        return [decode(params, PresencePush).present]

    def position(self, item: tuple[Present, ...]) -> int:
        return 0


class Cursor(Generic[T]):
    """Where a subscription stands. One cursor outlives many connections."""

    def __init__(
        self, conversation: str | None, view: View[T], after: int | None = None, epoch: str | None = None
    ) -> None:
        self._conversation = conversation
        self._view = view
        self._after = after
        self._epoch = epoch
        self._unversioned_state = ""

    def subscribe(self, epoch: str | None = None) -> EventSubscribe:
        """The parameters that begin, or go on with, this subscription.

        Args:
            epoch: That of the log which answers, if known. Of another log lists are shown from their beginning.
        """
        if self._view.shows_lists and epoch is not None and self._epoch not in (None, epoch):
            self._after = None
        after = self._after if self._view.resumes else None
        epoch = self._epoch if after is not None else None
        return EventSubscribe(conversation=self._conversation, after=after, view=self._view.name, epoch=epoch)

    def begin(self, result: SubscribeResult) -> list[T]:
        """Take the answer to `subscribe`; returns what there is to hand out at once.

        Raises:
            WrongEpoch: The log is not the one that this subscription to events began with.
        """
        is_another = self._epoch not in (None, result.epoch)
        if is_another and not self._view.shows_lists:
            row = ERRORS["wrong_epoch"]
            facts = {"epoch": self._epoch, "expected": result.epoch}
            raise RequestRefused.kinds[row.kind](row.kind, row.code, row.meaning, facts)
        self._epoch = result.epoch
        items = self._view.first(result)
        went_back = any(self._view.position(item) < (self._after or 0) for item in items)  # to where its log is damaged
        if is_another or went_back:
            self._after = None
        items = self._drop_known(items)
        if self._after is None and self._view.name == "events":
            self._after = result.seq
        return items

    def take(self, push: Notice) -> list[T]:
        """What a notification adds, without what is known already.

        Raises:
            RequestRefused: The subscription is over, and why.
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
            position, standing = self._view.position(item), self._view.unversioned_state(item)
            again = self._view.repeats or standing != self._unversioned_state
            if self._after is None or position > self._after or (again and position == self._after):
                self._after, self._unversioned_state = position, standing
                fresh.append(item)
        return fresh
