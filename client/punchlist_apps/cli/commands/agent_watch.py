"""`punch agent watch`: prints a line when others change what an agent works on, for the monitor of Claude Code.

The host adds each line to the model's context, which starts a turn of an idle session. Therefore only changes that
concern the agent are printed; its hooks report all changes at the next prompt. Both share a read position, so that no
change is reported twice. If a line can't hold all changes, it ends in their number, and the next prompt's hook reports
them: a line for each few changes would start turn after turn. The command ends with its host.
"""

import os
import time
from collections.abc import Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import structs

from punchlist.base.actors import belongs_to_agent
from punchlist.connection.launch import is_stopped
from punchlist.errors import PunchlistError, TimedOut
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.unseen import read_changes, resolve_list
from punchlist_apps.cli.parsing.arguments import Usage, value
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_apps.common.process import find_pid
from punchlist_apps.hosts.briefing import Alert, build_alerts, get_task
from punchlist_apps.hosts.read_positions import ReadPositions
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, find_host_process, get_session, hash_session
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.vocabulary import FINISHED

if TYPE_CHECKING:
    from punchlist.calls.cursor import TaskList
    from punchlist.clients.sync import Watch

COMMANDS = {
    "watch": Usage(
        (value("--session", text="the session (default: CLAUDE_CODE_SESSION_ID)", metavar="ID"),),
        ("punch agent watch", "punch agent watch --session 7f3c2d10"),
    ),
}

BATCH_S = 1.0
"""Time for which changes are collected after the first one, in seconds."""

MIN_PAUSE_S = 60.0
"""Minimum time between two lines without urgent changes, in seconds."""

MAX_LINE = 240
"""Upper limit for a line, in characters."""

_HOST = "claude-code"
CHECK_S = 2.0
"""Time between two checks of the host's process, and between attempts to connect, in seconds."""

FIND_LIST_S = 60.0
"""Time between two checks which list the session uses, in seconds."""

_FIRST_S = 10.0
"""Upper limit for the first state of the list to arrive, in seconds."""

_MAX_TOLD = 1_000
_READY = "a task is ready again: call next"
_TAKEN = frozenset({"Claimed", "Released", "StatusChanged", "Deleted", "ListCleared"})
_EDITED = frozenset({"NoteAdded", "TaskEdited", "DependencyAdded", "DependencyRemoved"})

Urgency = Literal["urgent", "later"]


def run_watch(context: Context) -> int:
    """Print lines until the host's process ends."""
    session = context.args.session or get_session(os.environ)
    if not session:
        raise UsageError("no session: Claude Code sets CLAUDE_CODE_SESSION_ID for its monitors; else give --session")
    watcher, noted = _Watcher(context, session), ""
    while watcher.has_host:
        pause_s = CHECK_S
        try:
            if not is_stopped(context.target.socket):
                watcher.follow()
        except BrokenPipeError:
            raise  # the host reads no more lines
        except DirectoryError as error:
            pause_s = FIND_LIST_S
            if str(error) != noted:
                noted = str(error)
                context.note(f"punchlist: {noted}")
        except (PunchlistError, OSError):
            pass  # the daemon is suspended, stopped or restarting; or a position can't be saved
        watcher.wait(pause_s)
    return 0


class _Watcher:
    """Prints the changes that concern one session's agent.

    Args:
        context: Makes the calls.
        session: The id of the session that the command was started for.
    """

    def __init__(self, context: Context, session: str) -> None:
        self._context = context
        self._session = session
        self._first = hash_session(session)
        self._host = find_host()
        self._sessions = Sessions(context.target.data_dir, self._host[0])
        self._list = ""
        self._own_tasks: set[str] = set()
        self._after = ("", 0)
        """Epoch, and position in the list up to which no change remains to be printed."""
        self._printed_at = float("-inf")
        self._due_at = float("inf")
        """Time at which waiting changes may be printed, on the monotonic clock."""

    @property
    def has_host(self) -> bool:
        return find_host() == self._host

    def wait(self, seconds: float) -> None:
        """Wait, or return early if the host ends."""
        end = time.monotonic() + seconds
        while self.has_host and (left_s := end - time.monotonic()) > 0:
            time.sleep(min(left_s, CHECK_S))

    def follow(self) -> None:
        """Print changes until the host ends or the session uses another list."""
        name = resolve_list(self._context, self._session, "")
        if name != self._list:
            self._list, self._own_tasks, self._after, self._due_at = name, set(), ("", 0), float("inf")
        find_at = time.monotonic() + FIND_LIST_S
        with self._context.client.conversation(name).watch(view="rows") as lists:
            latest = lists.next(_FIRST_S)
            self._report(name, latest)
            while self.has_host:
                if time.monotonic() >= find_at:
                    if resolve_list(self._context, self._session, "") != name:
                        return
                    find_at = time.monotonic() + FIND_LIST_S
                newer = self._collect(lists)
                if newer is not None or time.monotonic() >= self._due_at:
                    latest = latest if newer is None else newer
                    self._report(name, latest)

    def _collect(self, lists: "Watch[TaskList]") -> "TaskList | None":
        """Return the list after its next changes; None if it doesn't change before the next check."""
        latest: TaskList | None = None
        end = min(time.monotonic() + CHECK_S, self._due_at)
        with suppress(TimedOut):
            while (left_s := end - time.monotonic()) > 0:
                newer = lists.next(left_s)
                end = end if latest is not None else time.monotonic() + BATCH_S
                latest = newer
        return latest

    def _report(self, name: str, latest: "TaskList") -> None:
        """Print a line if changes concern the agent, unless they aren't urgent and have to wait."""
        current = self._sessions.load_current()
        key = current.sessions[-1] if current is not None and self._first in current.sessions else self._first
        own = self._context.args.actor or build_agent_name(_HOST, self._sessions.find_agent(self._first))
        with ReadPositions(self._context.target.data_dir).lock(key, name) as locked:
            position = locked.value
            start = position.seq
            if start is not None and self._after[0] == position.epoch:
                start = max(start, self._after[1])
            epoch, changes, seq = read_changes(self._context, name, position.epoch, start, position.told)
            # The next state of the list contains the tasks of later changes.
            known = [change for change in changes if change["seq"] <= latest.seq]
            others = [change for change in known if not belongs_to_agent(change["actor"], own)]
            now_own = {task.id for task in latest if task.status not in FINISHED and belongs_to_agent(task.owner, own)}
            concerning = [
                (change, rating)
                for change in others
                if (rating := _rate(change["event"], self._own_tasks | now_own, own))
            ]
            alerts = (
                build_alerts(msgspec.to_builtins(list(latest)), [change for change, _ in concerning])
                if concerning
                else []
            )
            is_ready = bool(others) and self._sessions.had_empty_next(own) and _has_ready(latest, own)
            is_urgent = is_ready or any(rating == "urgent" for _, rating in concerning)
            now, self._due_at = time.monotonic(), float("inf")
            if is_urgent or (alerts and now - self._printed_at >= MIN_PAUSE_S):
                line, printed = _format_line(alerts, is_ready=is_ready)
                told = (*position.told, *(seq for alert in alerts[:printed] for seq in alert.seqs))
                # Save first: if that fails, the hook must not repeat the line.
                locked.save(structs.replace(position, told=told[-_MAX_TOLD:]))
                if is_ready:
                    self._sessions.record_next(own, is_empty=False)
                self._context.print_lines([line])
                self._printed_at = now
            elif alerts:
                self._due_at = self._printed_at + MIN_PAUSE_S
                return
            self._after, self._own_tasks = (epoch, latest.seq if seq is None else min(seq, latest.seq)), now_own
            if seq is None:  # the session's first position in this log
                locked.save(position.advance(epoch, latest.seq))


def find_host() -> tuple[str | None, int]:
    return find_host_process(find_pid()), os.getppid()


def _rate(event: dict[str, Any], own_tasks: Set[str], own: str) -> Urgency | None:
    """Return whether an event by others concerns the agent, and how soon it must be printed."""
    kind = event["type"]
    if kind == "TaskAdded":
        task = event["task"]
        is_for_agent = belongs_to_agent(task.get("owner", ""), own)
        return "urgent" if is_for_agent or task.get("priority") in ("high", "urgent") else None
    if kind == "TaskEdited" and belongs_to_agent(event.get("owner") or "", own):
        return "urgent"
    if kind == "Released" and belongs_to_agent(event["owner"], own):
        return "urgent"
    if not own_tasks or (get_task(event) not in own_tasks and kind != "ListCleared"):
        return None
    return "urgent" if kind in _TAKEN or "owner" in event else "later" if kind in _EDITED else None


def _has_ready(latest: "TaskList", own: str) -> bool:
    """Return whether the agent's next call of `next` can return a task."""
    return latest.counts.ready > 0 and any(
        task.status == "pending" and not task.open_blockers and (not task.owner or belongs_to_agent(own, task.owner))
        for task in latest
    )


def _format_line(alerts: list[Alert], *, is_ready: bool) -> tuple[str, int]:
    """Return a line with as many alerts as fit, and their number, which is at least one."""
    parts = [_READY] if is_ready else []
    for index, alert in enumerate(alerts):
        remaining = len(alerts) - index - 1
        more = [f"{remaining} more"] if remaining else []
        if index and len(_join([*parts, alert.text, *more])) > MAX_LINE:
            return _join([*parts, f"{remaining + 1} more"]), index
        parts.append(alert.text)
    return _join(parts), len(alerts)


def _join(parts: list[str]) -> str:
    return "punchlist: " + "; ".join(parts)
