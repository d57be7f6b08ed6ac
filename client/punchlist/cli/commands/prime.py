"""`punch prime`: what a host's hook puts into the model's context, and the reminder when an agent stops.

With `--hook` the event comes as JSON on standard input, as Claude Code sends it
(https://code.claude.com/docs/en/hooks): `session_id`, `hook_event_name`, and for Stop `stop_hook_active`. What
SessionStart and UserPromptSubmit hooks print is added to the context; a Stop hook that prints
`{"decision": "block", "reason": …}` makes the agent go on. A hook never stands in the way: whatever fails ends with
code 0 and a line on standard error.
"""

import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from punchlist import project
from punchlist.calls import ClientCalls
from punchlist.cli.context import Context
from punchlist.conversation_calls import ConversationCalls
from punchlist.cursor import Change, TaskList
from punchlist.errors import PunchlistError, WrongEpoch
from punchlist.hosts.briefing import briefing, news, reminder
from punchlist.hosts.looked import Looked, Looks
from punchlist.hosts.sessions import Sessions, agent_name, host_process
from punchlist.mirror import autostart
from punchlist.text import safe_block
from punchlist_schemas.project_file import DirectoryError, is_conversation_id
from punchlist_schemas.things import Task

HOST = "claude-code"
"""The name by which the host's MCP client introduces itself, and so the beginning of its agents' names."""

_MAX_STDIN = 1 << 20
_MAX_CHANGES = 1_000


class HookInput(msgspec.Struct, frozen=True):
    """What we use of a hook's input."""

    session_id: str = ""
    hook_event_name: str = "SessionStart"
    stop_hook_active: bool = False
    cwd: str = ""
    source: str = ""


def run_prime(context: Context) -> int:
    """Print open tasks and what changed since; nothing when there is nothing to say."""
    if context.args.hook:
        try:
            return _run_hook(context, _hook_input())
        except (PunchlistError, DirectoryError, OSError) as error:
            context.note(f"punchlist: {safe_block(str(error)).splitlines()[0]}")
            return 0
    return _prime(context, context.args.session or "", context.args.actor or "", "", briefing)


def _hook_input() -> HookInput:
    try:
        return msgspec.json.decode(sys.stdin.buffer.read(_MAX_STDIN), type=HookInput)
    except (msgspec.MsgspecError, UnicodeError):
        return HookInput()


def _run_hook(context: Context, given: HookInput) -> int:
    if given.hook_event_name != "Stop":
        autostart.ensure(context.target.socket, context.target.data_dir)
    session = given.session_id or context.args.session or ""
    own = context.args.actor or ""
    if session and not own:
        # The host's MCP server finds this and so calls its agent by the same name.
        own = agent_name(HOST, Sessions(context.target.data_dir, host_process()).note(session, given.source))
    if given.hook_event_name == "Stop":
        return _stop(context, session, own, given)
    return _prime(context, session, own, given.cwd, news if given.hook_event_name == "UserPromptSubmit" else briefing)


def _prime(  # noqa: PLR0913 - who asks, where, and what for
    context: Context, session: str, own: str, cwd: str, tell: Callable[[str, TaskList, list[Change]], str]
) -> int:
    name = _conversation(context, session, cwd)
    looks = Looks(context.target.data_dir)
    looked = looks.of(session, name) if session else Looked()
    epoch = context.caller.open().epoch
    # Changes are read before the list: what happens in between is then shown with the list and told once more.
    changes = [one for one in _changes(context, name, looked, epoch) if not _is_own(one.actor, own)]
    tasks = context.caller.run(ConversationCalls(name).list())
    text = tell(name, tasks, changes)
    if text:
        context.lines([text])
    if session and (looked.epoch, looked.seq) != (epoch, tasks.seq):
        looks.save(session, name, msgspec.structs.replace(looked, epoch=epoch, seq=tasks.seq))
    return 0


def _changes(context: Context, name: str, looked: Looked, epoch: str) -> list[Change]:
    if looked.seq is None or looked.epoch != epoch:
        return []
    try:
        return context.caller.run(ClientCalls().read(looked.seq, name, limit=_MAX_CHANGES, epoch=epoch))
    except WrongEpoch:
        return []


def _stop(context: Context, session: str, own: str, given: HookInput) -> int:
    if given.stop_hook_active or not session:
        return 0
    name = _conversation(context, session, given.cwd)
    looks = Looks(context.target.data_dir)
    looked = looks.of(session, name)
    tasks = context.caller.run(ConversationCalls(name).list(status="in_progress"))
    ours = [task for task in tasks if _is_own(task.owner, own)]
    fresh = [task for task in ours if _mark(task) not in looked.reminded]
    if not fresh:
        if not tasks:
            context.client.conversation(name, actor=own).end_turn()
        return 0
    reminded = tuple(_mark(task) for task in ours)
    looks.save(session, name, msgspec.structs.replace(looked, reminded=reminded))
    context.json({"decision": "block", "reason": reminder(name, fresh)})
    return 0


def _is_own(actor: str, own: str) -> bool:
    """Whether somebody is this session's agent or one of its sub-agents."""
    return bool(own) and (actor == own or actor.startswith(f"{own}/"))


def _mark(task: Task) -> str:
    return f"{task.id}@{task.status_changed_at}"


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
    if not project.may_be_taken(meant, context.target.data_dir, context.version_of(name)):
        assert meant is not None, "a list that nothing named is never refused"
        raise project.not_allowed(meant)
    return name
