"""Commands that take tasks and give them back: claim, release, next.

Each run is a connection of its own, so these claims are kept when it closes: their time alone counts.
"""

from typing import Any

from punchlist.cli.context import Context, ids, one_id
from punchlist.cli.exits import REFUSED
from punchlist.cli.failure import tell
from punchlist.cli.render import task_lines

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
        context.answer(result, task_lines(result["task"], context.look))
    return 0


def run_next(context: Context) -> int:
    """Complete what this owner has in progress, and take the next task."""
    args = context.args
    mine = context.ask("task.list", owner=context.owner, status="in_progress")["tasks"]
    wanted = one_id(args.done)
    finished = [task for task in mine if wanted is None or task["id"] == wanted]
    if wanted is not None and not finished:
        tell("not_found", f"{context.owner} does not have #{wanted} in progress", "punch list shows what there is")
        return REFUSED
    if wanted is None and len(finished) > 1:
        names = ", ".join(f"#{task['id']}" for task in finished)
        tell("ambiguous", f"{context.owner} has {names} in progress", "say which one is done: --done ID")
        return REFUSED
    if args.result and not finished:
        advice = "punch list shows what there is, punch done ID --result TEXT completes any of it"
        tell("not_found", f"{context.owner} has nothing in progress that this result could be of", advice)
        return REFUSED
    for task in finished:
        members = {"task": task["id"], "fence": task.get("fence"), "result_summary": args.result}
        done = context.change("task.set_status", status="completed", **members)
        if not args.json:
            context.lines(task_lines(done["task"], context.look))
    return _tell(context, _claim(context, wait_ms=args.wait))


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
        context.lines(task_lines(task, context.look))
    return 0 if tasks else REFUSED
