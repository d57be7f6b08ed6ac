"""`list.apply`: several changes of one list in a call, all or none.

A change looks like the call that would make it alone: its `method`, and the parameters of that method but for those
which the call as a whole has. So it has no structs of its own: they follow from those of the methods.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union, cast

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from punchlist_schemas import params as p
from punchlist_schemas.things import TaskId

MAKES: dict[str, type[p.Mutation]] = {
    "task.add": p.TaskAdd,
    "task.edit": p.TaskEdit,
    "task.set_status": p.TaskSetStatus,
    "task.claim": p.TaskClaim,
    "task.move": p.TaskMove,
    "task.delete": p.TaskDelete,
    "task.note": p.TaskNote,
}
"""What a change can be: the method, and the parameters that it stands for."""

OF_THE_CALL = frozenset((*p.Confirmable.__struct_fields__, "keep_equal"))
"""The parameters that the call as a whole has, and those that it does not take."""

_DOC = "One of the changes of `list.apply`, with the parameters of `{}`."
_DOC_OF_ADD = _DOC + " `ref` is a temporary name for the task, usable as its id by the changes behind this one."


def _own(field: FieldInfo) -> tuple[str, Any, Any]:
    if field.default is NODEFAULT and field.default_factory is NODEFAULT:
        return field.name, field.type, msgspec.field()
    if field.default_factory is NODEFAULT:
        return field.name, field.type, msgspec.field(default=field.default)
    return field.name, field.type, msgspec.field(default_factory=field.default_factory)


def _change(method: str, params: type[p.Mutation], more: Iterable[tuple[str, Any, Any]]) -> type[p.Params]:
    own = (_own(field) for field in fields(params) if field.name not in OF_THE_CALL)
    made = msgspec.defstruct(
        f"{params.__name__}Change",
        [*own, *more],
        bases=(p.Params,),
        module=__name__,
        namespace={"__doc__": (_DOC_OF_ADD if more else _DOC).format(method)},
        tag_field="method",
        tag=method,
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
        omit_defaults=True,
        gc=False,
    )
    return cast(type[p.Params], made)


_REF: tuple[str, Any, Any] = ("ref", Optional[TaskId], msgspec.field(default=None))  # noqa: UP045 - a value here
CHANGES = {_change(method, params, (_REF,) if params is p.TaskAdd else ()): params for method, params in MAKES.items()}
"""The struct of each change, and the parameters that it stands for."""

if TYPE_CHECKING:
    TaskChange = p.Params
else:
    TaskChange = Union[tuple(CHANGES)]  # noqa: UP007 - made of a table


class ListApply(p.Confirmable, frozen=True, kw_only=True):
    """Applies all `changes` in order, or none. Each sees the list as the previous one left it. A claim names its task.

    A refusal tells in `change` which of them, counted from 0, is the first that can't be made. It is one call for the
    log, and so for undo. On a connection that asks for confirmation it is two-step if it deletes tasks.
    """

    changes: Annotated[tuple[TaskChange, ...], msgspec.Meta(min_length=1, max_length=10_000)]


def method_of(change: p.Params) -> str:
    """The method that a change names."""
    tag = type(change).__struct_config__.tag
    assert isinstance(tag, str), "each change has its method as its tag"
    return tag
