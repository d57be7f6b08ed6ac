"""`punch agent prime`: prints context for a model from a host's hook, and a reminder when an agent stops.

With `--hook`, the event is JSON on standard input in Claude Code's format (https://code.claude.com/docs/en/hooks):
`session_id`, `hook_event_name`, `stop_hook_active` (Stop only), and `reason` (SessionEnd only). The output of
SessionStart and UserPromptSubmit hooks is added to the context. A Stop hook that prints `{"decision": "block",
"reason": …}` makes the agent continue. A SessionEnd hook prints nothing. A hook never blocks the host: after a failure
it prints a line to standard error and exits with code 0.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from punchlist.base import project
from punchlist.base.actors import belongs_to_agent
from punchlist.base.text import safe_block
from punchlist.connection.launch import is_stopped
from punchlist.errors import PunchlistError, WrongEpoch
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Usage, flag, value
from punchlist_apps.common import autostart, plain_json, wire
from punchlist_apps.hosts.briefing import build_briefing, build_news, build_reminder
from punchlist_apps.hosts.read_positions import ReadPosition, ReadPositions
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, find_host_process, hash_session
from punchlist_schemas.project_file import DirectoryError, is_conversation_id

COMMANDS = {
    "prime": Usage(
        (
            value(
                "--session",
                text="show changes since this session last looked; use the list it is attached to",
                metavar="ID",
            ),
            flag("--hook", text="read a hook's event from standard input; never fail"),
        ),
        ("punch agent prime", "punch agent prime --session 7f3c2d10"),
    ),
}

HOST = "claude-code"
"""Name reported by the host's MCP client, which is also the prefix of its agents' names."""

_MAX_STDIN = 1 << 20
_MAX_CHANGES = 1_000


class HookInput:
    """Members of a hook's input. A member that is missing or has the wrong type gets the default below."""

    session_id = ""
    hook_event_name = "SessionStart"
    stop_hook_active = False
    cwd = ""
    source = ""
    reason = ""

    def __init__(self, text: bytes) -> None:
        defaults = {name: value for name, value in vars(HookInput).items() if not name.startswith("_")}
        vars(self).update(plain_json.read_members(text, defaults))


def run_prime(context: Context) -> int:
    """Print open tasks and changes by other actors, or nothing if there are none."""
    if context.args.hook:
        if is_stopped(context.target.socket):
            return 0  # a hook must not restart a daemon that the user stopped
        context.target.fail_fast()
        try:
            return _run_hook(context, HookInput(sys.stdin.buffer.read(_MAX_STDIN)))
        except (PunchlistError, DirectoryError, OSError) as error:
            context.note(f"punchlist: {safe_block(str(error)).splitlines()[0]}")
            return 0
        finally:
            if context.truncation:
                context.note(f"punchlist: {context.truncation}")
                context.truncation = ""
    return _prime(context, context.args.session or "", context.args.actor or "", "", build_briefing)


def _run_hook(context: Context, event: HookInput) -> int:
    if event.hook_event_name == "SessionEnd":
        return _leave(context, event)
    if event.hook_event_name != "Stop":
        autostart.ensure_running(context.target.socket, context.target.data_dir)
    session = event.session_id or context.args.session or ""
    own = context.args.actor or ""
    if session and not own:
        # The host's MCP server reads this record, so that the server and the hooks use the same agent name.
        own = build_agent_name(
            HOST, Sessions(context.target.data_dir, find_host_process(os.getpid())).record(session, event.source)
        )
    if event.hook_event_name == "Stop":
        return _stop(context, session, own, event)
    brief = build_news if event.hook_event_name == "UserPromptSubmit" else build_briefing
    return _prime(context, session, own, event.cwd, brief)


def _leave(context: Context, event: HookInput) -> int:
    """Report that the session's agent has left. After `/clear`, the same agent continues. Doesn't start a daemon."""
    if event.session_id and event.reason != "clear":
        sessions = Sessions(context.target.data_dir, find_host_process(os.getpid()))
        own = context.args.actor or build_agent_name(HOST, sessions.find_agent(hash_session(event.session_id)))
        wire.call(context.target, "agent.leave", {"agent": own})
    return 0


def _prime(  # noqa: PLR0913 - agent, place and text are independent
    context: Context, session: str, own: str, cwd: str, brief: Callable[[str, list[Any], list[Any]], str]
) -> int:
    name = _resolve_list(context, session, cwd)
    positions = ReadPositions(context.target.data_dir)
    position = positions.load(session, name) if session else ReadPosition()
    epoch, changes, seq = _read_changes(context, name, position) if session else ("", [], None)
    result = context.call("task.list", conversation=name)
    if seq is None:
        seq = result["seq"]
    others = [change for change in changes if not belongs_to_agent(change["actor"], own)]
    text = brief(result.get("name", name), result["tasks"], others)
    if text:
        context.print_lines([text])
    # Save the position of the last change read, so that later changes are reported next time, including those that
    # didn't fit on the page.
    if session and (position.epoch, position.seq) != (epoch, seq):
        positions.save(session, name, ReadPosition(epoch, seq, position.reminded))
    return 0


def _read_changes(context: Context, name: str, position: ReadPosition) -> tuple[str, list[dict[str, Any]], int | None]:
    """Return the current epoch, the list's events after a position, and the position of the last one.

    The last position is None if no events can be read after the given position: on the first read, or in a new epoch.
    """
    if position.seq is None:
        return context.call("daemon.status")["epoch"], [], None
    try:
        page = context.call(
            "event.read", conversation=name, after=position.seq, limit=_MAX_CHANGES, epoch=position.epoch
        )
    except WrongEpoch as error:
        return error.expected or "", [], None
    return page["epoch"], page["events"], page["next"]


def _stop(context: Context, session: str, own: str, event: HookInput) -> int:
    if event.stop_hook_active or not session:
        return 0
    name = _resolve_list(context, session, event.cwd)
    positions = ReadPositions(context.target.data_dir)
    position = positions.load(session, name)
    result = context.call("task.list", conversation=name, status="in_progress")
    tasks = result["tasks"]
    own_tasks = [task for task in tasks if belongs_to_agent(task.get("owner", ""), own)]
    fresh = [task for task in own_tasks if _build_stamp(task) not in position.reminded]
    if not fresh:
        if not tasks:
            context.send("turn.end", {"conversation": name, "actor": own}, writes=True)
        return 0
    reminded = tuple(_build_stamp(task) for task in own_tasks)
    positions.save(session, name, ReadPosition(position.epoch, position.seq, reminded))
    context.print_json({"decision": "block", "reason": build_reminder(result.get("name", name), fresh)})
    return 0


def _build_stamp(task: dict[str, Any]) -> str:
    return f"{task['id']}@{task['status_changed_at']}"


def _resolve_list(context: Context, session: str, cwd: str) -> str:
    """Return the list named by `-c`, else the one that the session is attached to, else the project's.

    The host's project directory takes precedence over `cwd`, the session's current directory.

    Raises:
        DirectoryError: No list was found, or using the list isn't allowed.
    """
    if context.args.conversation:
        return str(context.args.conversation)
    if session and is_conversation_id(session):
        attached: dict[str, Any] = context.call("conversation.get", conversation=session)["conversation"]
        if session in attached.get("sessions", ()):
            return str(attached["conversation"])
    match = project.of_directory(os.environ, project.host_directory(os.environ, cwd))
    if match is None:
        raise DirectoryError("No task list for this directory", "run punch init in the project's directory")
    name, meant = match
    if not project.may_be_taken(meant, context.target.data_dir, context.find_list_id(name)):
        assert meant is not None, "only lists named by a project file or repository are rejected"
        raise project.not_allowed(meant)
    return name
