"""Problems with mirror files, stored in a status file for `punch doctor` and the tools."""

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
    """A problem that needs a person's attention.

    Attributes:
        kind: `corrupt` (invalid format), `foreign` (from another list or log, or from a deleted list), `conflict`,
            `kept` (tasks missing in a file that may never have contained them), `unread` (a plan that can't be read or
            written in its encoding), `form` (a plan that looks like another form than before), or `trouble` (an error
            of the disk or the daemon).
        at: Time in milliseconds since 1970 UTC.
        copy: File with the conflicting contents, if any.
    """

    conversation: str
    file: str
    kind: str
    text: str
    at: int
    copy: str = ""


class Status(msgspec.Struct, frozen=True):
    """State of a mirror.

    Attributes:
        pid: Id of the process that runs the mirror.
        at: When this status was written, in milliseconds since 1970 UTC.
        watching: `events`, or `polling` if the system provides no file watches.
    """

    pid: int
    at: int
    problems: tuple[Problem, ...] = ()
    watching: str = "events"


class Report:
    """The problems reported by a running mirror: the latest for each file and kind. Calls `log` with each new one."""

    def __init__(self, data_dir: str, log: Callable[[Problem], None]) -> None:
        self._log = log
        self._path = os.path.join(data_dir, STATUS_NAME)
        self._problems: dict[tuple[str, str], Problem] = {}
        self.watching = "events"
        for problem in (_read(self._path) or Status(0, 0)).problems:
            if problem.kind == "conflict":  # conflicts survive a restart of the mirror
                self._problems[problem.file, problem.kind] = problem

    def add(self, problem: Problem) -> None:
        key = (problem.file, problem.kind)
        previous = self._problems.get(key)
        if previous is not None and (previous.text, previous.copy) == (problem.text, problem.copy):
            return
        self._problems.pop(key, None)
        self._problems[key] = problem
        while len(self._problems) > _MAX_PROBLEMS:
            del self._problems[next(iter(self._problems))]
        self.save()
        self._log(problem)

    def clear(self, file: str, *kinds: str) -> None:
        keys = [key for key in ((file, kind) for kind in kinds) if key in self._problems]
        for key in keys:
            del self._problems[key]
        if keys:
            self.save()

    def save(self) -> None:
        status = Status(os.getpid(), int(time.time() * 1000), tuple(self._problems.values()), self.watching)
        make_directories(os.path.dirname(self._path))
        atomic_write(self._path, msgspec.json.encode(status))


def status(data_dir: str) -> Status | None:
    """Return the mirror's latest status, without problems solved since then; None if no mirror has run."""
    latest = _read(os.path.join(data_dir, STATUS_NAME))
    if latest is None or not latest.problems:
        return latest
    entries = _read_entries(data_dir)
    problems = tuple(problem for problem in latest.problems if not _is_solved(problem, entries))
    return msgspec.structs.replace(latest, problems=problems)


def is_corrupt(conversation: str, data_dir: str) -> bool:
    """Return whether a conversation's mirror file is corrupt, so that its changes can't be applied.

    False if the file is no longer mirrored or the mirror is not running.
    """
    if not os.path.exists(os.path.join(data_dir, STATUS_NAME)):
        return False
    latest = status(data_dir)
    is_reported = latest is not None and any(
        problem.kind == "corrupt" and canonical(problem.conversation) == canonical(conversation)
        for problem in latest.problems
    )
    return latest is not None and is_reported and os_calls.is_running(latest.pid)


def _read_entries(data_dir: str) -> tuple[Entry, ...]:
    try:
        return Config(data_dir).read().mirrors
    except ConfigError:
        return ()


def _is_solved(problem: Problem, entries: Iterable[Entry]) -> bool:
    """Return whether a conflict's copy has been removed, or a corrupt file is valid, gone or no longer mirrored."""
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
