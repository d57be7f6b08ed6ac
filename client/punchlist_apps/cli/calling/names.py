"""Which agents and people a name means, as people write it.

`ann` and `claude-code/7f3c1a` are exact. `claude-code` is all sessions of this host, `claude-code/7f` the only one with
this prefix, and `#3` the agent that has task 3. The wire gets exact names.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

from punchlist.base.text import task_id
from punchlist_apps.cli.calling.context import Context, default_actor
from punchlist_apps.cli.printing.failure import UnknownList, UnknownName

Ask = Callable[[str, dict[str, Any]], dict[str, Any] | None]


RECENT = 5_000
"""Number of newest events whose actors count as known names."""


def resolve_names(context: Context, given: str) -> list[str]:
    """Return the exact names that a text means in the list of this run."""
    if given.startswith("#"):
        return [find_task_owner(given, context.read("task.list", fields=["owner"])["tasks"])]
    known = [default_actor(os.environ), *find_names(context.send, context.existing_conversation)]
    try:
        return match_names(given, known)
    except UnknownName as error:
        if error.is_ambiguous:
            raise
        from punchlist_apps.cli.calling.events import read_events

        return match_names(given, [*known, *(recorded["actor"] for recorded in read_events(context))])


def resolve_new_name(context: Context, given: str) -> str:
    """Return the name that a text means, which may be one that the list has not seen yet."""
    if "#" not in given[:1] and "/" not in given:
        return given
    try:
        return min(resolve_names(context, given), key=len)  # an agent rather than one of its sub-agents
    except UnknownList:
        return given
    except UnknownName as error:
        if given.startswith("#") or error.is_ambiguous:
            raise
        return given


def is_known_name(context: Context, name: str) -> bool:
    """Return whether the list knows an actor of this name or host."""
    known = [default_actor(os.environ), *find_names(context.send, context.existing_conversation)]
    return any(one == name or one.startswith(f"{name}/") for one in known)


def find_names(ask: Ask, conversation: str) -> list[str]:
    """Return the names in a list: owners of tasks, who watches it, connected agents, and actors of recent events."""
    listed = ask("task.list", {"conversation": conversation, "fields": ["owner"]}) or {}
    names = [task.get("owner", "") for task in listed.get("tasks", ())]
    present = ask("conversation.presence", {"conversation": conversation}) or {}
    names += [one.get("actor", "") for one in present.get("present", ())]
    agents = ask("agent.list", {}) or {}
    names += [one["name"] for one in agents.get("agents", ()) if one.get("host")]
    after = max(0, listed.get("seq", 0) - RECENT)
    events = ask("event.read", {"conversation": conversation, "after": after, "limit": RECENT}) or {}
    names += [recorded.get("actor", "") for recorded in reversed(events.get("events", ()))]
    return [name for name in dict.fromkeys(names) if name]


def match_names(given: str, names: Iterable[str]) -> list[str]:
    """Return the names that are meant; several only where they are all of one host's sessions."""
    known = list(dict.fromkeys(names))
    if "/" in given:
        found = [given] if given in known else [name for name in known if name.startswith(given)]
        agents = {"/".join(name.split("/")[:2]) for name in found}
    else:
        found = [name for name in known if name == given or name.startswith(f"{given}/")]
        found = found or [name for name in known if name.startswith(given)]
        agents = {name.split("/")[0] for name in found}
    if given and len(agents) == 1:
        return found
    is_ambiguous = bool(given and found)
    what = f"several names begin with {given!r}" if is_ambiguous else f"nobody is called {given!r}"
    names = found if is_ambiguous else _sort_by_similarity(given, known)
    raise UnknownName(f"{what} in this list", names, is_ambiguous=is_ambiguous)


def find_task_owner(given: str, tasks: Iterable[dict[str, Any]]) -> str:
    """Return the owner of the task that a text such as `#3` names."""
    by_id = {task["id"]: task.get("owner", "") for task in tasks}
    if owner := by_id.get(task_id(given), ""):
        return owner
    raise UnknownName(f"nobody has task {given}", list(dict.fromkeys(filter(None, by_id.values()))))


def _sort_by_similarity(given: str, names: list[str]) -> list[str]:
    from difflib import SequenceMatcher

    def likeness(name: str) -> float:
        return max(
            SequenceMatcher(None, given.casefold(), part.casefold()).ratio() for part in (name, *name.split("/"))
        )

    return sorted(names, key=likeness, reverse=True)
