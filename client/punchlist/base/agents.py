"""Texts about agents and people, for every application.

Works on the plain JSON values of `agent.list`, and is light enough for a shell prompt.
"""

import os
from typing import Any, NamedTuple

from punchlist.base.departures import ago, free_at
from punchlist.base.text import safe
from punchlist.base.tree import with_path

_PROGRAM = "punch"
"""Client name of a command; its actor is a parameter of its calls."""

_ANYWHERE = ("name", "pid", "since", "last_call", "left_at")
"""Members of an agent that are shown for any list."""

NO_AGENTS = "no agent or person has been here since the daemon started"
NO_AGENTS_IN_LIST = "no agent or person works in this list"


class HeldTask(NamedTuple):
    """A task that an agent holds: the id and short name of its list, its id, and its title after its parents'.

    Attributes:
        lease_expires_at: When it is free, in milliseconds; None while its owner is there.
    """

    conversation: str
    list: str
    id: str
    title: str
    lease_expires_at: int | None

    @property
    def line(self) -> str:
        free = f"  {free_at(self.lease_expires_at)}" if self.lease_expires_at else ""
        return safe(f"{self.list} #{self.id} {self.title}{free}")


class Participant(NamedTuple):
    """An agent or a person.

    Attributes:
        name: The full name.
        is_here: Whether a connection of it is open.
        facts: When it came or left, its last call, its directory and branch, and its list if it has no task.
        tasks: What it has claimed.
    """

    name: str
    is_here: bool
    facts: list[str]
    tasks: list[HeldTask]

    def details(self, dot: str) -> str:
        return safe(f" {dot} ".join(self.facts))


class Roster(NamedTuple):
    """Connected agents, then those that left with tasks. `others` counts in words those that left without."""

    agents: list[Participant]
    others: str


def build_roster(found: "dict[str, Any]", now: int) -> Roster:
    agents = drop_commands(found)
    gone = [agent for agent in agents if _left_at(agent) and not agent.get("tasks")]
    names = found.get("names", {})
    others = f"{len(gone)} {'other' if len(gone) == 1 else 'others'} left in the last hours" if gone else ""
    return Roster([_build_participant(agent, names, now) for agent in agents if agent not in gone], others)


def drop_commands(found: "dict[str, Any]") -> "list[dict[str, Any]]":
    return [agent for agent in found["agents"] if agent["name"] != _PROGRAM]


def filter_for_list(found: "dict[str, Any]", conversation: str) -> "dict[str, Any]":
    """Reduce a result of `agent.list` to what a link for one list may show.

    It keeps the agents that work in this list, without directories and without other lists and their tasks.

    Args:
        found: The result.
        conversation: The list as the link names it: its id or its short name.
    """
    ids = {conversation, *(id for id, name in found.get("names", {}).items() if name == conversation)}
    agents: list[dict[str, Any]] = []
    for agent in found["agents"]:
        tasks = [
            task | {"conversation": conversation} for task in agent.get("tasks", ()) if task["conversation"] in ids
        ]
        if tasks or agent.get("conversation") in ids:
            known = {name: agent[name] for name in _ANYWHERE if name in agent}
            agents.append({**known, "conversation": conversation, "tasks": tasks})
    return {"agents": agents}


def _left_at(agent: "dict[str, Any]") -> "int | None":
    return agent.get("left_at") if agent.get("pid") else None


def _build_participant(agent: "dict[str, Any]", names: "dict[str, str]", now: int) -> Participant:
    left, tasks = _left_at(agent), agent.get("tasks", ())
    is_here = not agent.get("left_at")
    place = _abbreviate_home(agent.get("directory", ""))
    place += f" ({agent['branch']})" if agent.get("branch") else ""
    when = f"left {ago(left, now)} ago" if left else f"here for {ago(agent['since'], now)}" if is_here else ""
    facts = [when, f"last call {ago(agent['last_call'], now)} ago", place]
    if not tasks and agent.get("conversation"):
        facts.append(_list_name(agent, names))
    return Participant(
        agent["name"], is_here, [fact for fact in facts if fact], [_build_held_task(task, names) for task in tasks]
    )


def _build_held_task(task: "dict[str, Any]", names: "dict[str, str]") -> HeldTask:
    title = with_path(task["title"], [one["title"] for one in task.get("path", ())])
    return HeldTask(task["conversation"], _list_name(task, names), task["id"], title, task.get("lease_expires_at"))


def _list_name(one: "dict[str, Any]", names: "dict[str, str]") -> str:
    return names.get(one["conversation"]) or str(one["conversation"])


def _abbreviate_home(path: str) -> str:
    home = os.path.expanduser("~")
    return path.replace(home, "~", 1) if path == home or path.startswith(f"{home}/") else path
