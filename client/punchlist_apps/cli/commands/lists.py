"""`punch list rm`: erases a list with its history."""

from punchlist.base.text import safe
from punchlist.errors import ConfirmationRequired
from punchlist_apps.cli.calling.consent import EVERYWHERE, has_consent
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage
from punchlist_apps.cli.printing.exit_codes import REFUSED

COMMANDS = {
    "rm": Usage(
        (Argument(("name",), "the list to erase", {"metavar": "LIST"}, "list"), YES, EVERYWHERE),
        ("punch list rm old-plan", "punch list rm old-plan --yes", "punch list rm team-plan --everywhere team-plan"),
    ),
}


def run_rm(context: Context) -> int:
    name = context.args.name
    context.check_list(name)
    where = ""
    if (shared := context.call("task.list", conversation=name, limit=1).get("shared")) is not None:
        if shared["state"] == "forbidden":  # as changes of a list that was left are refused
            where = f" on this machine alone: {safe(shared['space'])} and other machines keep it"
    named = {"conversation": name, "actor": context.actor}
    try:
        result = context.call("conversation.delete", **named)
    except ConfirmationRequired as asked:
        if not has_consent(context, asked.summary, name, asked.space, is_final=True):
            context.note("nothing was changed")
            return REFUSED
        result = context.call("conversation.delete", confirm=asked.token, **named)
        if asked.space:
            where = f" on every machine of {safe(asked.space)}; those that are away erase it once they are back"
    return context.answer(result, [f"erased {safe(name)}{where}"])
