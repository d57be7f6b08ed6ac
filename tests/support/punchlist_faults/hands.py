"""Clients of several kinds that edit one list, each in its own thread. For `together`.

Every text that they write is a unique token, so that the log shows its fate.
"""

import re
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec

from punchlist_faults.background import Background
from punchlist_faults.options import Violation, need
from punchlist_faults.process import PATIENCE_S, PUNCH, Daemon, environment, eventually

LIST = "plan"
TASKS = 200

SHARED = 20
"""All clients edit the tasks up to this number. In other tasks, each member is edited only by programs or only in the
file."""

_TOKEN = re.compile(r"tk-\w+-\d+")

Task = dict[str, Any]
Act = Callable[[], object]


class Deed(NamedTuple):
    """Text that a client wrote. It is undisputed if no other client could have edited the same member."""

    token: str
    by: str
    is_undisputed: bool = False
    task: str = ""


class Witness(Background):
    """A subscriber to all events. `at` has the time of the first event with each text."""

    def __init__(self, path: str) -> None:
        super().__init__("witness", path)
        self.events: list[Task] = []
        self.at: dict[str, float] = {}
        self._news = threading.Condition()
        self.connect().sock.settimeout(None)
        self.start()

    def work(self) -> None:
        link = self.connect()
        link.send("event.subscribe", {"conversation": LIST, "after": 0}, id=1)
        while (message := link.receive()) is not None:
            now = time.monotonic()
            content: Any = message.get("params") or message.get("result") or {}
            events: list[Task] = content.get("events", [])
            with self._news:
                for event in events:
                    self.events.append(event)
                    for word in words(event["event"]):
                        self.at.setdefault(word, now)
                self._news.notify_all()

    def await_token(self, token: str, seconds: float = PATIENCE_S) -> float:
        with self._news:
            if not self._news.wait_for(lambda: token in self.at, seconds):
                raise Violation(f"{token} has been in no event for {seconds:g} s: it is lost")
            return self.at[token]

    def has_seen(self, value: object) -> bool:
        return value in self.at or not _TOKEN.fullmatch(str(value))


def words(value: Any) -> set[str]:
    return set(_TOKEN.findall(msgspec.json.encode(value).decode()))


class Hand(Background):
    """A client that makes `count` random operations with random pauses."""

    kind = ""

    def __init__(self, random: Random, count: int, seconds: float, path: str = "") -> None:
        super().__init__(self.kind, path)
        self.deeds: list[Deed] = []
        self.refused = 0
        self.done = 0
        self.random = random
        self._count = count
        self._pause = seconds / max(1, count)
        self._number = 0
        self.end: Callable[[], object] = self.hang_up

    def work(self) -> None:
        kinds, weights = zip(*self.acts(), strict=True)
        owed = 0.0
        for _ in range(self._count):
            began = time.monotonic()
            self.random.choices(kinds, weights)[0]()
            self.done += 1
            # Half of the operations follow the previous one without a pause.
            owed += self._pause - (time.monotonic() - began)
            if owed > 0 and self.random.random() < 0.5:  # noqa: PLR2004
                pause = min(owed, self.random.expovariate(0.5 / self._pause))
                time.sleep(pause)
                owed -= pause

    def acts(self) -> Sequence[tuple[Act, float]]:
        """Return the client's operations and their weights."""
        raise NotImplementedError

    def tasks(self) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def token(self) -> str:
        self._number += 1
        return f"tk-{self.name}-{self._number}"

    def write(self, do: Callable[[str], bool]) -> None:
        token = self.token()
        self.wrote(token, do(token))

    def wrote(self, token: str, is_refused: bool = False, *, undisputed: bool = False, task: str = "") -> None:
        if is_refused:
            self.refused += 1
        else:
            self.deeds.append(Deed(token, self.name, undisputed, task))

    def any_task(self) -> str:
        return str(self.random.randint(1, TASKS))

    def any_of_ours(self) -> str:
        """Return a random task with an odd id: programs, not the file, change the status of these tasks."""
        return str(self.random.randrange(1, TASKS, 2))

    def any_shared(self) -> str:
        return str(self.random.randint(1, SHARED))


@contextmanager
def run_mirror(daemon: Daemon, directory: Path) -> Generator[Path]:
    """Run `punch mirror run` on a directory; yield the list's file."""
    directory.mkdir(exist_ok=True)
    data = ["--data-dir", str(daemon.data), "--socket", daemon.socket, "--no-autostart"]
    add = [*PUNCH, "mirror", "add", str(directory), "-c", LIST, *data]
    subprocess.run(add, env=environment(), stdout=subprocess.DEVNULL, check=True)
    with open(daemon.directory / "mirror.log", "wb") as log:
        running = subprocess.Popen([*PUNCH, "mirror", "run", *data], env=environment(), stderr=log)
        try:
            file = directory / ".agents" / "tasks" / f"{LIST}.json"
            eventually(file.exists, PATIENCE_S, "the mirror is written")
            yield file
            need(running.poll() is None, f"the mirror ended: {(daemon.directory / 'mirror.log').read_text()}")
        finally:
            running.terminate()
            with suppress(subprocess.TimeoutExpired):
                running.wait(5)
            running.kill()
            running.wait()
