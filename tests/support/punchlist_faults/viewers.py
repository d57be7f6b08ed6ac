"""Subscribers to every view, unbound and of one user, that resume over kills and end with the true list.

A view may leave out what was in between. So a stream of rows or cards over a restart is right if it never goes back and
ends with what a sound daemon shows. Events are compared one by one.
"""

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import Any

import msgspec

from punchlist.calls.cursor import RowsView
from punchlist_faults.background import Background
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


class Viewer(Background):
    """One subscriber, which comes back late; `judge` raises a violation that it met."""

    def __init__(self, path: str, random: Random, view: str, conversation: str | None, user: str | None) -> None:
        super().__init__(f"{view} of {conversation or 'all'} for {user or 'anybody'}", path, user)
        self.resumed = 0
        self._random = random
        self._view, self._conversation = view, conversation
        self._events: list[int] = []
        self._cards: dict[str, dict[str, Any]] = {}
        self._rows = RowsView()
        self._tasks: list[dict[str, Any]] = []
        self._version = 0
        self._seq: int | None = None if view == "rows" else 0
        self._epoch: str | None = None
        self.start()

    def work(self) -> None:
        while not self.ending.is_set():
            self.hang_up()
            self.ending.wait(self._random.uniform(0, LATE_S))  # others change something in the meantime
            with suppress(OSError, EOFError):
                self._follow(self.connect())

    def _follow(self, link: Raw) -> None:
        asked = {"conversation": self._conversation, "after": self._seq, "epoch": self._epoch}
        asked = {name: value for name, value in asked.items() if value is not None}
        answer = link.result("event.subscribe", view=self._view, **asked)
        need(self._seq is None or self._view == "list" or answer["seq"] == self._seq, f"resumed at {answer}")
        self._epoch = answer["epoch"]
        self.resumed += 1
        self._rows.first(msgspec.convert(answer, SubscribeResult))
        if self._view == "list":
            self._take_list(answer)
        while not self.ending.is_set() and (message := link.receive()) is not None:
            need(message["method"] == self._view, f"unexpected: {message}")
            getattr(self, f"_take_{self._view}")(message["params"])

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

    def judge(self, link: Raw, events: Sequence[Stored]) -> None:
        """Wait until it has been shown the whole log, then compare it with what the daemon shows.

        Args:
            link: A connection that is bound as this subscriber's is.
            events: The whole log, to which nothing is added.

        Raises:
            Violation: it was shown something else, something twice or too little.
        """
        eventually(lambda: self.failure or self._shows(link, events), PATIENCE_S, f"{self.name} is up to date")
        if self.failure is not None:
            raise Violation(f"{self.name}: {self.failure}") from self.failure

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
