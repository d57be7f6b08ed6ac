"""What happens in all lists, as sentences, and the last results of each agent."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from punchlist.calls.cursor import Change
from punchlist_apps.ui.parts import Part, sanitize
from punchlist_schemas import events

_MAX_LINES = 150
_MAX_RESULTS = 3
_MAX_AGENTS = 30
"""Maximum number of agents whose results are kept: those with the newest results."""


class Happening(NamedTuple):
    """A change, as a line. `parts` is its sentence without time and actor."""

    seq: int
    conversation: str
    task: str
    actor: str
    clock: str
    parts: tuple[Part, ...]


class Result(NamedTuple):
    """A task that an agent finished. `style` is its state: `completed`, `asks` or `failed`."""

    conversation: str
    task: str
    title: str
    style: str
    text: str
    at: int


def _describe_status(event: events.StatusChanged) -> Part:
    if event.waits_for == "yes":
        return "asks", "asks for a yes to"
    words = {"completed": "finished", "failed": "failed", "in_progress": "began", "paused": "paused"}
    return event.to, words.get(event.to, "reopened")


_VERBS: dict[type, Callable[[Any], Part]] = {
    events.TaskAdded: lambda event: ("", "added"),
    events.StatusChanged: _describe_status,
    events.Claimed: lambda event: ("in_progress", "took"),
    events.Released: lambda event: ("note", "gave back"),
    events.NoteAdded: lambda event: ("note", "wrote a note on"),
    events.Deleted: lambda event: ("failed", "deleted"),
    events.TaskEdited: lambda event: ("note", "edited"),
    events.TaskMoved: lambda event: ("note", "moved"),
    events.DependencyAdded: lambda event: ("blocked", f"let #{sanitize(event.blocker)} block"),
    events.DependencyRemoved: lambda event: ("note", f"no longer lets #{sanitize(event.blocker)} block"),
    events.ListCleared: lambda event: ("failed", "cleared the list"),
    events.ConversationOpened: lambda event: ("title", "began a list"),
}
"""Event → the style and words of its sentence. Other events aren't shown."""


class Happened:
    """The last changes and results.

    Attributes:
        lines: The last changes, newest first.
        results: The last finished tasks of each agent, newest first.
    """

    def __init__(self) -> None:
        self.lines: deque[Happening] = deque(maxlen=_MAX_LINES)
        self.results: dict[str, list[Result]] = {}
        self._finished: dict[str, deque[tuple[int, bool]]] = {}
        self._grouped: tuple[object, ...] = ()
        self._count = 0

    def clear(self) -> None:
        """Forget everything."""
        self.__init__()

    def take(self, change: Change) -> None:
        """Add a change."""
        title = change.about.title if change.about is not None else ""
        event: Any = change.event
        verb = _VERBS.get(type(change.event))
        if verb is None or _is_activity(event) or getattr(event, "kind", "list") != "list":
            return
        task = event.task.id if isinstance(event, events.TaskAdded) else str(getattr(event, "task", ""))
        style, words = verb(event)
        text = ""
        if isinstance(event, events.StatusChanged):
            reason = event.fail_reason if event.to == "failed" else event.result_summary
            text = sanitize(reason) if isinstance(reason, str) else ""
            self._take_result(change, task, title, event, text)
        group = (change.conversation, change.actor, words, change.at)
        if self._grouped == group:
            self._count += 1
            self.lines.popleft()
            parts: tuple[Part, ...] = ((style, words), ("", f" {self._count} tasks"))
        else:
            self._grouped, self._count = group, 1
            if self.lines and isinstance(event, events.StatusChanged) and event.to == "in_progress":
                newest = self.lines[0]
                # A claim also starts its task.
                if (newest.conversation, newest.task, newest.actor) == (change.conversation, task, change.actor):
                    return
            place = change.about.list if change.about is not None else change.conversation
            name = sanitize(title if task else place)
            parts = ((style, words), ("title", f" {name}"), *([("dim", f": {text}")] if text else []))
        clock = time.strftime("%H:%M", time.localtime(change.at / 1000))
        self.lines.appendleft(Happening(change.seq, change.conversation, task, change.actor, clock, parts))

    def _take_result(self, change: Change, task: str, title: str, event: events.StatusChanged, text: str) -> None:
        style = "asks" if event.waits_for == "yes" else event.to
        if style not in ("asks", "completed", "failed"):
            return
        for agent, results in self.results.items():
            for number, asked in enumerate(results):
                if (asked.conversation, asked.task, asked.style) == (change.conversation, task, "asks"):
                    # The answer to an agent's question isn't work of the person who answers.
                    self.results[agent] = [*results[:number], asked._replace(style=style), *results[number + 1 :]]
                    return
        result = Result(change.conversation, task, sanitize(title), style, text, change.at)
        # The newest agent is the last one, so that the first one is dropped.
        results = [result, *self.results.pop(change.actor, [])]
        self.results[change.actor] = results[:_MAX_RESULTS]
        if len(self.results) > _MAX_AGENTS:
            oldest = next(iter(self.results))
            del self.results[oldest], self._finished[oldest]
        self._finished.setdefault(change.actor, deque(maxlen=999)).append((change.at, style == "failed"))

    def count_today(self, agent: str) -> tuple[int, int]:
        """Return how many tasks an agent finished since midnight, and how many failed."""
        midnight = time.mktime((*time.localtime()[:3], 0, 0, 0, 0, 0, -1)) * 1000
        today = [is_failed for at, is_failed in self._finished.get(agent, ()) if at >= midnight]
        return today.count(False), today.count(True)


def _is_activity(event: object) -> bool:
    """Return whether an event only changes what a task's owner is doing, which is shown with the task."""
    if not isinstance(event, events.TaskEdited):
        return False
    fields = (name for name in event.__struct_fields__ if name != "task")
    return [name for name in fields if getattr(event, name) is not events.UNSET and getattr(event, name)] == [
        "active_form"
    ]
