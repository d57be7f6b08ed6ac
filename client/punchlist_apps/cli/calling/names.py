"""Resolves names of agents and people, as typed by users, to exact names for calls.

`ann` and `claude-code/7f3c1a` are exact. `claude-code` means all sessions of this host, `claude-code/7f` the only
session with this prefix, and `#3` the owner of task 3.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

from punchlist.base.text import task_id
from punchlist_apps.cli.calling.context import Context, default_actor
from punchlist_apps.cli.printing.failure import UnknownList, UnknownName

Call = Callable[[str, dict[str, Any]], dict[str, Any] | None]
"""Calls a method and returns its result; None without a daemon."""


RECENT = 5_000
"""Number of recent events whose actors count as known names."""


def resolve_names(context: Context, text: str) -> list[str]:
    """Return the exact names that `text` stands for in this command's list."""
    if text.startswith("#"):
        return [find_task_owner(text, context.read("task.list", fields=["owner"])["tasks"])]
    names = [default_actor(os.environ), *find_names(context.send, context.existing_conversation)]
    try:
        return match_names(text, names)
    except UnknownName as error:
        if error.is_ambiguous:
            raise
        from punchlist_apps.cli.calling.events import read_events

        return match_names(text, [*names, *(event["actor"] for event in read_events(context))])


def resolve_new_name(context: Context, text: str) -> str:
    """Return the exact name that `text` stands for, or `text` itself if the list has no such name yet."""
    if "#" not in text[:1] and "/" not in text:
        return text
    try:
        return min(resolve_names(context, text), key=len)  # an agent rather than one of its sub-agents
    except UnknownList:
        return text
    except UnknownName as error:
        if text.startswith("#") or error.is_ambiguous:
            raise
        return text


def is_known_name(context: Context, name: str) -> bool:
    """Return whether the list has an actor with this name or host."""
    names = [default_actor(os.environ), *find_names(context.send, context.existing_conversation)]
    return any(actor == name or actor.startswith(f"{name}/") for actor in names)


def find_names(call: Call, conversation: str) -> list[str]:
    """Return the names in a list: task owners, watchers, connected agents, and actors of recent events."""
    listing = call("task.list", {"conversation": conversation, "fields": ["owner"]}) or {}
    names = [task.get("owner", "") for task in listing.get("tasks", ())]
    presence = call("conversation.presence", {"conversation": conversation}) or {}
    names += [watcher.get("actor", "") for watcher in presence.get("present", ())]
    agents = call("agent.list", {}) or {}
    names += [agent["name"] for agent in agents.get("agents", ()) if agent.get("host")]
    after = max(0, listing.get("seq", 0) - RECENT)
    page = call("event.read", {"conversation": conversation, "after": after, "limit": RECENT}) or {}
    names += [event.get("actor", "") for event in reversed(page.get("events", ()))]
    return [name for name in dict.fromkeys(names) if name]


def match_names(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that `text` stands for. More than one name is returned only if all are sessions of one host.

    Raises:
        UnknownName: No name matches, or the names of several agents match.
    """
    candidates = list(dict.fromkeys(names))
    if "/" in text:
        matches = [text] if text in candidates else [name for name in candidates if name.startswith(text)]
        agents = {"/".join(name.split("/")[:2]) for name in matches}
    else:
        matches = [name for name in candidates if name == text or name.startswith(f"{text}/")]
        matches = matches or [name for name in candidates if name.startswith(text)]
        agents = {name.split("/")[0] for name in matches}
    if text and len(agents) == 1:
        return matches
    is_ambiguous = bool(text and matches)
    problem = f"several names begin with {text!r}" if is_ambiguous else f"no agent or person named {text!r}"
    suggestions = matches if is_ambiguous else _sort_by_similarity(text, candidates)
    raise UnknownName(f"{problem} in this list", suggestions, is_ambiguous=is_ambiguous)


def find_task_owner(text: str, tasks: Iterable[dict[str, Any]]) -> str:
    """Return the owner of the task that `text`, such as `#3`, names."""
    owners = {task["id"]: task.get("owner", "") for task in tasks}
    if owner := owners.get(task_id(text), ""):
        return owner
    raise UnknownName(f"task {text} has no owner", list(dict.fromkeys(filter(None, owners.values()))))


def _sort_by_similarity(text: str, names: list[str]) -> list[str]:
    from difflib import SequenceMatcher

    def similarity(name: str) -> float:
        return max(SequenceMatcher(None, text.casefold(), part.casefold()).ratio() for part in (name, *name.split("/")))

    return sorted(names, key=similarity, reverse=True)
