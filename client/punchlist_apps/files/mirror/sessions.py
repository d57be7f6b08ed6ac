"""Which list a folder of Claude Code's tasks belongs to: the list of the project that its session worked in.

Below its configuration directory Claude Code keeps `tasks/LIST/N.json`, one file for each task. LIST is the value of
CLAUDE_CODE_TASK_LIST_ID, or the name of the session's team, or the session's id, with everything but letters, digits,
`_` and `-` made a `-`. What a session is about stands in `projects/DIRECTORY/SESSION.jsonl`, whose lines have a member
`cwd`, and in `teams/TEAM/config.json`, with `leadSessionId` and for each of `members` a `cwd`. When a session founds a
team, its folder of tasks is renamed to the team's. (Claude Code 2.1.197.)
"""

import json
import os
import re
from typing import Any, NamedTuple, cast

from punchlist_schemas import directory
from punchlist_schemas.directory import OUTSIDE, DirectoryList
from punchlist_schemas.project_file import DirectoryError, is_conversation_id

_HEAD = 1 << 18
"""So many bytes of a transcript are looked through for a `cwd`."""

_TEAM_OF_SESSION = re.compile(r"session-([0-9a-f]{8})\Z")


class Session(NamedTuple):
    """Whose tasks are in a folder.

    Attributes:
        key: The session's id, or the name of the folder if nothing else is known.
        cwd: The directory that the session works in, if known.
    """

    key: str
    cwd: str | None


def session_of(config_dir: str, folder: str) -> Session:
    """The session that a task folder belongs to, as far as Claude Code's files say."""
    if transcript := _transcript(config_dir, folder):
        return Session(folder, _cwd_in(transcript))
    team = _team(config_dir, folder)
    lead = team.get("leadSessionId")
    found = _TEAM_OF_SESSION.match(folder)
    if isinstance(lead, str) and (transcript := _transcript(config_dir, lead)):
        return Session(lead, _cwd_in(transcript))
    if found and (transcript := _transcript(config_dir, found[1], is_prefix=True)):
        return Session(os.path.basename(transcript).removesuffix(".jsonl"), _cwd_in(transcript))
    members = team.get("members")
    for member in cast("list[Any]", members) if isinstance(members, list) else ():
        cwd = cast("dict[str, Any]", member).get("cwd") if isinstance(member, dict) else None
        if isinstance(cwd, str):
            return Session(folder, cwd)
    return Session(folder, None)


def project_of(cwd: str | None) -> DirectoryList | None:
    """The list that a session's directory means, even after that directory was removed; None if it means none."""
    while cwd and os.path.isabs(cwd) and not os.path.isdir(cwd):
        cwd = os.path.dirname(cwd)
    try:
        return directory.find_list(cwd) if cwd and os.path.isabs(cwd) else None
    except DirectoryError:
        return None


def own_list(folder: str) -> str:
    """The list of a folder without a project: it is named after the folder."""
    return folder if is_conversation_id(folder) and folder != OUTSIDE else f"claude-{folder}"[:128]


def _transcript(config_dir: str, session: str, *, is_prefix: bool = False) -> str | None:
    """The path of a session's transcript; with `is_prefix` an id that begins so, if only one does."""
    projects = os.path.join(config_dir, "projects")
    try:
        folders = [os.path.join(projects, name) for name in os.listdir(projects)]
    except OSError:
        return None
    if not is_prefix:
        paths = [os.path.join(folder, f"{session}.jsonl") for folder in folders]
        return next((path for path in paths if os.path.isfile(path)), None)
    found: list[str] = []
    for folder in filter(os.path.isdir, folders):
        names = [name for name in os.listdir(folder) if name.startswith(session) and name.endswith(".jsonl")]
        found += [os.path.join(folder, name) for name in names]
    return found[0] if len(found) == 1 else None


def _cwd_in(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            lines = file.read(_HEAD).split(b"\n")
    except OSError:
        return None
    for line in lines:
        cwd = _object(line).get("cwd")
        if isinstance(cwd, str):
            return cwd
    return None


def _team(config_dir: str, folder: str) -> dict[str, Any]:
    try:
        with open(os.path.join(config_dir, "teams", folder, "config.json"), "rb") as file:
            return _object(file.read(_HEAD))
    except OSError:
        return {}


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
