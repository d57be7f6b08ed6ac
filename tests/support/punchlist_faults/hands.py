"""Five clients of five kinds that work one list, each in a thread of its own. For `together`.

Every text that one of them writes is a token that nothing else ever writes: what became of it is read in the log.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from punchlist_faults.options import Violation
from punchlist_faults.process import PATIENCE_S
from punchlist_testing.daemon import Raw

LIST = "plan"
TASKS = 200

SHARED = 20
"""Tasks up to this number have members that everybody edits; of the others each member is one side's alone."""

_TOKEN = re.compile(r"tk-\w+-\d+")

Task = dict[str, Any]
Act = Callable[[], object]


class Deed(NamedTuple):
    """A text that was written, by whom, whether nobody else may have written there meanwhile, and to which task."""

    token: str
    by: str
    is_undisputed: bool = False
    task: str = ""


class Witness:
    """A subscriber that reads everything that happens, and says what became of a text."""

    def __init__(self, socket: str) -> None:
        self.events: list[Task] = []
        self.at: dict[str, float] = {}
        self._link = Raw(socket)
        self._link.sock.settimeout(None)
        self._link.send("event.subscribe", {"conversation": LIST, "after": 0}, id=1)
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (message := self._link.receive()) is not None:
            now = time.monotonic()
            told: Any = message.get("params") or message.get("result") or {}
            found: list[Task] = told.get("events", [])
            with self._news:
                for event in found:
                    self.events.append(event)
                    for word in words(event["event"]):
                        self.at.setdefault(word, now)
                self._news.notify_all()

    def await_token(self, token: str, seconds: float = PATIENCE_S) -> float:
        """When a text was first seen, in an event or in the report of a conflict.

        Raises:
            Violation: it never came.
        """
        with self._news:
            if not self._news.wait_for(lambda: token in self.at, seconds):
                raise Violation(f"{token} has been in no event for {seconds:g} s: it is lost")
            return self.at[token]

    def has_seen(self, value: object) -> bool:
        """Whether a text is in an event by now; anything that is no token of ours is."""
        return value in self.at or not _TOKEN.fullmatch(str(value))

    def close(self) -> None:
        """Hang up."""
        self._link.sock.shutdown(2)
        self._thread.join()
        self._link.close()


def words(value: Any) -> set[str]:
    """The tokens in a JSON value."""
    return set(_TOKEN.findall(msgspec.json.encode(value).decode()))


class Hand:
    """One client. `count` operations, drawn by weight, with pauses drawn by chance between them."""

    name = ""

    def __init__(self, random: Random, count: int, seconds: float) -> None:
        self.deeds: list[Deed] = []
        self.refused = 0
        self.done = 0
        self.failure: BaseException | None = None
        self.random = random
        self._count = count
        self._pause = seconds / max(1, count)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._number = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait for the end; raises what it failed with."""
        self._thread.join(seconds)
        if self.failure:
            raise self.failure
        if self._thread.is_alive():
            raise Violation(f"{self.name} hangs after {self.done} of {self._count} operations")

    def _run(self) -> None:
        try:
            kinds, weights = zip(*self.acts(), strict=True)
            owed = 0.0
            for _ in range(self._count):
                began = time.monotonic()
                self.random.choices(kinds, weights)[0]()
                self.done += 1
                # Half of the operations follow at once on the one before.
                owed += self._pause - (time.monotonic() - began)
                if owed > 0 and self.random.random() < 0.5:  # noqa: PLR2004
                    pause = min(owed, self.random.expovariate(0.5 / self._pause))
                    time.sleep(pause)
                    owed -= pause
        except BaseException as error:
            self.failure = error

    def acts(self) -> Sequence[tuple[Act, float]]:
        """What it may do, and how often."""
        raise NotImplementedError

    def tasks(self) -> list[tuple[Any, ...]]:
        """The list as this client sees it, to be compared with `seen_by`."""
        raise NotImplementedError

    def end(self) -> None:
        """Let go of what is held."""

    def token(self) -> str:
        """A text that nobody has written."""
        self._number += 1
        return f"tk-{self.name}-{self._number}"

    def wrote(self, token: str, is_refused: bool = False, *, undisputed: bool = False, task: str = "") -> None:
        """Remember an acknowledged text."""
        if is_refused:
            self.refused += 1
        else:
            self.deeds.append(Deed(token, self.name, undisputed, task))

    def any_task(self) -> str:
        """A task that is never deleted."""
        return str(self.random.randint(1, TASKS))

    def any_of_ours(self) -> str:
        """A task whose status programs change, not the file: those with odd ids."""
        return str(self.random.randrange(1, TASKS, 2))

    def any_shared(self) -> str:
        """A task that everybody edits."""
        return str(self.random.randint(1, SHARED))


def environment() -> dict[str, str]:
    """For programs of ours: they see the same modules, and cost what they cost without measuring."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "COVERAGE_PROCESS_START": ""}


_BESIDE = Path(sys.executable).with_name("punch")
PUNCH = [str(_BESIDE)] if _BESIDE.exists() else [sys.executable, "-m", "punchlist"]
