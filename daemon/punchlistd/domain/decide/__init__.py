"""From a command to what follows from it: events, or a refusal as a value. Nothing is changed here."""

from collections.abc import Callable
from typing import Any

from punchlist_schemas import params as p
from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationOpened
from punchlistd.domain.commands import Command, Deciding, Decision, EndClaims, EndReservations, Wake, to_the_end
from punchlistd.domain.decide import (
    apply,
    claim,
    conversation,
    edit,
    following,
    gates,
    many,
    messages,
    replace,
    sessions,
    undo,
)
from punchlistd.domain.rejections import version_conflict
from punchlistd.domain.state import State

__all__ = ["IN_PARTS", "RULES", "decide", "deciding", "follow_up", "has_follow_ups"]

Rule = Callable[[State, Any, Command], Decision | Rejection]

IN_PARTS: dict[type[p.Mutation], Callable[[State, Any, Command], Deciding]] = {
    ListApply: apply.apply,
    p.TaskAddMany: many.add_many,
    p.ListReplace: replace.replace,
}
"""What decides on each mutation that may look at thousands of tasks."""


def _in_one_go(rule: Callable[[State, Any, Command], Deciding]) -> Rule:
    def decided(state: State, params: Any, command: Command) -> Decision | Rejection:
        return command.decided or to_the_end(rule(state, params, command))

    return decided


RULES: dict[type[p.Mutation], Rule] = {
    **apply.RULES,
    **{kind: _in_one_go(rule) for kind, rule in IN_PARTS.items()},
    p.TaskClaim: claim.claim,
    p.TaskRenew: claim.renew,
    p.TaskRelease: claim.release,
    EndClaims: claim.end,
    p.TaskApprove: gates.approve,
    EndReservations: sessions.end_reservations,
    Wake: edit.wake,
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

OPENS_NOTHING = (p.TaskClaim, p.TurnEnd, EndClaims, EndReservations, Wake)
"""Calls that leave a conversation that does not exist alone."""

follow_up = following.follow_up
has_follow_ups = following.has_follow_ups


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


def deciding(state: State, command: Command) -> Deciding:
    """As `decide`, for a mutation of `IN_PARTS`, with a pause after each part; `decide` takes it as `decided`."""
    params = command.params
    if params.expect_version is not None and params.expect_version != state.version:
        return Decision()  # it is refused in its turn
    return (yield from IN_PARTS[type(params)](state, params, command))


def _opened_first(decision: Decision, command: Command) -> Decision:
    params = command.params
    opens_itself = bool(decision.events) and isinstance(decision.events[0], ConversationOpened)
    if opens_itself or isinstance(params, OPENS_NOTHING):
        return decision
    return Decision((ConversationOpened(user=command.user or ""), *decision.events))
