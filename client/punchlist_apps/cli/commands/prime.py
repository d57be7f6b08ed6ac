"""`punch agent prime`: what a host's hook puts into the model's context, and the reminder when an agent stops.

With `--hook` the event comes as JSON on standard input, as Claude Code sends it
(https://code.claude.com/docs/en/hooks): `session_id`, `hook_event_name`, for Stop `stop_hook_active`, and for
SessionEnd `reason`. What SessionStart and UserPromptSubmit hooks print is added to the context; a Stop hook that prints
`{"decision": "block", "reason": …}` makes the agent go on; a SessionEnd hook prints nothing. A hook never stands in the
way: whatever fails ends with code 0 and a line on standard error.
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
                text="show what changed since this session looked last; if it is attached, use its list",
                metavar="ID",
            ),
            flag("--hook", text="read a hook's event from standard input, and never fail"),
        ),
        ("punch agent prime", "punch agent prime --session 7f3c2d10"),
    ),
}

HOST = "claude-code"
"""The name by which the host's MCP client introduces itself, and so the beginning of its agents' names."""

_MAX_STDIN = 1 << 20
_MAX_CHANGES = 1_000


class HookInput:
    """What we use of a hook's input; what it leaves out or has of another type is as it is here."""

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
    """Print open tasks and what changed since; nothing when there is nothing to say."""
    if context.args.hook:
        if is_stopped(context.target.socket):
            return 0  # a hook is nobody who wants a daemon
        context.target.fail_fast()
        try:
            return _run_hook(context, HookInput(sys.stdin.buffer.read(_MAX_STDIN)))
        except (PunchlistError, DirectoryError, OSError) as error:
            context.note(f"punchlist: {safe_block(str(error)).splitlines()[0]}")
            return 0
        finally:
            if context.cut:
                context.note(f"punchlist: {context.cut}")
                context.cut = ""
    return _prime(context, context.args.session or "", context.args.actor or "", "", build_briefing)


def _run_hook(context: Context, given: HookInput) -> int:
    if given.hook_event_name == "SessionEnd":
        return _leave(context, given)
    if given.hook_event_name != "Stop":
        autostart.ensure_running(context.target.socket, context.target.data_dir)
    session = given.session_id or context.args.session or ""
    own = context.args.actor or ""
    if session and not own:
        # The host's MCP server finds this and so calls its agent by the same name.
        own = build_agent_name(
            HOST, Sessions(context.target.data_dir, find_host_process()).record(session, given.source)
        )
    if given.hook_event_name == "Stop":
        return _stop(context, session, own, given)
    return _prime(
        context, session, own, given.cwd, build_news if given.hook_event_name == "UserPromptSubmit" else build_briefing
    )


def _leave(context: Context, given: HookInput) -> int:
    """Let the session's agent leave. After `/clear` the same agent continues. Starts no daemon."""
    if given.session_id and given.reason != "clear":
        sessions = Sessions(context.target.data_dir, find_host_process())
        own = context.args.actor or build_agent_name(HOST, sessions.find_agent(hash_session(given.session_id)))
        wire.call(context.target, "agent.leave", {"agent": own})
    return 0


def _prime(  # noqa: PLR0913 - who asks, where, and what for
    context: Context, session: str, own: str, cwd: str, brief: Callable[[str, list[Any], list[Any]], str]
) -> int:
    name = _conversation(context, session, cwd)
    looks = ReadPositions(context.target.data_dir)
    looked = looks.load(session, name) if session else ReadPosition()
    epoch, changes, seq = _changes(context, name, looked) if session else ("", [], None)
    listed = context.call("task.list", conversation=name)
    if seq is None:
        seq = listed["seq"]
    others = [one for one in changes if not belongs_to_agent(one["actor"], own)]
    text = brief(listed.get("name", name), listed["tasks"], others)
    if text:
        context.lines([text])
    # What happened after the changes were read, or did not fit into one page, is told the next time.
    if session and (looked.epoch, looked.seq) != (epoch, seq):
        looks.save(session, name, ReadPosition(epoch, seq, looked.reminded))
    return 0


def _changes(context: Context, name: str, looked: ReadPosition) -> tuple[str, list[dict[str, Any]], int | None]:
    """Return the current epoch, and the list's events since the session last looked, with their end position.

    The position is None where only the list tells what is there.
    """
    if looked.seq is None:
        return context.call("daemon.status")["epoch"], [], None
    try:
        read = context.call("event.read", conversation=name, after=looked.seq, limit=_MAX_CHANGES, epoch=looked.epoch)
    except WrongEpoch as wrong:
        return wrong.expected or "", [], None
    return read["epoch"], read["events"], read["next"]


def _stop(context: Context, session: str, own: str, given: HookInput) -> int:
    if given.stop_hook_active or not session:
        return 0
    name = _conversation(context, session, given.cwd)
    looks = ReadPositions(context.target.data_dir)
    looked = looks.load(session, name)
    listed = context.call("task.list", conversation=name, status="in_progress")
    tasks = listed["tasks"]
    ours = [task for task in tasks if belongs_to_agent(task.get("owner", ""), own)]
    fresh = [task for task in ours if _stamp(task) not in looked.reminded]
    if not fresh:
        if not tasks:
            context.send("turn.end", {"conversation": name, "actor": own}, writes=True)
        return 0
    reminded = tuple(_stamp(task) for task in ours)
    looks.save(session, name, ReadPosition(looked.epoch, looked.seq, reminded))
    context.json({"decision": "block", "reason": build_reminder(listed.get("name", name), fresh)})
    return 0


def _stamp(task: dict[str, Any]) -> str:
    return f"{task['id']}@{task['status_changed_at']}"


def _conversation(context: Context, session: str, cwd: str) -> str:
    """The list that is meant: `-c`, the one that the session is attached to, and then as for all agents.

    A host's project counts before the directory `cwd` that its session happens to be in.

    Raises:
        DirectoryError: There is none.
    """
    if context.args.conversation:
        return str(context.args.conversation)
    if session and is_conversation_id(session):
        found: dict[str, Any] = context.call("conversation.get", conversation=session)["conversation"]
        if session in found.get("sessions", ()):
            return str(found["conversation"])
    named = project.of_directory(os.environ, project.host_directory(os.environ, cwd))
    if named is None:
        raise DirectoryError("There is no task list here", "run punch init in the project's directory")
    name, meant = named
    if not project.may_be_taken(meant, context.target.data_dir, context.find_used(name)):
        assert meant is not None, "a list that nothing named is never refused"
        raise project.not_allowed(meant)
    return name
