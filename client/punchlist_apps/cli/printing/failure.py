"""Prints errors as a line about the failure and a line of advice, and chooses the exit code."""

import sys
from collections.abc import Callable
from time import time
from typing import Any

from punchlist.base.departures import departure
from punchlist.base.text import safe, safe_json
from punchlist.errors import ConnectionLost, DaemonUnavailable, Gap, LeaseHeld, PunchlistError, RequestRefused
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION, LOST_RACE, NO_DAEMON, REFUSED, USAGE
from punchlist_apps.files.importers.wrong import FormatError
from punchlist_schemas.project_file import DirectoryError

Data = dict[str, Any]
"""The `data` member of an error response."""

_MAX_NAMES = 8
"""Maximum number of names or tasks in an error."""


class UsageError(Exception):
    """Invalid combination of arguments."""


class StateError(UsageError):
    """Arguments that are valid in general but not in the current state.

    The error doesn't refer to the command's help.
    """


class NotShipped(Exception):
    """A packaged file is missing from this installation. `advice` explains how to get it."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class UnknownList(Exception):
    """`-c` names an unknown or ambiguous list.

    Attributes:
        near: Lists with similar names, or the lists that share this short name.
    """

    def __init__(self, name: str, near: list[str], *, is_ambiguous: bool = False) -> None:
        super().__init__(_describe_ambiguity(name, near) if is_ambiguous else f"no list named {name}")
        self.near = near
        self.is_ambiguous = is_ambiguous


def _describe_ambiguity(name: str, lists: list[str]) -> str:
    return f"{len(lists)} lists are named {name}"


def _advise_full_name(lists: list[str]) -> str:
    return f"use {' or '.join(f'-c {name}' for name in lists[:_MAX_NAMES])}"


class UnknownName(Exception):
    """A name that matches no agent or person in the list, or more than one.

    Attributes:
        names: The names in the list, most similar first.
    """

    def __init__(self, message: str, names: list[str], *, is_ambiguous: bool = False) -> None:
        super().__init__(message)
        self.names = names
        self.is_ambiguous = is_ambiguous


def _advise_blocked(data: Data) -> str:
    if children := _list_open_children(data):
        return f"start one of them first: punch start {children[0]}"
    blockers = [str(blocker.get("id", "")) for blocker in data.get("blockers", ())]
    return f"finish {', '.join(f'#{task}' for task in blockers)} first: punch done {' '.join(blockers)}"


def _advise_undo_conflict(data: Data) -> str:
    first = f"undo the newer call first: punch undo {data['newer']}; " if data.get("newer") else ""
    before = int(data.get("call") or 1) - 1
    all_of_it = f"; to undo that call and everything after it: punch revert --at {before}" if before else ""
    return f"{first}to undo as much as possible, add --force{all_of_it}"


def _advise_nearest(data: Data) -> str:
    return f"did you mean {data['nearest']}?" if data.get("nearest") else "see all methods: punch daemon call --list"


def _list_open_children(data: Data) -> list[str]:
    return [str(child.get("id", "")) for child in data.get("open_children", ())]


def _advise_transition(data: Data) -> str:
    task = data.get("task")
    if children := _list_open_children(data):
        ids = " ".join(children[:_MAX_NAMES])
        return f"complete all: punch done {ids} {task}; without them: punch done {task} --force"
    if data.get("heading"):
        return f"see what is below it: punch list --parent {task}"
    if data.get("running"):
        return f"pause the current task first: punch pause {data['running']}"
    return (
        f"allowed from here: {', '.join(data['allowed'])}" if data.get("allowed") else "see its status: punch show ID"
    )


def _advise_not_found(data: Data) -> str:
    if data.get("names"):
        return _advise_full_name(data["names"])
    if data.get("what") == "confirmation":
        return "nothing was changed; the agent gets a new token when it calls its tool again"
    if data.get("deleted"):
        return f"find the deletion: punch log --task {data.get('id')}; restore the task: punch undo CALL"
    advice = {
        "task": "see all tasks: punch list --all",
        "conversation": "see all lists: punch list all",
        "space": "see all spaces: punch space list",
    }
    return advice.get(str(data.get("what")), "see the list: punch list")


_ADVICE: dict[str, Callable[[Data], str]] = {
    "not_found": _advise_not_found,
    "blocked": _advise_blocked,
    "illegal_transition": _advise_transition,
    "dependency_cycle": lambda data: "see a task's dependencies and parent: punch show ID",
    "version_conflict": lambda data: (
        f"the task has changed; read it again: punch show {data['task']}"
        if "task" in data
        else "the list has changed; read it again: punch list"
    ),
    "method_not_found": _advise_nearest,
    "invalid_params": lambda data: _advise_nearest(data) if data.get("nearest") else "",
    "confirmation_required": lambda data: f"to confirm, repeat the call with confirm={data.get('token', 'TOKEN')}",
    "undo_conflict": _advise_undo_conflict,
    "unreachable": lambda data: (
        "nothing was changed" if "reason" in data else "check the connection: punch space list; reading still works"
    ),
    "diverged": lambda data: "see what differs and how to continue: punch doctor",
    "upgrade_needed": lambda data: "install the latest punchlist, then run: punch daemon stop",
    "storage_full": lambda data: "free some disk space and try again; reading still works",
    "outcome_unknown": lambda data: (
        "once the space is reachable, check whether it was done: punch space list, punch log -n 5"
        if "space" in data
        else "check whether it was done: punch log -n 5"
    ),
    "damaged": lambda data: "stop the daemon: punch daemon stop",
    "gap": lambda data: "see what is damaged or missing: punch daemon verify",
    "internal_error": lambda data: "details are in the daemon's log; see its directory: punch daemon status",
    "shutting_down": lambda data: "try again in a moment",
}

_ADVISED_IN_MESSAGE = frozenset(("not_found", "version_conflict", "blocked"))
"""Kinds of errors whose message ends with advice. The advice above replaces that advice, because it names the
command."""

_as_json = False


def set_json_errors(enabled: bool) -> None:
    """Set whether errors are printed as JSON or as text."""
    global _as_json  # noqa: PLW0603 - a process runs one command
    _as_json = enabled


def show_error(kind: str, message: str, advice: str = "") -> None:
    """Print an error and advice to standard error, escaped for a terminal, or as a line of JSON.

    Only the JSON includes the kind, which is meant for programs.
    """
    sys.stderr.write(format_error(kind, message, advice))
    sys.stderr.flush()


def format_error(kind: str, message: str, advice: str = "") -> str:
    if _as_json:
        import json

        error = {"kind": kind, "message": message, **({"advice": advice} if advice else {})}
        return safe_json(json.dumps({"error": error}, ensure_ascii=False)) + "\n"
    return f"error: {safe(message)}\n" + (f"  {safe(advice)}\n" if advice else "")


def show_refusal(error: RequestRefused, command: str = "") -> int:
    """Print an error returned by the daemon and return the exit code. The advice may refer to the help of `command`."""
    advise = _ADVICE.get(error.kind)
    advice = advise(error.data) if advise else ""
    if error.kind == "invalid_params" and not advice:
        advice = _advise_help(command)
    names = error.data.get("names", [])
    # Don't use the daemon's message, which calls a list a conversation.
    is_list = error.kind == "not_found" and error.data.get("what") == "conversation" and "id" in error.data
    message = str(UnknownList(error.data["id"], names, is_ambiguous=bool(names))) if is_list else error.message
    problem, semicolon, _ = message.partition(";")
    if advice and semicolon and not _as_json and error.kind in _ADVISED_IN_MESSAGE:
        message = f"{problem}."
    show_error(error.kind, message, advice)
    return REFUSED


def show_lease_held(error: LeaseHeld, advice: str) -> None:
    """Print that a task belongs to another owner, with advice. If the owner has left, advise taking over the task."""
    now = int(time() * 1000)
    if gone := departure({**error.data, "lease_expires_at": error.data.get("expires_at")}, now):
        task = error.data["task"]
        show_error(error.kind, f"#{task} belongs to {error.owner}, {gone}", f"punch start {task} takes it")
    else:
        show_error(error.kind, error.message, advice)


def show_gap(gap: Gap) -> int:
    """Print which events are missing, and return the position after the missing events."""
    show_error(gap.kind, gap.message)
    return gap.behind


def show_exception(error: Exception, command: str = "") -> int | None:
    """Print an expected error of `command` and return the exit code; None for a bug."""
    return next((show(error, command) for kind, show in _PRINTERS if isinstance(error, kind)), None)


def _advise_help(command: str) -> str:
    return f"see: {f'punch {command}'.rstrip()} --help"


def _make_printer(kind: str, advice: str, code: int) -> Callable[[Any, str], int]:
    def show(error: Exception, _command: str) -> int:
        show_error(kind, str(error) or "timed out", advice)
        return code

    return show


def _show_usage(error: UsageError, command: str) -> int:
    show_error("usage", str(error), "" if isinstance(error, StateError) else _advise_help(command))
    return USAGE


def _show_unknown_list(error: UnknownList, _command: str) -> int:
    hint = f"did you mean {' or '.join(error.near)}? " if error.near else ""
    advice = _advise_full_name(error.near) if error.is_ambiguous else f"{hint}see all lists: punch list all"
    show_error("not_found", str(error), advice)
    return REFUSED


def _show_unknown_name(error: UnknownName, _command: str) -> int:
    more = f" and {len(error.names) - _MAX_NAMES} more" if len(error.names) > _MAX_NAMES else ""
    names = f"names in this list: {', '.join(error.names[:_MAX_NAMES])}{more}"
    show_error("not_found", str(error), names if error.names else "no agent or person has used the list yet")
    return REFUSED


def _show_configuration(error: NotShipped | DirectoryError, _command: str) -> int:
    show_error("configuration", str(error), error.advice)
    return CONFIGURATION


def _show_file(error: OSError, _command: str) -> int:
    from punchlist_apps.cli.printing import stored

    message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)
    show_error("file", message, stored.advise_stored())
    return REFUSED


def _show_unavailable(error: DaemonUnavailable, _command: str) -> int:
    kinds = {LOST_RACE: "lost_race", CONFIGURATION: "configuration"}
    code = error.exit_code if error.exit_code in kinds else NO_DAEMON
    show_error(kinds.get(code, "no_daemon"), str(error), "find out why: punch doctor")
    return code


_PRINTERS: tuple[tuple[type[Exception], Callable[[Any, str], int]], ...] = (
    (RequestRefused, show_refusal),
    (DaemonUnavailable, _show_unavailable),
    (ConnectionLost, _make_printer("connection_lost", "find out why: punch doctor", NO_DAEMON)),
    (TimeoutError, _make_printer("timed_out", "", NO_DAEMON)),
    (FormatError, _make_printer("unreadable_file", "nothing was imported", REFUSED)),
    (UsageError, _show_usage),
    (UnknownList, _show_unknown_list),
    (UnknownName, _show_unknown_name),
    (NotShipped, _show_configuration),
    (DirectoryError, _show_configuration),
    (PunchlistError, _make_printer("protocol", "check the installation: punch doctor", REFUSED)),
    (OSError, _show_file),
)
"""Exception class → its printer. The first match wins, so subclasses come before their bases."""
