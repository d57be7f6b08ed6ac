"""Events of running turns, published to subscribers in this process.

The same information is stored in the messages of the thread afterwards.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio

Publish = Callable[[str, dict[str, Any]], None]
"""Publishes an event with this name and these members."""

_MAX_TURNS = 64
"""Maximum number of ended turns to keep for subscribers that reconnect, such as a reloaded page."""


class Live:
    """The events of the latest turns run by this process, keyed by `Thread.turn_path`.

    Event names and members: `turn.started`, `delta` (`text`), `tool.started` (`id`, `tool`, `arguments`),
    `tool.completed` (the same with `chips`, and with `result` unless the call needs confirmation), `notice`, `message`
    (the answer), `failed` (`text`: why there is no answer yet), `end`.
    """

    def __init__(self) -> None:
        self._events: OrderedDict[str, list[tuple[str, dict[str, Any]]]] = OrderedDict()
        self._news = anyio.Event()

    def start(self, turn: str) -> Publish:
        """Return the function that publishes a turn's events. A turn that ended without an answer is restarted."""
        self.discard_unanswered(turn)
        events = self._events.setdefault(turn, [])
        ended = [turn for turn in self._events if self._has_ended(turn)]
        for oldest in ended[: max(0, len(self._events) - _MAX_TURNS)]:
            del self._events[oldest]

        def publish(name: str, data: dict[str, Any]) -> None:
            events.append((name, data))
            news, self._news = self._news, anyio.Event()
            news.set()

        return publish

    def finish(self, turn: str, name: str, data: dict[str, Any]) -> None:
        """End a turn with this last event, unless it has already ended. Another process may have run the turn."""
        if not self._has_ended(turn):
            publish = self.start(turn)
            publish(name, data)
            publish("end", {})

    def discard_unanswered(self, turn: str) -> None:
        """Discard the events of a turn that ended without an answer, before it is run again."""
        if self._has_ended(turn) and all(name != "message" for name, _ in self._events[turn]):
            del self._events[turn]

    def _has_ended(self, turn: str) -> bool:
        events = self._events.get(turn)
        return bool(events) and events[-1][0] == "end"

    def has(self, turn: str) -> bool:
        return turn in self._events

    async def follow(self, turn: str, after: int = 0) -> AsyncGenerator[tuple[int, str, dict[str, Any]]]:
        """Yield the events of a turn after number `after`, until its end. A client that has already received the last
        event receives it again."""
        while True:
            events = self._events.get(turn, [])
            news = self._news
            # The number belongs to an earlier run of this turn, such as one before a server restart.
            if after > len(events):
                after = 0
            elif after and events[after - 1][0] == "end":
                after -= 1
            for number, (name, data) in enumerate(events[after:], start=after + 1):
                yield number, name, data
                after = number
                if name == "end":
                    return
            if len(self._events.get(turn, [])) <= after:
                await news.wait()
