"""From a command to what follows from it: events, or a refusal as a value. Nothing is changed here."""

from collections.abc import Callable
from typing import Any

from punchlist_schemas import params as p
from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationOpened
from punchlistd.domain.commands import Command, Decision, EndClaims, Wake
from punchlistd.domain.decide import (
    apply,
    claim,
    conversation,
    edit,
    gates,
    many,
    messages,
    replace,
    serial,
    undo,
)
from punchlistd.domain.rejections import version_conflict
from punchlistd.domain.state import State

__all__ = ["RULES", "decide", "follow_up", "has_follow_ups"]

RULES: dict[type[p.Mutation], Callable[[State, Any, Command], Decision | Rejection]] = {
    **apply.RULES,
    ListApply: apply.apply,
    p.TaskAddMany: many.add_many,
    p.TaskClaim: claim.claim,
    p.TaskRenew: claim.renew,
    p.TaskRelease: claim.release,
    EndClaims: claim.end,
    p.TaskApprove: gates.approve,
    Wake: edit.wake,
    p.ListReplace: replace.replace,
    p.ListClear: edit.clear,
    p.TurnEnd: edit.end_turn,
    p.ListUndo: undo.undo,
    p.MessageAppend: messages.append,
    p.MessageRetract: messages.retract,
    p.ConversationOpen: conversation.open_,
    p.ConversationConfigure: conversation.configure,
    p.ConversationAttach: conversation.attach,
    p.ConversationDetach: conversation.detach,
    p.ConversationDelete: conversation.delete,
}
"""What decides on each mutation."""

OPENS_NOTHING = (p.TaskClaim, p.TurnEnd, EndClaims, Wake)
"""Calls that leave a conversation that does not exist alone."""

follow_up = serial.follow_up
has_follow_ups = serial.has_follow_ups


def decide(state: State, command: Command) -> Decision | Rejection:
    """What follows from a command in this state.

    A conversation that does not exist is opened in the same step, for the user that the connection is bound to.
    """
    params = command.params
    if params.expect_version is not None and params.expect_version != state.version:
        return version_conflict("The conversation", params.expect_version, state.version)
    decision = RULES[type(params)](state, params, command)
    if state.exists or isinstance(decision, Rejection):
        return decision
    return _opened_first(decision, command)


def _opened_first(decision: Decision, command: Command) -> Decision:
    params = command.params
    opens_itself = bool(decision.events) and isinstance(decision.events[0], ConversationOpened)
    if opens_itself or isinstance(params, OPENS_NOTHING):
        return decision
    return Decision((ConversationOpened(user=command.user or ""), *decision.events))
