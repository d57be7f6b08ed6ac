"""Text about connected agents and people, for all applications.

Works on the plain JSON values of `agent.list`. Imports little, because shell prompts load this module.
"""

import os
from typing import Any, NamedTuple

from punchlist.base.departures import ago, free_at
from punchlist.base.text import safe
from punchlist.base.tree import with_path

_PROGRAM = "punch"
"""Client name of the command line, whose actor is a parameter of its calls."""

_PUBLIC_MEMBERS = ("name", "pid", "since", "last_call", "left_at")
"""Members of an agent's JSON that viewers of a single list may see."""

NO_AGENTS = "no agent or person has been here since the daemon started"
NO_AGENTS_IN_LIST = "no agent or person works in this list"


class HeldTask(NamedTuple):
    """A task claimed by an agent.

    Attributes:
        conversation: Id of its list.
        list: Short name of its list.
        title: Its title, preceded by those of its parents.
        lease_expires_at: When the claim expires, in milliseconds since 1970 UTC; None while its owner is connected.
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
        name: Full name.
        is_here: Whether it has an open connection.
        facts: Text for display: when it arrived or left, its last call, its directory and branch, its host unless the
            name begins with it, and its list if it has no task.
        tasks: Tasks that it has claimed.
    """

    name: str
    is_here: bool
    facts: list[str]
    tasks: list[HeldTask]

    def details(self, dot: str) -> str:
        return safe(f" {dot} ".join(self.facts))


class Roster(NamedTuple):
    """The agents and people to show.

    Attributes:
        agents: Connected agents and people, then those that left with claimed tasks.
        others: Text with the number of agents that left without tasks.
    """

    agents: list[Participant]
    others: str


def build_roster(result: "dict[str, Any]", now: int) -> Roster:
    agents = drop_commands(result)
    gone = [agent for agent in agents if _left_at(agent) and not agent.get("tasks")]
    names = result.get("names", {})
    others = f"{len(gone)} {'other' if len(gone) == 1 else 'others'} left in the last hours" if gone else ""
    return Roster([_build_participant(agent, names, now) for agent in agents if agent not in gone], others)


def drop_commands(result: "dict[str, Any]") -> "list[dict[str, Any]]":
    return [agent for agent in result["agents"] if agent["name"] != _PROGRAM]


def filter_for_list(result: "dict[str, Any]", conversation: str) -> "dict[str, Any]":
    """Reduce a result of `agent.list` to the data that viewers of one list may see.

    Keeps the agents that work in this list. Removes their directories, their other lists and the tasks in those.

    Args:
        result: The result.
        conversation: Id or short name of the list. The result contains this id or name unchanged.
    """
    ids = {conversation, *(id for id, name in result.get("names", {}).items() if name == conversation)}
    agents: list[dict[str, Any]] = []
    for agent in result["agents"]:
        tasks = [
            task | {"conversation": conversation} for task in agent.get("tasks", ()) if task["conversation"] in ids
        ]
        if tasks or agent.get("conversation") in ids:
            public = {name: agent[name] for name in _PUBLIC_MEMBERS if name in agent}
            agents.append({**public, "conversation": conversation, "tasks": tasks})
    return {"agents": agents}


def _left_at(agent: "dict[str, Any]") -> "int | None":
    return agent.get("left_at") if agent.get("pid") else None


def _build_participant(agent: "dict[str, Any]", names: "dict[str, str]", now: int) -> Participant:
    left, tasks = _left_at(agent), agent.get("tasks", ())
    is_here = not agent.get("left_at")
    place = _abbreviate_home(agent.get("directory", ""))
    place += f" ({agent['branch']})" if agent.get("branch") else ""
    when = f"left {ago(left, now)} ago" if left else f"here for {ago(agent['since'], now)}" if is_here else ""
    host = "" if agent["name"].startswith(agent.get("host", "")) else agent["host"]
    facts = [when, f"last call {ago(agent['last_call'], now)} ago", place, host]
    if not tasks and agent.get("conversation"):
        facts.append(_list_name(agent, names))
    return Participant(
        agent["name"], is_here, [fact for fact in facts if fact], [_build_held_task(task, names) for task in tasks]
    )


def _build_held_task(task: "dict[str, Any]", names: "dict[str, str]") -> HeldTask:
    title = with_path(task["title"], [parent["title"] for parent in task.get("path", ())])
    return HeldTask(task["conversation"], _list_name(task, names), task["id"], title, task.get("lease_expires_at"))


def _list_name(item: "dict[str, Any]", names: "dict[str, str]") -> str:
    return names.get(item["conversation"]) or str(item["conversation"])


def _abbreviate_home(path: str) -> str:
    home = os.path.expanduser("~")
    return path.replace(home, "~", 1) if path == home or path.startswith(f"{home}/") else path
