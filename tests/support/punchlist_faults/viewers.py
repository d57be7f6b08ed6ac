"""Subscribers to every view, unbound and of one user, that resume over kills and end with the true list.

A view may leave out what was in between. So a stream of rows or cards over a restart is right if it never goes back and
ends with what a sound daemon shows. Events are compared one by one.
"""

import contextlib
import threading
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from punchlist.calls.cursor import RowsView
from punchlist_faults.options import Violation, need
from punchlist_faults.process import PATIENCE_S, Daemon, eventually
from punchlist_schemas.results import SubscribeResult
from punchlist_testing.daemon import Raw
from punchlistd.store.port import Stored

MINE, SHARED = "own8.0", "shared.0"
"""A list of the user that `USER` is bound to, and one of nobody."""

USER = "ann"

LATE_S = 0.2
"""A subscriber comes back so much later at most: what it missed comes out of the log, or is told anew."""

WATCHED = (
    ("events", None, None),
    ("events", None, USER),
    ("events", MINE, USER),
    ("events", SHARED, None),
    ("list", SHARED, None),
    ("list", MINE, USER),
    ("rows", SHARED, None),
    ("rows", MINE, USER),
    ("board", None, None),
    ("board", None, USER),
)
"""A view, whose list (None: all), and the user that its subscriber is bound to."""


class Viewer:
    """One subscriber in a thread of its own, which comes back late; a Violation in it is raised by `judge`."""

    def __init__(self, socket: str, random: Random, view: str, conversation: str | None, user: str | None) -> None:
        self.name = f"{view} of {conversation or 'all'} for {user or 'anybody'}"
        self.resumed = 0
        self._random = random
        self._socket = socket
        self._view, self._conversation, self.user = view, conversation, user
        self._events: list[int] = []
        self._cards: dict[str, dict[str, Any]] = {}
        self._rows = RowsView()
        self._tasks: list[dict[str, Any]] = []
        self._version = 0
        self._seq: int | None = None if view == "rows" else 0
        self._epoch: str | None = None
        self._failure: BaseException | None = None
        self._ending = threading.Event()
        self._link: Raw | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            self._hang_up()
            self._ending.wait(self._random.uniform(0, LATE_S))  # others change something meanwhile
            try:
                self._link = Raw(self._socket)
                if self.user:
                    self._link.result("daemon.hello", user=self.user)
                asked = {"conversation": self._conversation, "after": self._seq, "epoch": self._epoch}
                asked = {name: value for name, value in asked.items() if value is not None}
                answer = self._link.result("event.subscribe", view=self._view, **asked)
                need(self._seq is None or self._view == "list" or answer["seq"] == self._seq, f"resumed at {answer}")
                self._epoch = answer["epoch"]
                self.resumed += 1
                self._rows.first(msgspec.convert(answer, SubscribeResult))
                if self._view == "list":
                    self._take_list(answer)
                while not self._ending.is_set() and (message := self._link.receive()) is not None:
                    need(message["method"] == self._view, f"unexpected: {message}")
                    getattr(self, f"_take_{self._view}")(message["params"])
            except (OSError, EOFError):
                continue
            except BaseException as error:
                self._failure = error
                break
        self._hang_up()

    def _take_events(self, push: dict[str, Any]) -> None:
        for event in push["events"]:
            need(not self._events or event["seq"] > self._events[-1], f"{event['seq']} came again")
            self._events.append(event["seq"])
        self._seq = self._events[-1]

    def _take_list(self, push: dict[str, Any]) -> None:
        need(push["version"] >= self._version, f"went back from version {self._version} to {push['version']}")
        self._version, self._tasks, self._seq = push["version"], push["tasks"], push["seq"]

    def _take_rows(self, push: dict[str, Any]) -> None:
        for whole in self._rows.items(msgspec.Raw(msgspec.json.encode(push))):
            need(whole.version >= self._version, f"went back from version {self._version} to {whole.version}")
            self._version, self._seq = whole.version, whole.seq
            self._tasks = [msgspec.json.decode(msgspec.json.encode(task)) for task in whole]

    def _take_board(self, push: dict[str, Any]) -> None:
        card: dict[str, Any] = push["card"]
        before: dict[str, Any] = self._cards.get(card["conversation"], card)
        need(card["version"] >= before["version"], f"went back to version {card['version']} from {before}")
        self._seq = push["seq"]
        self._cards[card["conversation"]] = card

    def _hang_up(self) -> None:
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.close()

    def close(self) -> None:
        self._ending.set()
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.sock.shutdown(2)
        self._thread.join(PATIENCE_S)

    def judge(self, link: Raw, events: Sequence[Stored]) -> None:
        """Wait until it has been shown the whole log, then compare it with what the daemon shows.

        Args:
            link: A connection that is bound as this subscriber's is.
            events: The whole log, to which nothing is added.

        Raises:
            Violation: it was shown something else, something twice or too little.
        """
        eventually(lambda: self._failure or self._shows(link, events), PATIENCE_S, f"{self.name} is up to date")
        if self._failure is not None:
            raise Violation(f"{self.name}: {self._failure}") from self._failure

    def _shows(self, link: Raw, events: Sequence[Stored]) -> bool:
        if self._view == "events":
            names = {self._conversation} if self._conversation else {one["conversation"] for one in _all_lists(link)}
            its = [event.seq for event in events if event.conversation in names]
            need(self._events == its[: len(self._events)], f"missed an event or got one twice: {self._events[-5:]}")
            return self._events == its
        if self._view == "board":
            return self._cards == {each["conversation"]: each for each in _all_lists(link)}
        wanted = link.result("task.list", conversation=self._conversation)
        return self._version == wanted["version"] and _plain(self._tasks) == _plain(wanted["tasks"])


def _plain(tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in task.items() if name != "rank"} for task in tasks]


def _all_lists(link: Raw) -> list[dict[str, Any]]:
    page = link.result("conversation.list", limit=100)
    found: list[dict[str, Any]] = page["conversations"]
    while page.get("next_cursor"):
        page = link.result("conversation.list", limit=100, cursor=page["next_cursor"])
        found += page["conversations"]
    return found


def judge_all(daemon: Daemon, viewers: Sequence[Viewer], events: Sequence[Stored]) -> None:
    for viewer in viewers:
        viewer.judge(daemon.connect(viewer.user), events)
    daemon.hang_up()
