"""`punch agent statusline`: one line about a session's list, for the status line of Claude Code.

Standard input is JSON with the id and the directories of a session (https://code.claude.com/docs/en/statusline). Each
update of the screen waits for this command. Therefore it starts no daemon, gives up early, and after a failure prints
nothing and exits with code 0.
"""

import os
import sys
from typing import Any

import msgspec

from punchlist.base import project
from punchlist.base.actors import belongs_to_agent
from punchlist.base.text import safe
from punchlist.connection.launch import HOOK_CHECK_AFTER_S
from punchlist.errors import PunchlistError
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.host_input import read_host_input
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_apps.cli.parsing.arguments import Usage
from punchlist_apps.common import plain_json
from punchlist_apps.common.process import find_pid
from punchlist_apps.common.terminal.render import format_progress, truncate
from punchlist_apps.hosts.sessions import Sessions, build_agent_name, find_host_process, hash_session
from punchlist_schemas.project_file import DirectoryError, is_conversation_id

COMMANDS = {"statusline": Usage((), ("punch agent statusline",))}

_HOST = "claude-code"
"""The prefix of its agents' names."""

_STDIN_S = 0.5
_TITLE_COLUMNS = 40


class _Workspace(msgspec.Struct, frozen=True):
    project_dir: str = ""
    current_dir: str = ""


class _Input(msgspec.Struct, frozen=True):
    session_id: str = ""
    cwd: str = ""
    workspace: _Workspace = _Workspace()


def run_statusline(context: Context) -> int:
    """Print progress, the session's own task and the number of ready tasks; nothing if the list isn't used."""
    given = plain_json.read(b"" if sys.stdin.isatty() else read_host_input(_STDIN_S), _Input)
    try:
        with Caller(context.target.with_autostart(False), name="punch", timeout_s=HOOK_CHECK_AFTER_S) as caller:
            caller.open()
            if not (name := _find_list(context, caller, given)):
                return 0
            query = {"conversation": name, "status": "in_progress", "fields": ["title", "owner"]}
            result: dict[str, Any] = caller.call("task.list", query)
        agent = context.args.actor or _find_agent(context.target.data_dir, given.session_id)
    except (PunchlistError, DirectoryError, OSError):
        return 0
    counts = result["counts"]
    parts = [format_progress(counts)]
    parts += [
        f"#{safe(task['id'])} {truncate(safe(task['title']), _TITLE_COLUMNS)}"
        for task in result["tasks"]
        if belongs_to_agent(task.get("owner", ""), agent)
    ][:1]
    parts += [f"{counts['ready']} ready"] if counts.get("ready") else []
    return context.answer(counts, [" · ".join(parts)] if result["version"] else [])


def _find_list(context: Context, caller: Caller, given: _Input) -> str:
    """Return the list named by `-c`, else the session's, else the project's; empty if there is none to show."""
    if context.args.conversation:
        return str(context.args.conversation)
    if is_conversation_id(given.session_id):
        card = caller.call("conversation.get", {"conversation": given.session_id})["conversation"]
        if given.session_id in card.get("sessions", ()):
            return str(card["conversation"])
    place = given.workspace.project_dir or given.workspace.current_dir or given.cwd
    match = project.of_directory(os.environ, project.host_directory(os.environ, place))
    name, meant = match or ("", None)
    if meant is not None:
        card = caller.call("conversation.get", {"conversation": name})["conversation"]
        if not meant.may_use(context.target.data_dir, card["conversation"] if card["version"] else None):
            return ""
    return name


def _find_agent(data_dir: str, session: str) -> str:
    return build_agent_name(_HOST, Sessions(data_dir, find_host_process(find_pid())).find_agent(hash_session(session)))
