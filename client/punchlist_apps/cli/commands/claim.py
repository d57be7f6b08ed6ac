"""`punch queue`: commands for workers, which take tasks, keep them and give them back.

Each run is a connection of its own, so these claims are kept when it closes: their time alone counts.
"""

from punchlist_apps.cli.calling.claims import claim_tasks, show_claim
from punchlist_apps.cli.calling.context import Context, parse_task_ids
from punchlist_apps.cli.calling.names import resolve_names
from punchlist_apps.cli.parsing.arguments import TASKS, Argument, Usage, owner_option, value
from punchlist_apps.common.terminal.argument_types import lease, milliseconds, positive, whole
from punchlist_apps.common.terminal.render import task_lines

_HOLDER = owner_option("who has claimed it (default: PUNCHLIST_OWNER, else the actor)")
_OWNER = owner_option("who claims it (default: PUNCHLIST_OWNER, else the actor)")
_CLAIMS = (
    _OWNER,
    value("--lease", text="how long the claim lasts, at most 24h (default: 1h)", metavar="TIME", type=lease),
    value("--wait", text="wait this long for a task, such as 30s or 10m", metavar="TIME", type=milliseconds),
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
            value("-n", "--count", text="claim at most N of the next ready tasks", metavar="N", type=positive),
        ),
        ("punch queue claim --owner ann", "punch queue claim 3 --lease 2h", "punch queue claim --wait 10m"),
    ),
    "release": Usage(
        (TASKS, _HOLDER, value("--fence", text="refuse unless the claim has this fence", metavar="N", type=whole)),
        ("punch queue release 3 --owner ann",),
    ),
    "renew": Usage(
        (
            TASKS,
            _HOLDER,
            value(
                "--lease",
                text="how long the claim lasts from now on (default: as long as it was claimed for)",
                metavar="TIME",
                type=lease,
            ),
            value("--fence", text="refuse unless the claim has this fence", metavar="N", type=whole),
        ),
        ("punch queue renew 3 --lease 2h",),
    ),
}


def run_claim(context: Context) -> int:
    args = context.args
    named = parse_task_ids(args.tasks)
    if named is None:
        return show_claim(context, claim_tasks(context, count=args.count, wait_ms=args.wait, lease_ms=args.lease))
    code = 0
    for task in named:
        code = show_claim(context, claim_tasks(context, task=task, wait_ms=args.wait, lease_ms=args.lease)) or code
    return code


def run_release(context: Context) -> int:
    for task in parse_task_ids(context.args.tasks) or ():
        owner = _holder(context, task)
        result = context.change("task.release", task=task, owner=owner, fence=context.args.fence)
        context.answer(result, task_lines(result["task"], context.style))
    return 0


def _holder(context: Context, task: str) -> str:
    """Return whose claim is meant: of several sessions of a host, the one that has the task."""
    if not context.args.owner:
        return context.owner
    found = resolve_names(context, context.args.owner)
    has = context.read("task.get", task=task)["task"].get("owner") if len(found) > 1 else None
    return has if has in found else found[0]


def run_renew(context: Context) -> int:
    args = context.args
    for task in parse_task_ids(args.tasks) or ():
        members = {"owner": _holder(context, task), "lease_ms": args.lease, "fence": args.fence}
        result = context.change("task.renew", task=task, **members)
        context.answer(result, task_lines(result["task"], context.style))
    return 0
