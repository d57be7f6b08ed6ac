"""Pauses requests to a model that failed, until it is likely to answer again."""

import time
from collections.abc import Callable

from punchlist.base.text import clip, one_line
from punchlist_apps.chat.models.port import Away

FOR_GOOD = frozenset({"401", "403", "404", "configuration"})
"""Faults of the configuration, which a process reads at its start: it makes no further request to the model."""

OF_ONE_MESSAGE = frozenset({"400", "413", "422"})
"""Faults of one message, such as a context that is too long: the next message goes to the model again."""

_OF_ONE_TURN = OF_ONE_MESSAGE | {"steps", "budget", "stopped"}

_MENDED_BY = {
    "401": "the key: key_file, key_command or PUNCHLIST_CHAT_KEY",
    "403": "the key: key_file, key_command or PUNCHLIST_CHAT_KEY",
    "404": "--model and --base-url",
    "configuration": "--base-url",
}
"""Fault → the settings to look at."""


def note_of(away: Away) -> str:
    """What a person is told of a fault: that the model is away, or which settings are wrong."""
    said = f": {clip(one_line(str(away)), _SHOWN)}" if str(away) != away.kind else ""
    if away.kind in FOR_GOOD:
        return f"the settings of the model are wrong ({away.kind}{said}); look at {_MENDED_BY[away.kind]}"
    if away.kind in OF_ONE_MESSAGE:
        return f"the model refused this message ({away.kind}{said}); if it refuses all, look at --model and --api"
    return f"the model was away ({away.kind}{said})"


_SHOWN = 300

FIRST_S, MOST_S = 30.0, 300.0


class Circuit:
    """Whether a model is worth asking."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self._pause_s = FIRST_S
        self.why = ""

    @property
    def is_open(self) -> bool:
        """Whether the model is left alone now; `why` says for what."""
        return self._clock() < self._until

    def failed(self, away: Away) -> None:
        if away.kind in _OF_ONE_TURN:
            return
        self.why = f"wrong settings: {away.kind}" if away.kind in FOR_GOOD else away.kind
        if away.kind in FOR_GOOD:
            self._until = float("inf")
        elif away.retry_after_s is not None:
            self._until = self._clock() + min(max(away.retry_after_s, 1.0), MOST_S)
        else:
            self._until = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, MOST_S)

    def answered(self) -> None:
        self._until, self._pause_s, self.why = 0.0, FIRST_S, ""
