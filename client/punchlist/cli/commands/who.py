"""`punch who`: which agents and people work with the daemon, and the other machines of its spaces."""

from __future__ import annotations

import os
from time import time

from punchlist.cli.arguments import Usage
from punchlist.cli.context import Context
from punchlist.cli.render import cut
from punchlist.departures import ago
from punchlist.errors import Forbidden
from punchlist.text import safe
from punchlist.tree import with_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from punchlist.cli.style import Style

COMMANDS = {
    "who": Usage((), ("punch who", "punch who -c website", "punch who --json")),
}

_SILENT_MS = 60_000
"""A machine that keeps the connection to its space is heard of three times as often, in milliseconds."""
_PROGRAM = "punch"
"""Client name of a command; its actor is a parameter of its calls."""


def run_who(context: Context) -> int:
    """Show who is there or left lately, with what they do; with `-c` only those of this list."""
    wanted = context.known if context.args.conversation else None
    found = context.call("agent.list", conversation=wanted)["agents"]
    agents = [agent for agent in found if agent["name"] != _PROGRAM]
    machines = [] if wanted else _machines(context)
    style, now = context.style, int(time() * 1000)
    names = context.call("conversation.list", limit=1_000).get("names", {})
    lines = [line for agent in agents for line in _agent_lines(agent, names, style, now)]
    lines += [_machine_line(machine, style, now) for machine in machines]
    if not lines:
        lines = ["nobody has entered or called since the daemon started"]
    value = {"agents": agents, "machines": machines}
    return context.answer(value, [cut(line, style.width, style.glyphs["cut"]) for line in lines])


def _machines(context: Context) -> list[dict[str, Any]]:
    """Return the other machines of all spaces, with the name of the space."""
    from punchlist_schemas.things import machine_of

    try:
        spaces = context.call("space.list").get("spaces", ())
    except Forbidden:
        return []
    return [
        {"machine": machine_of(one["member"]), "space": space["space"], **one}
        for space in spaces
        for one in space.get("machines", ())
    ]


def _agent_lines(agent: dict[str, Any], names: dict[str, str], style: Style, now: int) -> Iterable[str]:
    left = agent.get("left_at")
    dot = f" {style.glyphs['dot']} "
    place = _home(str(agent.get("directory", "")))
    place += f" ({agent['branch']})" if agent.get("branch") else ""
    when = f"left {ago(left, now)} ago" if left else f"here for {ago(agent['since'], now)}"
    when = "" if left == agent["last_call"] else when  # who only calls neither comes nor leaves
    parts = [when, f"last call {ago(agent['last_call'], now)} ago", place]
    if not agent.get("tasks") and agent.get("conversation"):
        parts.append(_named(agent, names))
    glyph = style.glyphs["pending" if left else "in_progress"]
    yield f"{glyph} {safe(agent['name'])}  {safe(dot.join(part for part in parts if part))}"
    for task in agent.get("tasks", ()):
        title = with_path(task["title"], [one["title"] for one in task.get("path", ())])
        yield f"    {safe(_named(task, names))} #{safe(task['id'])} {safe(title)}"


def _named(one: dict[str, Any], names: dict[str, str]) -> str:
    """Return the name of the list of an agent or a task."""
    return names.get(one["conversation"]) or str(one["conversation"])


def _machine_line(machine: dict[str, Any], style: Style, now: int) -> str:
    seen, name = machine["seen_at"], safe(machine["machine"])
    is_silent = now - seen > _SILENT_MS
    when = f"not heard of for {ago(seen, now)}" if is_silent else f"last seen {ago(seen, now)} ago"
    glyph = style.glyphs["pending" if is_silent else "in_progress"]
    return f"{glyph} machine {name}  {when} {style.glyphs['dot']} space {safe(machine['space'])}"


def _home(path: str) -> str:
    home = os.path.expanduser("~")
    return path.replace(home, "~", 1) if path == home or path.startswith(f"{home}/") else path
