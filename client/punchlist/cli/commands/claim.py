"""Commands that take tasks and give them back: claim, release, next.

Each run is a connection of its own, so these claims are kept when it closes: their time alone counts.
"""

from __future__ import annotations

from punchlist.cli.argument_types import lease, milliseconds, positive, whole
from punchlist.cli.arguments import TASKS, Argument, Usage, value
from punchlist.cli.context import Context, ids, one_id
from punchlist.cli.exit_codes import REFUSED
from punchlist.cli.failure import tell
from punchlist.cli.render import task_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HOLDER = value("-o", "--owner", text="who has it (PUNCHLIST_OWNER, else: the user)", metavar="NAME")
_OWNER = value("-o", "--owner", text="who takes it (PUNCHLIST_OWNER, else: the user)", metavar="NAME")
_CLAIMS = (
    _OWNER,
    value("--lease", text="for how long, at most 24h (1h)", metavar="TIME", type=lease),
    value("--wait", text="how long to wait for a task: 30s, 10m", metavar="TIME", type=milliseconds),
)

COMMANDS = {
    "claim": Usage(
        (
            Argument(("tasks",), "these tasks: 3 or #3", {"metavar": "ID", "nargs": "*"}),
            *_CLAIMS,
            value("-n", "--count", text="at most this many of the next ready ones", metavar="N", type=positive),
        ),
        ("punch claim --owner ann", "punch claim 3 --lease 2h", "punch claim --wait 10m"),
    ),
    "release": Usage(
        (TASKS, _HOLDER, value("--fence", text="only if the claim has this number", metavar="N", type=whole)),
        ("punch release 3 --owner ann",),
    ),
    "next": Usage(
        (
            *_CLAIMS,
            value("--done", text="complete it; with an ID if you have several", metavar="ID", nargs="?", const=True),
            value("-r", "--result", text="complete it, and this is what came out of it"),
        ),
        ("punch next", 'punch next --owner ann --result "in docs/copy.md"'),
    ),
}

_KEPT_MS = 3_600_000
"""How long a claim of the command line lasts by default: nobody renews it."""


def run_claim(context: Context) -> int:
    """Take named tasks, or the next ready ones."""
    args = context.args
    named = ids(args.tasks)
    if named is None:
        return _tell(context, _claim(context, count=args.count, wait_ms=args.wait))
    code = 0
    for task in named:
        code = _tell(context, _claim(context, task=task, wait_ms=args.wait)) or code
    return code


def run_release(context: Context) -> int:
    """Give tasks back."""
    for task in ids(context.args.tasks) or ():
        result = context.change("task.release", task=task, owner=context.owner, fence=context.args.fence)
        context.answer(result, task_lines(result["task"], context.style))
    return 0


def run_next(context: Context) -> int:
    """Take the next task, once what this owner has in progress is completed; show that if it is not."""
    args = context.args
    mine = context.ask("task.list", owner=context.owner, status="in_progress")["tasks"]
    if args.done is None and not args.result:
        return _show(context, mine) if mine else _next(context)
    wanted = None if args.done is True else one_id(args.done)
    finished = [task for task in mine if wanted is None or task["id"] == wanted]
    if wanted is not None and not finished:
        tell("not_found", f"{context.owner} does not have #{wanted} in progress", "punch list shows what there is")
        return REFUSED
    if len(finished) > 1:
        names = ", ".join(f"#{task['id']}" for task in finished)
        tell("ambiguous", f"{context.owner} has {names} in progress", "say which one is done: --done ID")
        return REFUSED
    if not finished:
        what = "this result could be of" if args.result else "could be completed"
        advice = "punch list shows what there is, punch done ID --result TEXT completes any of it"
        tell("not_found", f"{context.owner} has nothing in progress that {what}", advice)
        return REFUSED
    for task in finished:
        members = {"task": task["id"], "fence": task.get("fence"), "result_summary": args.result}
        done = context.change("task.set_status", status="completed", **members)
        if not args.json:
            context.lines(task_lines(done["task"], context.style))
    return _next(context)


def _show(context: Context, mine: list[dict[str, Any]]) -> int:
    """What this owner has in progress: nothing else is taken meanwhile."""
    if not context.args.json:
        context.note(f"{context.owner} has this in progress; --done completes it and takes the next task")
    lines = [line for task in mine for line in task_lines(task, context.style)]
    return context.answer({"task": mine[0], "tasks": mine}, lines)


def _next(context: Context) -> int:
    """Take the next task. A list whose tasks are all finished is no failure: a script ends there."""
    result = _claim(context, wait_ms=context.args.wait)
    if result.get("task"):
        return _tell(context, result)
    counts = context.ask("task.list", limit=1)["counts"]
    if counts["pending"] or counts["in_progress"] or counts["paused"]:
        return _tell(context, result)
    if any(counts.values()):
        return context.answer(result, ["all tasks are finished"])
    if context.args.json:
        context.json(result)
    else:
        tell("nothing_ready", f"the list {context.conversation} is empty", "punch add TITLE adds a task")
    return REFUSED


def _claim(context: Context, **members: Any) -> dict[str, Any]:
    if context.args.conversation and not context.args.wait:
        context.check_list(context.args.conversation)  # a claim makes no list, so nothing would ever be had
    lease = context.args.lease or _KEPT_MS
    return context.change("task.claim", owner=context.owner, lease_ms=lease, keep=True, **members)


def _tell(context: Context, result: dict[str, Any]) -> int:
    tasks = result.get("tasks") or [task for task in [result.get("task")] if task]
    if context.args.json:
        context.json(result)
    elif not tasks:
        tell(
            "nothing_ready", "there is no task to be had", "punch list shows what there is, punch why ID what keeps it"
        )
    for task in () if context.args.json else tasks:
        context.lines(task_lines(task, context.style))
    return 0 if tasks else REFUSED
