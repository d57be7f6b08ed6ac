"""`punch list rm`: erase a list with its history."""

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
        # After `punch leave`, a list can't be changed, and only its local copy is erased.
        if shared["state"] == "forbidden":
            where = f" on this machine only; {safe(shared['space'])} and other machines keep it"
    params = {"conversation": name, "actor": context.actor}
    try:
        result = context.call("conversation.delete", **params)
    except ConfirmationRequired as question:
        if not has_consent(context, question.summary, name, question.space, is_final=True):
            context.note("nothing was changed")
            return REFUSED
        result = context.call("conversation.delete", confirm=question.token, **params)
        if question.space:
            where = f" on all machines of {safe(question.space)}; offline ones erase it when they reconnect"
    return context.answer(result, [f"erased {safe(name)}{where}"])
