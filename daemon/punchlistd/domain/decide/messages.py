"""Messages: appended for ever, under ids that are never used again."""

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import MessageAppended
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.rejections import invalid
from punchlistd.domain.state import State


def append(state: State, params: p.MessageAppend, command: Command) -> Decision | Rejection:
    """message.append."""
    message = params.message or command.message_id
    if message in state.messages:
        sentence = f"There is a message {message!r} already; leave `message` out to get a fresh id."
        return invalid("message", "an id that is not used yet", sentence)
    return Decision((MessageAppended(message, params.role, params.content),))
