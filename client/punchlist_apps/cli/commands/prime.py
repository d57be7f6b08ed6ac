"""`punch agent prime`: prints context for a model from a host's hook, and a reminder when an agent stops.

With `--hook`, the event is JSON on standard input; `punchlist_apps.hosts.hooks` has the formats. The output of a hook
at a start, a prompt or a tool's result is added to the context. The output at a stop makes the agent continue. A hook
at an end prints nothing. A hook never blocks the host: after a failure it prints a line to standard error and exits
with code 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from msgspec import structs

from punchlist.base.actors import belongs_to_agent
from punchlist.base.text import safe_block
from punchlist.connection.launch import HOOK_S, is_stopped
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.host_input import read_host_input
from punchlist_apps.cli.calling.unseen import read_changes, resolve_list
from punchlist_apps.cli.parsing.arguments import Usage, choice, flag, value
from punchlist_apps.common import autostart
from punchlist_apps.common.process import find_pid
from punchlist_apps.hosts.briefing import build_briefing, build_news, build_reminder
from punchlist_apps.hosts.hooks import HOOK_HOSTS, HookEvent, format_context, format_reminder, read_event
from punchlist_apps.hosts.read_positions import LockedPosition, ReadPosition, ReadPositions
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, find_host_process, hash_session

COMMANDS = {
    "prime": Usage(
        (
            value(
                "--session",
                text="show changes since this session last looked; use the list it is attached to",
                metavar="ID",
            ),
            flag("--hook", text="read a hook's event from standard input; never fail"),
            choice(
                "--host",
                text="the host whose hook this is (default: claude-code)",
                choices=tuple(HOOK_HOSTS),
                default="claude-code",
            ),
        ),
        ("punch agent prime", "punch agent prime --session 7f3c2d10", "punch agent prime --hook --host codex"),
    ),
}

_STDIN_S = 2.0
"""Upper limit for the time to read a hook's input, in seconds."""

_SAME_START_S = 10.0
"""Two starts of a session within this time are one start, reported by two hooks. Also the timeout of a host's hook."""

Format = Callable[[str], str]


def run_prime(context: Context) -> int:
    """Print open tasks and changes by other actors, or nothing if there are none."""
    if context.args.hook:
        if is_stopped(context.target.socket):
            return 0  # a hook must not restart a daemon that the user stopped
        context.target.fail_fast()
        try:
            return _run_hook(context, read_event(context.args.host, read_host_input(_STDIN_S)))
        except Exception as error:  # noqa: BLE001 - hosts report or act on a hook's failure
            context.note(f"punchlist: {safe_block(str(error) or type(error).__name__).splitlines()[0]}")
            return 0
        finally:
            if context.truncation:
                context.note(f"punchlist: {context.truncation}")
                context.truncation = ""
    session = context.args.session or ""
    with _lock_position(context, session, name := resolve_list(context, session, "")) as position:
        return _prime(context, position, name, context.args.actor or "", build_briefing, str)


def _run_hook(context: Context, event: HookEvent) -> int:
    host = context.args.host
    session = event.session or context.args.session or ""
    if event.moment is None:
        return 0  # an event of another version of the host
    if event.moment == "end":
        return _leave(context, event)
    if event.moment != "stop":
        autostart.ensure_running(context.target.socket, context.target.data_dir)
    own = context.args.actor or (_record_agent(context, event, session) if session else "")
    if event.moment == "stop" and (event.is_repeated or not session):
        return 0
    name = resolve_list(context, session, event.directory)
    with _lock_position(context, session, name) as position:
        if event.moment == "stop":
            return _stop(context, position, name, own)
        brief = build_news
        if event.moment == "start" and not _has_started(position, event):
            brief = build_briefing
        return _prime(context, position, name, own, brief, lambda text: format_context(host, event, text))


def _record_agent(context: Context, event: HookEvent, session: str) -> str:
    """Return the name of the session's agent.

    The host's MCP server reads this record, so that the server and the hooks use the same name.
    """
    host, key = context.args.host, hash_session(session)
    identity = HOOK_HOSTS[host].identity
    if identity != "thread":
        # In a process with one MCP server, only a resumed session is another agent.
        source = event.source if identity == "session" or event.source == "resume" else "clear"
        key = _open_sessions(context).record(session, source)
    return build_agent_name(host, key)


def _open_sessions(context: Context) -> Sessions:
    return Sessions(context.target.data_dir, find_host_process(find_pid()))


def _leave(context: Context, event: HookEvent) -> int:
    """Report that the session's agent has left. After `/clear`, the same agent continues. Doesn't start a daemon."""
    host = context.args.host
    if event.session and event.reason != "clear":
        key = hash_session(event.session)
        if HOOK_HOSTS[host].identity == "session":
            key = _open_sessions(context).find_agent(key)
        context.peek("agent.leave", {"agent": context.args.actor or build_agent_name(host, key)}, HOOK_S)
    return 0


def _lock_position(context: Context, session: str, name: str) -> Any:
    """Lock the session's position in a list. Without a session, return None in place of the position."""
    if not session:
        return nullcontext()
    return ReadPositions(context.target.data_dir).lock(hash_session(session), name)


def _has_started(position: LockedPosition | None, event: HookEvent) -> bool:
    """Record the start of a session. Return whether another hook has just reported it."""
    if position is None:
        return False
    start, now = f"{event.source} {find_host_process(find_pid())}", time.time()
    before, at = position.value.started
    if start == before and abs(now - at) < _SAME_START_S:
        return True
    position.save(structs.replace(position.value, started=(start, now)))
    return False


def _prime(  # noqa: PLR0913 - agent, place and text are independent
    context: Context,
    position: LockedPosition | None,
    name: str,
    own: str,
    brief: Callable[[str, list[Any], list[Any]], str],
    format_text: Format,
) -> int:
    before = position.value if position else ReadPosition()
    epoch, changes, seq = (
        read_changes(context, name, before.epoch, before.seq, before.told) if position else ("", [], None)
    )
    result = context.call("task.list", conversation=name)
    others = [change for change in changes if not belongs_to_agent(change["actor"], own)]
    text = brief(result.get("name", name), result["tasks"], others)
    if text:
        context.print_lines([format_text(text)])
    # Save the position of the last change read, so that later changes are reported next time, including those that
    # didn't fit on the page.
    if position:
        position.save(before.advance(epoch, result["seq"] if seq is None else seq))
    return 0


def _stop(context: Context, position: LockedPosition, name: str, own: str) -> int:
    result = context.call("task.list", conversation=name, status="in_progress")
    tasks = result["tasks"]
    own_tasks = [task for task in tasks if belongs_to_agent(task.get("owner", ""), own)]
    fresh = [task for task in own_tasks if _build_stamp(task) not in position.value.reminded]
    if not fresh:
        if not tasks:
            context.send("turn.end", {"conversation": name, "actor": own})
        return 0
    position.save(structs.replace(position.value, reminded=tuple(_build_stamp(task) for task in own_tasks)))
    text = build_reminder(result.get("name", name), fresh)
    context.print_lines([format_reminder(context.args.host, text)])
    return 0


def _build_stamp(task: dict[str, Any]) -> str:
    return f"{task['id']}@{task['status_changed_at']}"
