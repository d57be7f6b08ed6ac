"""`punch agent attach` and `detach`: let the id of a host's session find a list, so that a resume finds it again."""

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
    """Make a session's id stand for this list; one that stood for another list moves here."""
    result = context.change("conversation.attach", session=context.args.session)
    line = f"{safe(context.args.session)} now finds {result['conversation']['conversation']}"
    return context.answer(result, [line])


def run_detach(context: Context) -> int:
    session = context.args.session
    if not context.args.conversation:
        # The session's own id leads to the list that it is attached to.
        place = context.call("conversation.get", conversation=session)["conversation"]["conversation"]
        result = context.call("conversation.detach", conversation=place, session=session, actor=context.actor)
    else:
        result = context.change("conversation.detach", session=session)
    line = f"{safe(session)} no longer finds {result['conversation']['conversation']}"
    return context.answer(result, [line])
