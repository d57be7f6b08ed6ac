"""Several changes in one call, each decided on the list as the ones before it left it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict, replace

from punchlist_schemas import params as p
from punchlist_schemas.changes import CHANGES, ListApply, method_of
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import ListCleared
from punchlist_schemas.things import TASK_LINKS
from punchlistd.domain.commands import NOTHING, Command, Decision, Parts
from punchlistd.domain.decide import add, claim, edit, notes, order, status
from punchlistd.domain.evolve import evolve
from punchlistd.domain.rejections import invalid
from punchlistd.domain.state import State

RULES: dict[type[p.Mutation], Callable[[State, Any, Command], Decision | Rejection]] = {
    p.TaskAdd: add.add,
    p.TaskEdit: edit.edit,
    p.TaskSetStatus: status.set_status,
    p.TaskClaim: claim.claim,
    p.TaskMove: order.move,
    p.TaskDelete: edit.delete,
    p.TaskNote: notes.note,
}
"""What decides on each change, alone or in a `list.apply`."""

_ONE = frozenset({"task", "before", "after", "parent"})
_MANY = frozenset(
    {"tasks", "blocked_by", "blocks", "add_blocked_by", "remove_blocked_by", "add_blocks", "remove_blocks"}
)
"""The members of changes that hold a task's id, and those that hold several."""


def apply(state: State, params: ListApply, command: Command) -> Parts:
    ahead = state.copy()
    is_over = False
    for index, call in enumerate(calls_of(state, params)):
        decision = call if isinstance(call, Rejection) else RULES[type(call)](ahead, call, command)
        if isinstance(decision, Rejection):
            yield at_change(params, index, decision)
            return
        yield NOTHING
        for event in decision.events:
            # A list that clears itself looks at what all changes leave: one behind this may add a task.
            if isinstance(event, ListCleared):
                is_over = True
                continue
            evolve(ahead, event, ahead.seq + 1, ahead.version + 1, command.at)
            yield Decision((event,))
    if is_over and not ahead.remaining:
        yield Decision((ListCleared(),))


def calls_of(state: State, params: ListApply) -> Iterator[p.Mutation | Rejection]:
    """The calls that the changes stand for, with ids in the place of refs: a ref wins over an id of its spelling.

    A change that stands for none comes out as the reason; nothing comes behind it.
    """
    refs: dict[str, str] = {}
    number = state.next_task
    for change in params.changes:
        kind = CHANGES[type(change)]
        members = asdict(change)
        ref = members.pop("ref", None)
        if refs:
            _resolve(members, refs)
        if params.quote and "quote" in kind.__struct_fields__:
            members["quote"] = params.quote
        if ref in refs:
            yield invalid("ref", "a different ref for each task", f"The ref {ref!r} is used twice; rename one.")
            return
        if kind is p.TaskClaim and (members["task"] is None or members["wait_ms"]):
            yield invalid(
                "task", "a task, and no wait_ms", "A claim among several changes names its task and can't wait."
            )
            return
        yield kind(conversation=params.conversation, actor=params.actor, **members)
        if kind is p.TaskAdd:
            if ref is not None:
                refs[ref] = str(number)
            number += 1


def at_change(params: ListApply, index: int, refusal: Rejection) -> Rejection:
    message = f"changes[{index}] ({method_of(params.changes[index])}): {refusal.message} Nothing was changed."
    return Rejection(refusal.kind, message, {**refusal.data, "change": index})


def _resolve(members: dict[str, Any], refs: Mapping[str, str]) -> None:
    for name in members.keys() & _ONE:
        if isinstance(members[name], str):
            members[name] = refs.get(members[name], members[name])
    for name in members.keys() & _MANY:
        members[name] = tuple(refs.get(one, one) for one in members[name])
    if links := members.get("links"):
        members["links"] = tuple(
            replace(link, to=refs.get(link.to, link.to)) if link.kind in TASK_LINKS else link for link in links
        )
