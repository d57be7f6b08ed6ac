"""`punch agent attach` and `detach`: map a host's session id to a list, so that a resumed session finds it."""

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage

COMMANDS = {
    "attach": Usage(
        (Argument(("session",), "the id of the host's session or thread", {"metavar": "SESSION"}),),
        ("punch agent attach 7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66 -c website",),
    ),
    "detach": Usage(
        (Argument(("session",), "the id of the host's session or thread", {"metavar": "SESSION"}),),
        ("punch agent detach 7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66",),
    ),
}


def run_attach(context: Context) -> int:
    """Map a session's id to this list, replacing any earlier mapping."""
    result = context.change("conversation.attach", session=context.args.session)
    line = f"{safe(context.args.session)} is now attached to {result['conversation']['conversation']}"
    return context.answer(result, [line])


def run_detach(context: Context) -> int:
    session = context.args.session
    if not context.args.conversation:
        # The session's id resolves to the list that the session is attached to.
        name = context.call("conversation.get", conversation=session)["conversation"]["conversation"]
        result = context.call("conversation.detach", conversation=name, session=session, actor=context.actor)
    else:
        result = context.change("conversation.detach", session=session)
    line = f"{safe(session)} is no longer attached to {result['conversation']['conversation']}"
    return context.answer(result, [line])
