"""`punch confirm`: the person's answer to a question that a tool has put."""

from punchlist.base.text import safe
from punchlist_apps.cli.calling.consent import EVERYWHERE, has_consent
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage
from punchlist_apps.cli.printing.exit_codes import REFUSED

COMMANDS = {
    "confirm": Usage(
        (Argument(("token",), "the token that the question shows", {"metavar": "TOKEN"}), YES, EVERYWHERE),
        ("punch confirm 4f0c…",),
    ),
}


def run_confirm(context: Context) -> int:
    token = context.args.token
    asked = context.call("confirmation.get", token=token)
    is_final = asked["method"] == "conversation.delete"
    if not has_consent(context, asked["summary"], asked["conversation"], asked.get("space"), is_final=is_final):
        context.note("nothing was changed")
        return REFUSED
    how = {"confirm": token, "ask": True, "answered": True, "actor": context.actor}
    done = context.call(asked["method"], **asked["params"], **how)
    return context.answer(done, [f"done: {safe(asked['summary'])}"])
