"""Finds out when tasks were in progress, by replaying the events of lists."""

from heapq import heappop, heappush

from msgspec.structs import replace

from punchlist_schemas.events import ConversationDeleted, ListCleared
from punchlist_schemas.things import Counts, Span, SpanOutcome, Status, Task, Totals
from punchlistd.domain.commands import Fact
from punchlistd.domain.evolve import evolve
from punchlistd.domain.state import State
from punchlistd.domain.undo.trace import task_id_of

MAX_MOMENTS = 240
"""Maximum number of times at which tasks are counted."""

_OUTCOMES: dict[Status, SpanOutcome] = {"completed": "completed", "failed": "failed"}


class Spans:
    """The spans of all lists in a window of time, and the sums of their tasks.

    Args:
        from_at: Begin of the window, in milliseconds.
        to_at: Its end.
        now: The current time. Tasks are counted only up to then.
        limit: Maximum number of spans. The latest ones are kept.
    """

    def __init__(self, from_at: int, to_at: int, now: int, limit: int) -> None:
        self.from_at = from_at
        self.to_at = to_at
        length = min(to_at, now) - from_at
        parts = min(max(length, 1), MAX_MOMENTS)
        self.moments = [from_at + length * part // parts for part in range(1, parts + 1)] if length >= 0 else []
        self.is_cut = False
        self._limit = limit
        self._added = 0
        self._spans: list[tuple[int, int, Span]] = []
        self._sums = [[0, 0, 0] for _ in self.moments]

    def add(self, span: Span) -> None:
        """Add a span that has ended or whose task is still in progress, unless it lies outside of the window."""
        if span.from_at <= self.to_at and (span.to_at is None or span.to_at >= self.from_at):
            self._added += 1
            heappush(self._spans, (span.from_at, self._added, span))
            if len(self._spans) > self._limit:
                heappop(self._spans)
                self.is_cut = True

    def count(self, moment: int, counts: Counts) -> None:
        """Add a list's tasks at a moment, which is given by its index."""
        sums = self._sums[moment]
        sums[0] += counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
        sums[1] += counts.completed
        sums[2] += counts.failed

    def count_unchanged(self, counts: Counts, first: int = 0) -> None:
        """Add the tasks of a list that doesn't change any more from a moment on."""
        for moment in range(first, len(self.moments)):
            self.count(moment, counts)

    def build(self) -> tuple[tuple[Span, ...], tuple[Totals, ...]]:
        """Return the spans in order of their begin, and the sums at each moment."""
        totals = zip(self.moments, self._sums, strict=True)
        return tuple(span for *_, span in sorted(self._spans)), tuple(
            Totals(at=at, all=all_, done=done, failed=failed) for at, (all_, done, failed) in totals
        )


class ListReader:
    """Replays the events of one list. Its state changes with them.

    Args:
        state: The list at the beginning of the window, or before.
        spans: Receives the list's spans and numbers of tasks.
        last: The version after which no event lies in the window.
    """

    def __init__(self, state: State, spans: Spans, last: int) -> None:
        self._state = state
        self._spans = spans
        self._last = last
        self._counts: list[Counts] = []
        self._open: dict[str, Span] = {}
        for name in state.running:
            task = state.tasks[name]
            self._begin(task, task.status_changed_at, task.version)

    def follow(self, fact: Fact) -> bool:
        """Replay the next event. Return whether later ones are needed."""
        spans, state, event, counts = self._spans, self._state, fact.event, self._counts
        # If the clock was set back, the moments since then come again.
        while counts and spans.moments[len(counts) - 1] >= fact.at:
            counts.pop()
        while len(counts) < len(spans.moments) and spans.moments[len(counts)] < fact.at:
            counts.append(state.counts())
        evolve(state, event, fact.seq, fact.version, fact.at)
        ends_all = type(event) in (ListCleared, ConversationDeleted)
        for name in [*self._open] if ends_all else (task_id_of(event),):
            self._compare(name, fact)
        return fact.version < self._last or any(span.from_at <= spans.to_at for span in self._open.values())

    def finish(self) -> None:
        """Add the tasks that are still in progress, and the remaining numbers of tasks."""
        for span in self._open.values():
            self._spans.add(span)
        for moment, counts in enumerate(self._counts):
            self._spans.count(moment, counts)
        self._spans.count_unchanged(self._state.counts(), len(self._counts))

    def _compare(self, name: str, fact: Fact) -> None:
        """Begin or end the span of a task that an event may have started or stopped."""
        task, span = self._state.tasks.get(name), self._open.get(name)
        is_running = task is not None and task.status == "in_progress"
        # A restart of the daemon takes the owner away for a moment, and a task may be started before it is assigned.
        is_handed_over = task is not None and span is not None and task.owner not in ("", span.owner) and span.owner
        if span is not None and (not is_running or is_handed_over):
            del self._open[name]
            # The clock may have been set back.
            end = max(fact.at, span.from_at)
            self._spans.add(replace(span, to_at=end, outcome=_outcome_of(task), version=fact.version))
            span = None
        if task is not None and is_running:
            if span is None:
                self._begin(task, fact.at, fact.version)
            elif task.owner and not span.owner:
                self._open[name] = replace(span, owner=task.owner)

    def _begin(self, task: Task, at: int, version: int) -> None:
        self._open[task.id] = Span(
            conversation=self._state.conversation,
            task=task.id,
            title=task.title,
            owner=task.owner,
            from_at=at,
            outcome="running",
            estimate_ms=task.estimate_ms,
            version=version,
        )


def _outcome_of(task: Task | None) -> SpanOutcome:
    if task is None:
        return "released"
    return "waits" if task.waits_for is not None else _OUTCOMES.get(task.status, "released")
