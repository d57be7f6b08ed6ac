"""Finds the list for a folder of Claude Code's tasks: the list of the project in which the folder's session works.

Claude Code's configuration directory has `tasks/LIST/N.json`, one file for each task. LIST is the value of
CLAUDE_CODE_TASK_LIST_ID, or the name of the session's team, or the session's id, with all characters but letters,
digits, `_` and `-` replaced by `-`. The session's directory is in `projects/DIRECTORY/SESSION.jsonl`, whose lines have
a member `cwd`, and in `teams/TEAM/config.json`, with `leadSessionId` and a `cwd` for each of `members`. When a session
creates a team, its task folder is renamed to the team's name. (Claude Code 2.1.197.)
"""

import json
import os
import re
from typing import Any, NamedTuple, cast

from punchlist_schemas import directory
from punchlist_schemas.directory import OUTSIDE, DirectoryList
from punchlist_schemas.project_file import DirectoryError, is_conversation_id

_HEAD_BYTES = 1 << 18
"""Number of bytes at the start of a transcript that are searched for a `cwd`."""

_TEAM_OF_SESSION = re.compile(r"session-([0-9a-f]{8})\Z")


class Session(NamedTuple):
    """The session that a task folder belongs to.

    Attributes:
        key: The session's id, or the name of the folder if the id is unknown.
        cwd: The directory that the session works in, if known.
    """

    key: str
    cwd: str | None


def find_session(config_dir: str, folder: str) -> Session:
    """Find the session of a task folder in Claude Code's files."""
    if transcript := _find_transcript(config_dir, folder):
        return Session(folder, _read_cwd(transcript))
    team = _read_team(config_dir, folder)
    lead = team.get("leadSessionId")
    match = _TEAM_OF_SESSION.match(folder)
    if isinstance(lead, str) and (transcript := _find_transcript(config_dir, lead)):
        return Session(lead, _read_cwd(transcript))
    if match and (transcript := _find_transcript(config_dir, match[1], is_prefix=True)):
        return Session(os.path.basename(transcript).removesuffix(".jsonl"), _read_cwd(transcript))
    members = team.get("members")
    for member in cast("list[Any]", members) if isinstance(members, list) else ():
        cwd = cast("dict[str, Any]", member).get("cwd") if isinstance(member, dict) else None
        if isinstance(cwd, str):
            return Session(folder, cwd)
    return Session(folder, None)


def find_project(cwd: str | None) -> DirectoryList | None:
    """Return the list that a directory, or its nearest existing ancestor, maps to; None if there isn't one."""
    while cwd and os.path.isabs(cwd) and not os.path.isdir(cwd):
        cwd = os.path.dirname(cwd)
    try:
        return directory.find_list(cwd) if cwd and os.path.isabs(cwd) else None
    except DirectoryError:
        return None


def build_list_name(folder: str) -> str:
    """Return the name of the list for a folder without a project."""
    return folder if is_conversation_id(folder) and folder != OUTSIDE else f"claude-{folder}"[:128]


def _find_transcript(config_dir: str, session: str, *, is_prefix: bool = False) -> str | None:
    """Return the path of a session's transcript. With `is_prefix`, `session` must be the prefix of exactly one id."""
    projects = os.path.join(config_dir, "projects")
    try:
        folders = [os.path.join(projects, name) for name in os.listdir(projects)]
    except OSError:
        return None
    if not is_prefix:
        paths = [os.path.join(folder, f"{session}.jsonl") for folder in folders]
        return next((path for path in paths if os.path.isfile(path)), None)
    paths: list[str] = []
    for folder in filter(os.path.isdir, folders):
        names = [name for name in os.listdir(folder) if name.startswith(session) and name.endswith(".jsonl")]
        paths += [os.path.join(folder, name) for name in names]
    return paths[0] if len(paths) == 1 else None


def _read_cwd(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            lines = file.read(_HEAD_BYTES).split(b"\n")
    except OSError:
        return None
    for line in lines:
        cwd = _parse_object(line).get("cwd")
        if isinstance(cwd, str):
            return cwd
    return None


def _read_team(config_dir: str, folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(config_dir, "teams", folder, "config.json"), "rb") as file:
            return _parse_object(file.read(_HEAD_BYTES))
    except OSError:
        return {}


def _parse_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
