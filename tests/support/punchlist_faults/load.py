"""Clients that write, record every response in a journal, and retry calls without a response with the same key."""

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from punchlist_faults.background import PATIENCE_S, Background
from punchlist_faults.options import Violation

AGAIN = frozenset({"outcome_unknown", "shutting_down", "storage_full"})
"""Kinds of errors after which a call is retried with the same key."""

CALLS_IN_ONE = 400
"""Number of calls after which a worker switches to a new conversation, to keep lists at a realistic size."""


class Ack(NamedTuple):
    """A response: its time (monotonic), position and version."""

    at: float
    seq: int
    version: int


class Entry:
    """A call in a journal, with all its responses. `titles` are the texts that its events must contain."""

    __slots__ = ("acks", "attempts", "key", "method", "params", "refused", "titles")

    def __init__(self, method: str, params: dict[str, Any], titles: Sequence[str]) -> None:
        self.method = method
        self.params = params
        self.key: str = params["key"]
        self.titles = list(titles)
        self.acks: list[Ack] = []
        self.attempts = 0
        self.refused: str | None = None

    def take(self, answer: dict[str, Any]) -> str:
        """Record a successful response and return "", or return the kind of an error."""
        if "error" in answer:
            return answer["error"]["data"]["kind"]
        self.acks.append(Ack(time.monotonic(), answer["result"]["seq"], answer["result"]["version"]))
        return ""


def add_many(params: dict[str, Any], titles: Sequence[str]) -> Entry:
    return Entry("task.add_many", {**params, "tasks": [{"title": title} for title in titles]}, titles)


class Worker(Background):
    """A client that writes. Its journal is complete after it has ended.

    Attributes:
        errors: Time and kind of each error whose kind is in `again`.
        asked_at: Time of the last request.
        given_up: Set to leave calls without a response, instead of retrying them.
    """

    def __init__(self, path: str, number: int, random: Random, pace_s: float = 0.0, user: str | None = None) -> None:
        super().__init__(f"client {number}", path, user)
        self.journal: list[Entry] = []
        self.again = AGAIN
        self.errors: list[tuple[float, str]] = []
        self.asked_at = 0.0
        self.given_up = threading.Event()
        self._number = number
        self._random = random
        self._pace_s = pace_s
        self._known: list[tuple[str, str]] = []
        self.start()

    def work(self) -> None:
        while not self.ending.is_set():
            self._complete(self._old() or self._new())
            time.sleep(self._pace_s)

    def _old(self) -> Entry | None:
        entry = self._random.choice(self.journal) if self.journal and self._random.random() < 0.1 else None
        return entry if entry is not None and entry.acks else None

    def _new(self) -> Entry:
        number = len(self.journal)
        room = number // CALLS_IN_ONE
        own = f"own{self._number}.{room}"
        name = own if self.user else self._random.choice((own, f"shared.{room}"))
        key = f"{self._number}-{number}"
        params: dict[str, Any] = {"conversation": name, "key": key}
        choice = self._random.random()
        if choice < 0.2:
            entry = add_many(params, [f"{key}/{part}" for part in range(self._random.randint(2, 6))])
        elif choice < 0.35:
            entry = Entry("message.append", {**params, "role": "user", "content": key}, [key])
        elif choice < 0.6 and self._known:
            home, task = self._random.choice(self._known)
            params["conversation"] = home
            entry = Entry("task.edit", {**params, "task": task, "description": key}, [key])
        else:
            entry = Entry("task.add", {**params, "title": key}, [key])
        self.journal.append(entry)
        return entry

    def _complete(self, entry: Entry) -> None:
        """Repeat a call until it gets a response. Sometimes give up after a lost connection."""
        while not self.given_up.is_set():
            try:
                entry.attempts += 1
                link = self.connect()
                self.asked_at = time.monotonic()
                answer = link.call(entry.method, **entry.params)
            except (OSError, EOFError):
                self.hang_up()
                if self._random.random() < 0.02:
                    return
            else:
                if self._take(entry, answer):
                    return
            time.sleep(0.005)

    def _take(self, entry: Entry, answer: dict[str, Any]) -> bool:
        kind = entry.take(answer)
        if kind in self.again:
            self.errors.append((time.monotonic(), kind))
            return False
        if kind in ("internal_error", "parse_error", "key_conflict", "damaged"):
            raise Violation(f"{entry.method} {entry.params} was answered {answer['error']}")
        if kind:
            entry.refused = kind
        elif entry.method == "task.add":
            self._known.append((entry.params["conversation"], answer["result"]["task"]["id"]))
            del self._known[:-20]
        return True


class Crowd(list[Worker]):
    """Workers that run at the same time."""

    @property
    def journal(self) -> list[Entry]:
        return [entry for worker in self for entry in worker.journal]

    def finish(self) -> None:
        for worker in self:
            worker.ending.set()
        self._join()

    def give_up(self, doubtful_after: float = float("inf")) -> None:
        """Make the workers abandon calls without a response, and wait for the workers to end; see `Worker.join`."""
        for worker in self:
            worker.ending.set()
            worker.given_up.set()
        self._join(doubtful_after)

    def _join(self, doubtful_after: float = float("inf")) -> None:
        for worker in self:
            worker.join(PATIENCE_S)
            worker.check(doubtful_after)


@contextmanager
def workers(
    socket: str, number: int, random: Random, *, first: int = 0, pace_s: float = 0.0, user: str | None = None
) -> Generator[Crowd]:
    """Start clients, numbered from `first`; those that are still working at the end of the block give up."""
    crowd = Crowd(Worker(socket, first + index, Random(random.random()), pace_s, user) for index in range(number))
    try:
        yield crowd
    finally:
        for worker in crowd:
            worker.ending.set()
            worker.given_up.set()
