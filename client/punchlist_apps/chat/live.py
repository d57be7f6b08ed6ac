"""What a running turn says at once to whoever looks in this process; afterwards the thread's messages tell the same."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio

Tell = Callable[[str, dict[str, Any]], None]
"""Takes the name of an event and what it says."""

_KEPT = 64
"""So many turns are remembered, for who looks again after a reload."""


class Live:
    """The events of the newest turns of this process, each under its place: thread and turn.

    Their names: `turn.started`, `delta` (`text`), `tool.started` (`id`, `tool`, `arguments`), `tool.completed` (the
    same with `chips`, and with `result` unless the person is asked first), `notice`, `message` (the answer), `failed`
    (`text`: why there is no answer yet), `end`.
    """

    def __init__(self) -> None:
        self._said: OrderedDict[str, list[tuple[str, dict[str, Any]]]] = OrderedDict()
        self._news = anyio.Event()

    def teller(self, turn: str) -> Tell:
        """What a turn says its events to. A turn that has ended without an answer begins again."""
        self.restart(turn)
        said = self._said.setdefault(turn, [])
        ended = [turn for turn in self._said if self._has_ended(turn)]
        for old in ended[: max(0, len(self._said) - _KEPT)]:
            del self._said[old]

        def publish(name: str, data: dict[str, Any]) -> None:
            said.append((name, data))
            news, self._news = self._news, anyio.Event()
            news.set()

        return publish

    def finish(self, turn: str, name: str, data: dict[str, Any]) -> None:
        """End a turn with this last event, unless it has ended: it was not worked on in this process."""
        if not self._has_ended(turn):
            tell = self.teller(turn)
            tell(name, data)
            tell("end", {})

    def restart(self, turn: str) -> None:
        """Forget a turn that has ended without an answer, before it is worked on again."""
        if self._has_ended(turn) and all(name != "message" for name, _ in self._said[turn]):
            del self._said[turn]

    def _has_ended(self, turn: str) -> bool:
        said = self._said.get(turn)
        return bool(said) and said[-1][0] == "end"

    def knows(self, turn: str) -> bool:
        return turn in self._said

    async def follow(self, turn: str, after: int = 0) -> AsyncGenerator[tuple[int, str, dict[str, Any]]]:
        """The events of a turn behind number `after`, until its end, which is repeated to who has seen it."""
        while True:
            said = self._said.get(turn, [])
            news = self._news
            if after > len(said):  # a number of another run of this turn, such as that of a server before
                after = 0
            elif after and said[after - 1][0] == "end":
                after -= 1
            for number, (name, data) in enumerate(said[after:], start=after + 1):
                yield number, name, data
                after = number
                if name == "end":
                    return
            if len(self._said.get(turn, [])) <= after:
                await news.wait()
