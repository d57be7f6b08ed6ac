"""`punch who`: show the daemon's agents and users, and the other machines in its spaces."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any

from punchlist.base.agents import NO_AGENTS, NO_AGENTS_IN_LIST, build_roster, drop_commands
from punchlist.base.departures import ago
from punchlist.base.text import safe
from punchlist.errors import Forbidden
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Usage
from punchlist_apps.common.terminal.render import truncate

if TYPE_CHECKING:
    from punchlist_apps.common.terminal.style import Style


COMMANDS = {
    "who": Usage((), ("punch who", "punch who -c website", "punch who --json")),
}

_SILENT_MS = 60_000
"""Time without a report after which a machine no longer counts as connected, in milliseconds. This is three reporting
intervals."""


def run_who(context: Context) -> int:
    """Show connected and recently departed agents with their tasks; with `-c`, only those of this list."""
    name = context.existing_conversation if context.args.conversation else None
    result = context.call("agent.list", conversation=name)
    machines = [] if name else _fetch_machines(context)
    style, now = context.style, int(time() * 1000)
    agents, others = build_roster(result, now)
    lines: list[str] = []
    for agent in agents:
        glyph = style.glyphs["in_progress" if agent.is_here else "pending"]
        lines += [
            f"{glyph} {safe(agent.name)}  {agent.details(style.glyphs['dot'])}",
            *(f"    {task.line}" for task in agent.tasks),
        ]
    lines += [others] if others else []
    lines += [_format_machine(machine, style, now) for machine in machines]
    lines = lines or [NO_AGENTS_IN_LIST if name else NO_AGENTS]
    value = {"agents": drop_commands(result), "machines": machines}
    return context.answer(value, [truncate(line, style.width, style.glyphs["cut"]) for line in lines])


def _fetch_machines(context: Context) -> list[dict[str, Any]]:
    from punchlist_schemas.things import machine_of

    try:
        spaces = context.call("space.list").get("spaces", ())
    except Forbidden:
        return []
    return [
        {"machine": machine_of(machine["member"]), "space": space["space"], **machine}
        for space in spaces
        for machine in space.get("machines", ())
    ]


def _format_machine(machine: dict[str, Any], style: Style, now: int) -> str:
    seen, name = machine["seen_at"], safe(machine["machine"])
    is_silent = now - seen > _SILENT_MS
    when = f"not heard of for {ago(seen, now)}" if is_silent else f"last seen {ago(seen, now)} ago"
    glyph = style.glyphs["pending" if is_silent else "in_progress"]
    return f"{glyph} machine {name}  {when} {style.glyphs['dot']} space {safe(machine['space'])}"
