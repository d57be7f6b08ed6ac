"""What is wrong with mirror files, in a file that `punch doctor` and the tools read: light, and never the truth."""

import json
import os
import time
from collections.abc import Callable

import msgspec

from punchlist.atomic import atomic_write, make_directories

STATUS_NAME = "mirror-status.json"
_MAX_PROBLEMS = 1_000


class Problem(msgspec.Struct, frozen=True):
    """Something a person should look at.

    `kind` is `corrupt` (not in its form), `foreign` (of another list or log), `conflict`, `kept` (tasks missing in a
    file that may not know them), or `trouble` (the disk). `at` is milliseconds since 1970 UTC, `copy` a file beside.
    """

    conversation: str
    file: str
    kind: str
    text: str
    at: int
    copy: str = ""


class Status(msgspec.Struct, frozen=True):
    """How the mirror is: the process that runs it, and what is wrong."""

    pid: int
    at: int
    problems: tuple[Problem, ...] = ()
    watching: str = "events"
    """`events`, or `polling` where the system gives us no watches."""


class Report:
    """Keeps the problems of a running mirror, the newest of each file and kind.

    Args:
        data_dir: The data directory.
        log: Is told each problem that is news.
    """

    def __init__(self, data_dir: str, log: Callable[[Problem], None]) -> None:
        self._log = log
        self._path = os.path.join(data_dir, STATUS_NAME)
        self._problems: dict[tuple[str, str], Problem] = {}
        self.watching = "events"
        for problem in (_read(self._path) or Status(0, 0)).problems:
            if problem.kind == "conflict":  # a conflict outlives the process that met it
                self._problems[problem.file, problem.kind] = problem

    def tell(self, problem: Problem) -> None:
        """Take note of a problem."""
        key = (problem.file, problem.kind)
        known = self._problems.get(key)
        if known is not None and (known.text, known.copy) == (problem.text, problem.copy):
            return
        self._problems.pop(key, None)
        self._problems[key] = problem
        while len(self._problems) > _MAX_PROBLEMS:
            del self._problems[next(iter(self._problems))]
        self.save()
        self._log(problem)

    def clear(self, file: str, *kinds: str) -> None:
        """A file has no such problems any more."""
        found = [key for key in ((file, kind) for kind in kinds) if key in self._problems]
        for key in found:
            del self._problems[key]
        if found:
            self.save()

    def save(self) -> None:
        """Write the file."""
        status = Status(os.getpid(), int(time.time() * 1000), tuple(self._problems.values()), self.watching)
        make_directories(os.path.dirname(self._path))
        atomic_write(self._path, msgspec.json.encode(status))


def status(data_dir: str) -> Status | None:
    """What the mirror last said of itself, or None where none has run."""
    found = _read(os.path.join(data_dir, STATUS_NAME))
    # A conflict is over when its copy has been dealt with.
    return found and msgspec.structs.replace(
        found, problems=tuple(one for one in found.problems if not one.copy or os.path.exists(one.copy))
    )


def is_corrupt(conversation: str, data_dir: str) -> bool:
    """Whether a conversation's mirror file can't be read at this time."""
    try:
        with open(os.path.join(data_dir, STATUS_NAME), "rb") as file:
            problems = json.loads(file.read()).get("problems", ())
        return any(one["kind"] == "corrupt" and one["conversation"] == conversation for one in problems)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _read(path: str) -> Status | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Status)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
