"""`punch list rm`: erases a list with its history."""

from punchlist.cli.arguments import YES, Argument, Usage
from punchlist.cli.context import Context
from punchlist.cli.exit_codes import REFUSED
from punchlist.cli.failure import UsageError
from punchlist.errors import ConfirmationRequired
from punchlist.text import safe

COMMANDS = {
    "rm": Usage(
        (Argument(("name",), "the list to erase", {"metavar": "LIST"}, "list"), YES),
        ("punch list rm old-plan", "punch list rm old-plan --yes"),
    ),
}


def run_rm(context: Context) -> int:
    """Erase a list, once the person has agreed to what the daemon says would go."""
    name = context.args.name
    if not context.args.yes and not context.style.terminal:
        raise UsageError("list rm erases the list and its history for good: add --yes")
    context.check_list(name)
    alone = ""
    if (shared := context.call("task.list", conversation=name, limit=1).get("shared")) is not None:
        if shared["state"] == "forbidden":  # as changes of a list that was left are refused
            alone = f" on this machine alone: {safe(shared['space'])} and other machines keep it"
    named = {"conversation": name, "actor": context.actor}
    try:
        result = context.call("conversation.delete", **named)
    except ConfirmationRequired as asked:
        if not context.confirmed(f"This would {safe(asked.summary)}. No undo brings it back. Do it?"):
            context.note("nothing was changed")
            return REFUSED
        result = context.call("conversation.delete", confirm=asked.token, **named)
    return context.answer(result, [f"erased {safe(name)}{alone}"])
