"""The rule of user scope: a connection bound to a user sees that user's conversations and no others."""

from punchlist_schemas.errors import Rejection
from punchlistd.domain.state import State
from punchlistd.engine.calls import Caller


def out_of_scope(caller: Caller, state: State) -> Rejection | None:
    """Another user's conversation is not there for a bound connection; one that does not exist yet is nobody's."""
    if caller.user is None or not state.exists or state.user == caller.user:
        return None
    return no_conversation(state.conversation)


def no_conversation(name: str) -> Rejection:
    """The refusal for a conversation that is not there."""
    return Rejection("not_found", f"There is no conversation {name}.", {"what": "conversation", "id": name})
