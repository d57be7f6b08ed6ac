"""What is wrong with mirror files, in a file that `punch doctor` and the tools read: light, and never the truth."""

import os
import time
from collections.abc import Callable, Iterable

import msgspec

from punchlist.taskfiles.config import FORMS, Config, ConfigError, Entry
from punchlist.taskfiles.file_format import Form, Unreadable
from punchlist_schemas.guid import canonical
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.system import os_calls
from punchlist_schemas.system.atomic import atomic_write

STATUS_NAME = "mirror-status.json"
_MAX_PROBLEMS = 1_000


class Problem(msgspec.Struct, frozen=True):
    """Something a person should look at.

    `kind` is `corrupt` (not in its form), `foreign` (of another list or log, or of a list that was deleted),
    `conflict`, `kept` (tasks missing in a file that may not know them), or `trouble` (the disk). `at` is milliseconds
    since 1970 UTC, `copy` a file beside.
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
    """Keeps the problems of a running mirror, the newest of each file and kind. `log` is called with each new one."""

    def __init__(self, data_dir: str, log: Callable[[Problem], None]) -> None:
        self._log = log
        self._path = os.path.join(data_dir, STATUS_NAME)
        self._problems: dict[tuple[str, str], Problem] = {}
        self.watching = "events"
        for problem in (_read(self._path) or Status(0, 0)).problems:
            if problem.kind == "conflict":  # a conflict outlives the process that met it
                self._problems[problem.file, problem.kind] = problem

    def add(self, problem: Problem) -> None:
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
        found = [key for key in ((file, kind) for kind in kinds) if key in self._problems]
        for key in found:
            del self._problems[key]
        if found:
            self.save()

    def save(self) -> None:
        status = Status(os.getpid(), int(time.time() * 1000), tuple(self._problems.values()), self.watching)
        make_directories(os.path.dirname(self._path))
        atomic_write(self._path, msgspec.json.encode(status))


def status(data_dir: str) -> Status | None:
    """What the mirror last said of itself, or None where none has run. What is over by now is left out."""
    found = _read(os.path.join(data_dir, STATUS_NAME))
    if found is None or not found.problems:
        return found
    entries = _entries(data_dir)
    problems = tuple(one for one in found.problems if not _is_over(one, entries))
    return msgspec.structs.replace(found, problems=problems)


def is_corrupt(conversation: str, data_dir: str) -> bool:
    """Whether a conversation's mirror file can't be read at this time, so that what it proposes is not known.

    Nobody waits for a file that is no longer mirrored, or whose mirror is not running.
    """
    if not os.path.exists(os.path.join(data_dir, STATUS_NAME)):
        return False
    found = status(data_dir)
    is_reported = found is not None and any(
        one.kind == "corrupt" and canonical(one.conversation) == canonical(conversation) for one in found.problems
    )
    return found is not None and is_reported and os_calls.is_running(found.pid)


def _entries(data_dir: str) -> tuple[Entry, ...]:
    try:
        return Config(data_dir).read().mirrors
    except ConfigError:
        return ()


def _is_over(problem: Problem, entries: Iterable[Entry]) -> bool:
    """A conflict is over once its copy has been dealt with, corruption once the file is sound, gone or not mirrored."""
    if problem.copy:
        return not os.path.exists(problem.copy)
    if problem.kind != "corrupt":
        return False
    forms = [
        FORMS[entry.format]
        for entry in entries
        if entry.holds(problem.conversation) and problem.file.startswith(os.path.join(entry.directory, ""))
    ]
    try:
        with open(problem.file, "rb") as file:
            data = file.read()
        return not any(_is_unreadable(form, os.path.basename(problem.file), data) for form in forms)
    except FileNotFoundError:
        return True
    except OSError:
        return not forms


def _is_unreadable(form: Form, name: str, data: bytes) -> bool:
    try:
        form.parse(name, data)
    except Unreadable:
        return True
    return False


def _read(path: str) -> Status | None:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Status)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
