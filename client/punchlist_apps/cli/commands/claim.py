"""`punch queue`: commands for workers, which take tasks, keep them and give them back.

Each run is a connection of its own, so these claims are kept when it closes: their time alone counts.
"""

from punchlist_apps.cli.calling.claims import claim, show_claim
from punchlist_apps.cli.calling.context import Context, ids
from punchlist_apps.cli.calling.names import resolve
from punchlist_apps.cli.parsing.arguments import TASKS, Argument, Usage, owner_option, value
from punchlist_apps.common.terminal.argument_types import (
    parse_duration,
    parse_lease,
    parse_positive,
    parse_whole_number,
)
from punchlist_apps.common.terminal.render import format_task

_HOLDER = owner_option("who has claimed it (default: PUNCHLIST_OWNER, else the actor)")
_OWNER = owner_option("who claims it (default: PUNCHLIST_OWNER, else the actor)")
_CLAIMS = (
    _OWNER,
    value("--lease", text="how long the claim lasts, at most 24h (default: 1h)", metavar="TIME", type=parse_lease),
    value("--wait", text="wait this long for a task, such as 30s or 10m", metavar="TIME", type=parse_duration),
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
                text="how long the claim lasts from now on (default: as long as it was claimed for)",
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
    named = ids(args.tasks)
    if named is None:
        return show_claim(context, claim(context, count=args.count, wait_ms=args.wait, lease_ms=args.lease))
    code = 0
    for task in named:
        code = show_claim(context, claim(context, task=task, wait_ms=args.wait, lease_ms=args.lease)) or code
    return code


def run_release(context: Context) -> int:
    for task in ids(context.args.tasks) or ():
        owner = _holder(context, task)
        result = context.change("task.release", task=task, owner=owner, fence=context.args.fence)
        context.answer(result, format_task(result["task"], context.style))
    return 0


def _holder(context: Context, task: str) -> str:
    """Return whose claim is meant: of several sessions of a host, the one that has the task."""
    if not context.args.owner:
        return context.owner
    found = resolve(context, context.args.owner)
    has = context.ask("task.get", task=task)["task"].get("owner") if len(found) > 1 else None
    return has if has in found else found[0]


def run_renew(context: Context) -> int:
    args = context.args
    for task in ids(args.tasks) or ():
        members = {"owner": _holder(context, task), "lease_ms": args.lease, "fence": args.fence}
        result = context.change("task.renew", task=task, **members)
        context.answer(result, format_task(result["task"], context.style))
    return 0
