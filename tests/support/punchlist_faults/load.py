"""Clients that write, keep a journal of every answer, and after a lost connection ask again with the same key."""

import contextlib
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple

from punchlist_faults.options import Violation
from punchlist_testing.daemon import Raw

AGAIN = frozenset({"outcome_unknown", "shutting_down", "storage_full"})
"""Refusals after which the same call is made again with the same key."""

CALLS_IN_ONE = 400
"""A worker moves to a new conversation after so many calls, so that lists stay of a natural size."""


class Ack(NamedTuple):
    """An answer: when it was there (monotonic), and the position and version that it told."""

    at: float
    seq: int
    version: int


class Entry:
    """One call in a journal, with every answer it ever got. `titles` are the texts that its events must carry."""

    __slots__ = ("acks", "attempts", "key", "method", "params", "refused", "titles")

    def __init__(self, method: str, params: dict[str, Any], titles: Sequence[str]) -> None:
        self.method = method
        self.params = params
        self.key: str = params["key"]
        self.titles = list(titles)
        self.acks: list[Ack] = []
        self.attempts = 0
        self.refused: str | None = None


class Worker:
    """One client in a thread of its own, bound to a user if there is one. Its journal is complete after `join`."""

    def __init__(self, socket: str, number: int, random: Random, pace_s: float = 0.0, user: str | None = None) -> None:
        self.number = number
        self._user = user
        self.journal: list[Entry] = []
        self.failure: BaseException | None = None
        self.again = AGAIN
        self.told: list[tuple[float, str]] = []
        """Refusals of the kinds in `AGAIN`, and when they came."""
        self.asked_at = 0.0
        """When the last call was sent."""
        self._socket = socket
        self._random = random
        self._pace_s = pace_s
        self._link: Raw | None = None
        self._ending = threading.Event()
        self._given_up = threading.Event()
        self._failed_at = 0.0
        self._known: list[tuple[str, str]] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Begin nothing new."""
        self._ending.set()

    def give_up(self) -> None:
        """Begin nothing new and leave unanswered what is unanswered."""
        self._ending.set()
        self._given_up.set()

    def join(self, doubtful_after: float = float("inf")) -> None:
        """Wait for the end.

        Raises:
            Violation: it got an answer that may not be (before the moment after which any may), or none at all.
        """
        self._thread.join(60)
        if self._thread.is_alive():
            raise Violation(f"client {self.number} still waits: {self.journal[-1].params}")
        if self.failure is not None and self._failed_at < doubtful_after:
            raise Violation(f"client {self.number}: {self.failure!r}") from self.failure

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._complete(self._old() or self._new())
                if self._pace_s:
                    time.sleep(self._pace_s)
        except BaseException as error:
            self._failed_at = time.monotonic()
            self.failure = error
        finally:
            self._hang_up()

    def _old(self) -> Entry | None:
        """Now and then a call is repeated that was answered long ago."""
        entry = self._random.choice(self.journal) if self.journal and self._random.random() < 0.1 else None
        return entry if entry is not None and entry.acks else None

    def _new(self) -> Entry:
        number = len(self.journal)
        room = number // CALLS_IN_ONE
        own = f"own{self.number}.{room}"
        name = own if self._user else self._random.choice((own, f"shared.{room}"))
        key = f"{self.number}-{number}"
        params: dict[str, Any] = {"conversation": name, "key": key}
        choice = self._random.random()
        if choice < 0.2:
            titles = [f"{key}/{part}" for part in range(self._random.randint(2, 6))]
            entry = Entry("task.add_many", {**params, "tasks": [{"title": title} for title in titles]}, titles)
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
        """Ask until there is an answer; after a lost connection now and then never again."""
        while not self._given_up.is_set():
            try:
                entry.attempts += 1
                link = self._connected()
                self.asked_at = time.monotonic()
                answer = link.call(entry.method, **entry.params)
            except (OSError, EOFError):
                self._hang_up()
                if self._random.random() < 0.02:
                    return
                time.sleep(0.005)
                continue
            if self._take(entry, answer):
                return
            time.sleep(0.005)

    def _take(self, entry: Entry, answer: dict[str, Any]) -> bool:
        now = time.monotonic()
        if "result" in answer:
            result = answer["result"]
            entry.acks.append(Ack(now, result["seq"], result["version"]))
            if entry.method == "task.add":
                self._known.append((entry.params["conversation"], result["task"]["id"]))
                del self._known[:-20]
            return True
        kind = answer["error"]["data"]["kind"]
        if kind in self.again:
            self.told.append((now, kind))
            return False
        if kind in ("internal_error", "parse_error", "key_conflict", "damaged"):
            raise Violation(f"{entry.method} {entry.params} was answered {answer['error']}")
        entry.refused = kind
        return True

    def _connected(self) -> Raw:
        if self._link is None:
            self._link = Raw(self._socket)
            if self._user:
                self._link.result("daemon.hello", user=self._user)
        return self._link

    def _hang_up(self) -> None:
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.close()
            self._link = None


class Follower:
    """A subscriber to everything that resumes behind what it has; `seqs` is what it was told, in that order."""

    def __init__(self, socket: str) -> None:
        self.seqs: list[int] = []
        self.failure: BaseException | None = None
        self._socket = socket
        self._link: Raw | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self._hang_up()
                self._link = Raw(self._socket)
                self._link.result("event.subscribe", after=self.seqs[-1] if self.seqs else 0)
                while not self._ending.is_set() and (message := self._link.receive()) is not None:
                    self.seqs += [event["seq"] for event in message["params"]["events"]]
            except OSError:
                time.sleep(0.005)
            except BaseException as error:
                self.failure = error
                break
        self._hang_up()

    def _hang_up(self) -> None:
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.close()

    def caught_up(self, head: int) -> bool:
        """Whether it has been told of everything up to a position, or failed."""
        return self.failure is not None or (bool(self.seqs) and self.seqs[-1] >= head)

    def close(self) -> None:
        """End it; its daemon must be gone or answering."""
        self._ending.set()
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.sock.shutdown(2)
        self._thread.join(15)


@contextmanager
def workers(
    socket: str, number: int, random: Random, *, first: int = 0, pace_s: float = 0.0, user: str | None = None
) -> Generator[list[Worker]]:
    """Clients that begin at once, numbered from `first`; those still at work at the end of the block give up."""
    crowd = [Worker(socket, first + each, Random(random.random()), pace_s, user) for each in range(number)]
    try:
        yield crowd
    finally:
        for worker in crowd:
            worker.give_up()
