"""Decides commands: returns a command's events or its rejection, without changing the state."""

from collections.abc import Callable, Iterator
from typing import Any

from punchlist_schemas import params as p
from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ConversationOpened, KnownEvent
from punchlistd.domain.commands import Command, Decision, EndClaims, EndReservations, Parts, Wake
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
from punchlistd.domain.rejections import list_changed
from punchlistd.domain.state import State

__all__ = ["RULES", "decide", "follow_up"]

RULES: dict[type[p.Mutation], Callable[[State, Any, Command], Decision | Rejection | Parts]] = {
    **apply.RULES,
    ListApply: apply.apply,
    p.TaskAddMany: many.add_many,
    p.ListReplace: replace.replace,
    p.TaskClaim: claim.claim,
    p.TaskRenew: claim.renew,
    p.TaskRelease: claim.release,
    EndClaims: claim.end_claims,
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
"""The rule for each mutation. Rules for mutations that can name thousands of tasks decide in parts."""

OPENS_NOTHING = (p.TaskClaim, p.TurnEnd, EndClaims, EndReservations, Wake)
"""Calls that don't create the conversation if it does not exist."""

follow_up = following.follow_up


def decide(state: State, command: Command) -> Parts:
    """Return the decisions on the parts of a command, made lazily. The last decision is for the whole command.

    If the conversation does not exist, open it for the connection's user.
    """
    params = command.params
    if params.expect_version is not None and params.expect_version != state.version:
        return (list_changed(params.expect_version, state.version),)
    outcome = apply.check_task_version(state, params) or RULES[type(params)](state, params, command)
    if type(outcome) is Rejection:
        return (outcome,)
    opens = not (state.exists or isinstance(params, OPENS_NOTHING))
    if type(outcome) is not Decision:
        return _collect(outcome, command, opens=opens)
    if opens and not (outcome.events and isinstance(outcome.events[0], ConversationOpened)):
        outcome = Decision((_build_opening(command), *outcome.events))
    return (outcome,)


def _build_opening(command: Command) -> ConversationOpened:
    return ConversationOpened(user=command.user or "")


def _collect(parts: Parts, command: Command, *, opens: bool) -> Iterator[Decision | Rejection]:
    events: list[KnownEvent] = [_build_opening(command)] if opens else []
    for part in parts:
        yield part
        if isinstance(part, Rejection):
            return
        events += part.events
    yield Decision(tuple(events))
