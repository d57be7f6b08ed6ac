"""`punch queue`: commands that let workers claim tasks, and renew and release these claims.

Each run opens its own connection, so these claims outlive the connection and end only when they expire.
"""

from punchlist_apps.cli.calling.claims import claim_tasks, show_claim
from punchlist_apps.cli.calling.context import Context, parse_task_ids
from punchlist_apps.cli.calling.names import resolve_names
from punchlist_apps.cli.parsing.arguments import TASKS, Argument, Usage, owner_option, value
from punchlist_apps.common.terminal.argument_types import (
    parse_duration,
    parse_lease,
    parse_positive,
    parse_whole_number,
)
from punchlist_apps.common.terminal.render import format_task

_HOLDER = owner_option("change this owner's claim (default: PUNCHLIST_OWNER, else the actor)")
_OWNER = owner_option("claim for this owner (default: PUNCHLIST_OWNER, else the actor)")
_CLAIMS = (
    _OWNER,
    value("--lease", text="keep the claim this long, at most 24h (default: 1h)", metavar="TIME", type=parse_lease),
    value("--wait", text="wait for a task this long, such as 30s or 10m", metavar="TIME", type=parse_duration),
)

COMMANDS = {
    "claim": Usage(
        (
            Argument(
                ("tasks",),
                "the tasks to claim, as 3 or #3 (default: the next ready one)",
                {"metavar": "ID", "nargs": "*"},
            ),
            *_CLAIMS,
            value("-n", "--count", text="claim at most N of the next ready tasks", metavar="N", type=parse_positive),
        ),
        ("punch queue claim --owner ann", "punch queue claim 3 --lease 2h", "punch queue claim --wait 10m"),
    ),
    "release": Usage(
        (
            TASKS,
            _HOLDER,
            value("--fence", text="refuse unless the claim has this fence", metavar="N", type=parse_whole_number),
        ),
        ("punch queue release 3 --owner ann",),
    ),
    "renew": Usage(
        (
            TASKS,
            _HOLDER,
            value(
                "--lease",
                text="keep the claim this long from now (default: its original time)",
                metavar="TIME",
                type=parse_lease,
            ),
            value("--fence", text="refuse unless the claim has this fence", metavar="N", type=parse_whole_number),
        ),
        ("punch queue renew 3 --lease 2h",),
    ),
}


def run_claim(context: Context) -> int:
    args = context.args
    tasks = parse_task_ids(args.tasks)
    if tasks is None:
        return show_claim(context, claim_tasks(context, count=args.count, wait_ms=args.wait, lease_ms=args.lease))
    code = 0
    for task in tasks:
        code = show_claim(context, claim_tasks(context, task=task, wait_ms=args.wait, lease_ms=args.lease)) or code
    return code


def run_release(context: Context) -> int:
    for task in parse_task_ids(context.args.tasks) or ():
        owner = _resolve_holder(context, task)
        result = context.change("task.release", task=task, owner=owner, fence=context.args.fence)
        context.answer(result, format_task(result["task"], context.style))
    return 0


def _resolve_holder(context: Context, task: str) -> str:
    """Return the owner of the claim.

    If the name matches several sessions of a host, it is the session that has the task.
    """
    if not context.args.owner:
        return context.owner
    owners = resolve_names(context, context.args.owner)
    holder = context.read("task.get", task=task)["task"].get("owner") if len(owners) > 1 else None
    return holder if holder in owners else owners[0]


def run_renew(context: Context) -> int:
    args = context.args
    for task in parse_task_ids(args.tasks) or ():
        members = {"owner": _resolve_holder(context, task), "lease_ms": args.lease, "fence": args.fence}
        result = context.change("task.renew", task=task, **members)
        context.answer(result, format_task(result["task"], context.style))
    return 0
