"""`punch confirm`: the person's answer to a question that a tool has put."""

from punchlist.cli.arguments import YES, Argument, Usage
from punchlist.cli.context import Context
from punchlist.cli.exit_codes import REFUSED
from punchlist.cli.failure import UsageError
from punchlist.text import safe

COMMANDS = {
    "confirm": Usage(
        (Argument(("token",), "the token that the question shows", {"metavar": "TOKEN"}), YES), ("punch confirm 4f0c…",)
    ),
}


def run_confirm(context: Context) -> int:
    """Show what a token would do, and do it."""
    token = context.args.token
    asked = context.call("confirmation.get", token=token)
    if not context.args.yes and not context.style.terminal:
        raise UsageError(f"this would {safe(asked['summary'])}: add --yes")
    if not context.confirmed(f"This would {safe(asked['summary'])}. Do it?"):
        context.note("nothing was changed")
        return REFUSED
    how = {"confirm": token, "ask": True, "answered": True, "actor": context.actor}
    done = context.call(asked["method"], **asked["params"], **how)
    return context.answer(done, [f"done: {safe(asked['summary'])}"])
