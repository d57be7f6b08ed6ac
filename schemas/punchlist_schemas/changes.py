"""`list.apply`: several changes to one list in a single call, all or none.

A change has a `method` and the parameters of that method, except those that belong to the whole call. The structs of
changes are derived from those of the methods.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union, cast

import msgspec
from msgspec import NODEFAULT
from msgspec.structs import FieldInfo, fields

from punchlist_schemas import params as p
from punchlist_schemas.things import TaskId

CHANGE_PARAMS: dict[str, type[p.Mutation]] = {
    "task.add": p.TaskAdd,
    "task.edit": p.TaskEdit,
    "task.set_status": p.TaskSetStatus,
    "task.claim": p.TaskClaim,
    "task.move": p.TaskMove,
    "task.delete": p.TaskDelete,
    "task.note": p.TaskNote,
}
"""Methods that can be used as a change → their params."""

CALL_PARAMS = frozenset((*p.Confirmable.__struct_fields__, "keep_equal"))
"""Names of params that a change does not have: those that belong to the whole call, and `keep_equal`."""

_DOC = "One of the changes of `list.apply`, with the parameters of `{}`."
_DOC_OF_ADD = _DOC + " `ref` is a temporary name for the task, usable as its id in later changes of the call."


def _copy_field(field: FieldInfo) -> tuple[str, Any, Any]:
    if field.default is NODEFAULT and field.default_factory is NODEFAULT:
        return field.name, field.type, msgspec.field()
    if field.default_factory is NODEFAULT:
        return field.name, field.type, msgspec.field(default=field.default)
    return field.name, field.type, msgspec.field(default_factory=field.default_factory)


def _define_change(method: str, params: type[p.Mutation], more: Iterable[tuple[str, Any, Any]]) -> type[p.Params]:
    own = (_copy_field(field) for field in fields(params) if field.name not in CALL_PARAMS)
    struct = msgspec.defstruct(
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
    return cast(type[p.Params], struct)


_REF: tuple[str, Any, Any] = ("ref", Optional[TaskId], msgspec.field(default=None))  # noqa: UP045 - a value here
CHANGES = {
    _define_change(method, params, (_REF,) if params is p.TaskAdd else ()): params
    for method, params in CHANGE_PARAMS.items()
}
"""Struct of each change → params of its method."""

if TYPE_CHECKING:
    TaskChange = p.Params
else:
    TaskChange = Union[tuple(CHANGES)]  # noqa: UP007 - made of a table


class ListApply(p.Confirmable, frozen=True, kw_only=True):
    """Applies all `changes` in order, or none. Each applies to the result of the previous one. Claims need a `task`.

    In the error of a rejected call, `change` is the index, from 0, of the first change that failed. The log and undo
    treat all changes as one call. On a connection with `confirm`, the call needs confirmation if it deletes tasks.
    """

    changes: Annotated[tuple[TaskChange, ...], msgspec.Meta(min_length=1, max_length=10_000)]


def method_of(change: p.Params) -> str:
    """Return the method of a change."""
    tag = type(change).__struct_config__.tag
    assert isinstance(tag, str), "each change has its method as its tag"
    return tag
