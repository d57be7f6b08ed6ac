"""Messages: appending and retracting them. Message ids are never reused."""

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import MessageAppended, MessageRetracted
from punchlist_schemas.things import TALK
from punchlistd.domain.commands import Command, Decision
from punchlistd.domain.rejections import invalid, message_not_found
from punchlistd.domain.state import State


def append(state: State, params: p.MessageAppend, command: Command) -> Decision | Rejection:
    message = params.message or command.message_id
    if message in state.messages:
        sentence = f"Message {message!r} already exists; leave `message` out to get a new id."
        return invalid("message", "an unused id", sentence)
    rejection = None if params.supersedes is None else _check_superseded(state, params.role, params.supersedes)
    if rejection is not None:
        return rejection
    return Decision((MessageAppended(message, params.role, params.content, params.supersedes or ""),))


def retract(state: State, params: p.MessageRetract, _command: Command) -> Decision | Rejection:
    if params.message not in state.messages:
        return message_not_found(params.message)
    successor = state.hidden.get(params.message)
    if successor:
        sentence = f"Message {params.message} is superseded by {successor}; retract that one."
        return invalid("message", "a message that is shown", sentence)
    return Decision(() if successor is not None else (MessageRetracted(params.message, params.reason),))


def _check_superseded(state: State, role: str, message: str) -> Rejection | None:
    if role in TALK:
        sentence = "A message of role user or assistant can't supersede another; append it without `supersedes`."
        return invalid("supersedes", "nothing, for a message of role user or assistant", sentence)
    if message not in state.messages:
        return message_not_found(message)
    if (successor := state.hidden.get(message)) is not None:
        sentence = f"Message {message} is " + (
            f"superseded by {successor}; supersede that one." if successor else "retracted."
        )
        return invalid("supersedes", "a message that is shown", sentence)
    if state.passing is None or message not in state.passing:
        reason = (
            "it is of an earlier version"
            if state.passing is None
            else "messages of the roles user and assistant are kept"
        )
        return invalid("supersedes", "a message of another role", f"Message {message} can't be superseded: {reason}.")
    return None
