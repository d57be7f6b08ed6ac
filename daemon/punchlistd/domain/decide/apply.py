"""`list.apply`: several changes in one call. Each is decided on the list as the previous changes leave it."""

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
from punchlistd.domain.rejections import invalid, task_changed
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
"""The rule for each kind of change, whether it is made alone or in a `list.apply`."""

_VERSIONED = p.TaskEdit | p.TaskSetStatus | p.TaskMove | p.TaskDelete
"""The changes that can have a `task_version`."""

_ID_MEMBERS = frozenset({"task", "before", "after", "parent"})
_ID_LIST_MEMBERS = frozenset(
    {"tasks", "blocked_by", "blocks", "add_blocked_by", "remove_blocked_by", "add_blocks", "remove_blocks"}
)
"""The members of changes that contain one task id, and those that contain several."""


def apply(state: State, params: ListApply, command: Command) -> Parts:
    draft = state.copy()
    clears = False
    for index, call in enumerate(expand_changes(state, params)):
        decision = call if isinstance(call, Rejection) else _decide(state, draft, call, command)
        if isinstance(decision, Rejection):
            yield reject_change(params, index, decision)
            return
        yield NOTHING
        for event in decision.events:
            # The list is cleared only after the last change, since a later one may add a task.
            if isinstance(event, ListCleared):
                clears = True
                continue
            evolve(draft, event, draft.seq + 1, draft.version + 1, command.at)
            yield Decision((event,))
    if clears and not draft.remaining:
        yield Decision((ListCleared(),))


def _decide(state: State, draft: State, call: p.Mutation, command: Command) -> Decision | Rejection:
    return check_task_version(state, call) or RULES[type(call)](draft, call, command)


def check_task_version(state: State, params: p.Mutation) -> Rejection | None:
    """Reject a change to a task that has changed since the caller read it. The rule itself rejects an unknown task."""
    if not isinstance(params, _VERSIONED) or params.task_version is None:
        return None
    if params.task is None:
        return invalid("task_version", "one task", "`task_version` is the version of one task: pass `task`.")
    task = state.tasks.get(params.task)
    return None if task is None or task.version == params.task_version else task_changed(task, params.task_version)


def expand_changes(state: State, params: ListApply) -> Iterator[p.Mutation | Rejection]:
    """Yield the changes as calls, with refs replaced by ids. If a ref and an id are spelled the same, the ref wins.

    At the first invalid change, yield a rejection and stop.
    """
    refs: dict[str, str] = {}
    number = state.next_task
    for change in params.changes:
        kind = CHANGES[type(change)]
        members = asdict(change)
        ref = members.pop("ref", None)
        if refs:
            _resolve_refs(members, refs)
        if params.quote and "quote" in kind.__struct_fields__:
            members["quote"] = params.quote
        if ref in refs:
            yield invalid("ref", "a unique ref for each task", f"The ref {ref!r} is used twice; rename one.")
            return
        if kind is p.TaskClaim and (members["task"] is None or members["wait_ms"]):
            yield invalid(
                "task", "a task, and no wait_ms", "A claim among several changes must name its task and can't wait."
            )
            return
        yield kind(conversation=params.conversation, actor=params.actor, **members)
        if kind is p.TaskAdd:
            if ref is not None:
                refs[ref] = str(number)
            number += 1


def reject_change(params: ListApply, index: int, rejection: Rejection) -> Rejection:
    message = f"changes[{index}] ({method_of(params.changes[index])}): {rejection.message} Nothing was changed."
    return Rejection(rejection.kind, message, {**rejection.data, "change": index})


def _resolve_refs(members: dict[str, Any], refs: Mapping[str, str]) -> None:
    for name in members.keys() & _ID_MEMBERS:
        if isinstance(members[name], str):
            members[name] = refs.get(members[name], members[name])
    for name in members.keys() & _ID_LIST_MEMBERS:
        members[name] = tuple(refs.get(id, id) for id in members[name])
    if links := members.get("links"):
        members["links"] = tuple(
            replace(link, to=refs.get(link.to, link.to)) if link.kind in TASK_LINKS else link for link in links
        )
