"""`punch confirm`: confirm a tool call that needs a person's consent."""

from punchlist.base.text import safe
from punchlist_apps.cli.calling.consent import EVERYWHERE, has_consent
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage
from punchlist_apps.cli.printing.exit_codes import REFUSED

COMMANDS = {
    "confirm": Usage(
        (Argument(("token",), "the token from the question", {"metavar": "TOKEN"}), YES, EVERYWHERE),
        ("punch confirm 4f0c…",),
    ),
}


def run_confirm(context: Context) -> int:
    token = context.args.token
    question = context.call("confirmation.get", token=token)
    summary, method = question["summary"], question["method"]
    is_final = method == "conversation.delete"
    if not has_consent(context, summary, question["conversation"], question.get("space"), is_final=is_final):
        context.note("nothing was changed")
        return REFUSED
    consent = {"confirm": token, "ask": True, "answered": True, "actor": context.actor}
    result = context.call(method, **question["params"], **consent)
    return context.answer(result, [f"done: {safe(summary)}"])
