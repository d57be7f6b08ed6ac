"""`punch why`: what keeps a task from being started, as a short tree."""

from typing import Any

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context, one_id
from punchlist_apps.cli.parsing.arguments import TASK, Usage
from punchlist_apps.common.terminal.reasons import explain_reasons
from punchlist_apps.common.terminal.render import format_path_title, truncate

COMMANDS = {
    "why": Usage((TASK,), ("punch why 3",)),
}

_MOST_LINES = 40


def run_why(context: Context) -> int:
    wanted = one_id(str(context.args.task))
    told: dict[str, Any] = context.ask("task.explain", task=wanted, owner=context.owner)
    style = context.style
    tree = explain_reasons(told, style)
    lines = [f"#{safe(wanted)} {format_path_title(told['task'], told.get('path', ()))}"]
    lines += [f"{'  ' * (depth + 1)}{style.glyphs['arrow']} {text}" for depth, text in tree[:_MOST_LINES]]
    if (more := told.get("more", 0) + len(tree) - _MOST_LINES) > 0:
        lines.append(f"  {style.glyphs['cut']} {more} more")
    value = {"task": wanted, "ready": told["ready"], "reasons": [{"depth": d, "text": t} for d, t in tree]}
    return context.answer(value, [truncate(line, style.width, style.glyphs["cut"]) for line in lines])
