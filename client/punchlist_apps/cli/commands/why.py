"""`punch why`: show why a task can't be started, as a short tree."""

from typing import Any

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context, parse_task_id
from punchlist_apps.cli.parsing.arguments import TASK, Usage
from punchlist_apps.common.terminal.reasons import explain_reasons
from punchlist_apps.common.terminal.render import format_path_title, truncate

COMMANDS = {
    "why": Usage((TASK,), ("punch why 3",)),
}

_MAX_LINES = 40


def run_why(context: Context) -> int:
    task = parse_task_id(str(context.args.task))
    result: dict[str, Any] = context.read("task.explain", task=task, owner=context.owner)
    style = context.style
    tree = explain_reasons(result, style)
    lines = [f"#{safe(task)} {format_path_title(result['task'], result.get('path', ()))}"]
    lines += [f"{'  ' * (depth + 1)}{style.glyphs['arrow']} {text}" for depth, text in tree[:_MAX_LINES]]
    if (more := result.get("more", 0) + len(tree) - _MAX_LINES) > 0:
        lines.append(f"  {style.glyphs['cut']} {more} more")
    value = {"task": task, "ready": result["ready"], "reasons": [{"depth": d, "text": t} for d, t in tree]}
    return context.answer(value, [truncate(line, style.width, style.glyphs["cut"]) for line in lines])
