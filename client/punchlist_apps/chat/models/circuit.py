"""Circuit breaker for model calls, which pauses requests to a model that has failed."""

import time
from collections.abc import Callable

from punchlist.base.text import clip, one_line
from punchlist_apps.chat.models.port import ModelError

_PERMANENT = frozenset({"401", "403", "404", "configuration"})
"""Configuration errors. The configuration is read only at startup, so no more requests are sent to the model."""

_MESSAGE_REJECTED = frozenset({"400", "413", "422"})
"""Errors caused by a single message, such as one that makes the context too long. These errors don't pause requests to
the model."""

_ONE_TURN_ONLY = _MESSAGE_REJECTED | {"steps", "budget", "stopped"}

_SETTINGS_TO_CHECK = {
    "401": "the key: key_file, key_command or PUNCHLIST_CHAT_KEY",
    "403": "the key: key_file, key_command or PUNCHLIST_CHAT_KEY",
    "404": "--model and --base-url",
    "configuration": "--base-url",
}

_MAX_CHARS = 300

_FIRST_PAUSE_S, _MAX_PAUSE_S = 30.0, 300.0


def describe_error(error: ModelError) -> str:
    """Return a note that tells the user why the model didn't respond, and which settings to check if they are wrong."""
    detail = f": {clip(one_line(str(error)), _MAX_CHARS)}" if str(error) != error.kind else ""
    if error.kind in _PERMANENT:
        return f"the settings of the model are wrong ({error.kind}{detail}); check {_SETTINGS_TO_CHECK[error.kind]}"
    if error.kind in _MESSAGE_REJECTED:
        return f"the model rejected this message ({error.kind}{detail}); if it rejects all, check --model and --api"
    return f"the model was away ({error.kind}{detail})"


class Circuit:
    """The circuit breaker of one model, which is closed while the model works and open during a pause.

    Attributes:
        reason: Why the breaker is open.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self.reason = ""

    @property
    def is_open(self) -> bool:
        """Whether requests are paused."""
        return self._clock() < self._until

    def record_failure(self, error: ModelError) -> None:
        if error.kind in _ONE_TURN_ONLY:
            return
        self.reason = f"wrong settings: {error.kind}" if error.kind in _PERMANENT else error.kind
        if error.kind in _PERMANENT:
            self._until = float("inf")
        elif error.retry_after_s is not None:
            self._until = self._clock() + min(max(error.retry_after_s, 1.0), _MAX_PAUSE_S)
        else:
            self._until = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _MAX_PAUSE_S)

    def record_success(self) -> None:
        self._until, self._pause_s, self.reason = 0.0, _FIRST_PAUSE_S, ""
