"""Subscribers to every view, with and without a user, that resume after kills and must end with the daemon's list.

A view may skip intermediate states. A stream of lists, rows or cards is therefore correct if its versions never
decrease and it ends with the daemon's state. Events are compared one by one.
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
"""A list of `USER`, and one without a user."""

USER = "ann"

LATE_S = 0.2
"""Upper limit for a subscriber's pause before it resumes, in seconds."""

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
"""View, list (None: all), and the subscriber's user."""


class Viewer(Background):
    """A subscriber that resumes after a pause; `judge` raises violations that it detected."""

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
        params = {"conversation": self._conversation, "after": self._seq, "epoch": self._epoch}
        params = {name: value for name, value in params.items() if value is not None}
        answer = link.result("event.subscribe", view=self._view, **params)
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
        """Wait until the subscriber has received the whole log, and compare its view with the daemon's.

        Args:
            link: A connection with the same user.
            events: The whole log, which must not grow.

        Raises:
            Violation: It received other events, duplicates, or too few.
        """
        eventually(lambda: self.failure or self._shows(link, events), PATIENCE_S, f"{self.name} is up to date")
        if self.failure is not None:
            raise Violation(f"{self.name}: {self.failure}") from self.failure

    def _shows(self, link: Raw, events: Sequence[Stored]) -> bool:
        if self._view == "events":
            if self._conversation:
                names = {self._conversation}
            else:
                names = {card["conversation"] for card in _all_lists(link)}
            seqs = [event.seq for event in events if event.conversation in names]
            need(self._events == seqs[: len(self._events)], f"missed an event or got one twice: {self._events[-5:]}")
            return self._events == seqs
        if self._view == "board":
            return self._cards == {card["conversation"]: card for card in _all_lists(link)}
        expected = link.result("task.list", conversation=self._conversation)
        return self._version == expected["version"] and _plain(self._tasks) == _plain(expected["tasks"])


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
