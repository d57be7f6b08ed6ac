"""Asks a person to confirm a change that can't be undone.

Before a shared list is erased on every machine, the person must type its name.
"""

import sys

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import value
from punchlist_apps.cli.printing.failure import UsageError

EVERYWHERE = value(
    "--everywhere", text="erase a shared list on every machine without asking; its name again", metavar="LIST"
)


def has_consent(context: Context, summary: str, name: str, space: str | None, *, is_final: bool) -> bool:
    """Return whether the person agrees, either with an option or at the terminal.

    Args:
        context: The context of a command that accepts `--yes` and `--everywhere`.
        summary: The daemon's description of the change.
        name: The list.
        space: The space of a shared list that would be erased on all machines.
        is_final: Whether undo can't restore the list.

    Raises:
        UsageError: `--everywhere` names another list, or consent is missing and can't be requested because there is no
            terminal.
    """
    args = context.args
    if args.everywhere is not None and args.everywhere != name:
        raise UsageError(
            f"--everywhere {args.everywhere} is not the list to erase; to erase it, add --everywhere {name}"
        )
    if args.everywhere is not None or (args.yes and not space):
        return True
    warning = "It can't be undone. " if is_final else ""
    question = f"This would {safe(summary)}. {warning}"
    if not context.can_ask:
        raise UsageError(f"{question}To confirm, add --{f'everywhere {name}' if space else 'yes'}")
    if not space:
        return context.confirm(f"{question}Continue?")
    sys.stderr.write(f"{question}To confirm, type the list's name: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == name
