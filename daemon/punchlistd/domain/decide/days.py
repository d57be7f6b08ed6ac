"""Dates without a time: `due_day` and `not_before_day`, and the moments that follow from them.

A moment is kept beside each day, for callers that know moments alone, for sorting, and to wake deferred tasks. What is
due on a day is due until its end in UTC. A deferral ends where the day begins for the caller, if it says when that is.
"""

from calendar import monthrange, timegm
from typing import Any, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from punchlist_schemas import params as p
from punchlist_schemas.errors import Rejection
from punchlistd.domain.rejections import invalid
from punchlistd.domain.state.members import DAYS

_DAY_MS = 86_400_000
_FARTHEST_MS = 14 * 3_600_000
"""Upper limit for the distance of a zone's midnight from UTC's, in milliseconds."""

_Asked = TypeVar("_Asked", p.TaskAdd, p.NewTask)


def with_moments(asked: _Asked) -> _Asked | Rejection:
    """Add the moments of its days to a task of a call."""
    if asked.due_day is None and asked.not_before_day is None:
        return asked
    moments = _moments({name: getattr(asked, name) for pair in DAYS for name in pair})
    return moments if isinstance(moments, Rejection) else replace(asked, **moments)


def edit_with_moments(params: p.TaskEdit) -> p.TaskEdit | Rejection:
    """Add the moments of its days to an edit. An edit that clears a day also clears its moment."""
    asked = {name: value for pair in DAYS for name in pair if (value := getattr(params, name)) is not UNSET}
    if not asked:
        return params
    moments = _moments(asked)
    if isinstance(moments, Rejection):
        return moments
    for moment, day in DAYS:
        if day in asked and asked[day] is None:
            moments[moment] = asked.get(moment)
    return replace(params, **moments) if moments else params


def _moments(asked: dict[str, Any]) -> dict[str, Any] | Rejection:
    """Return the moments of a call's days, or the rejection of one."""
    found: dict[str, Any] = {}
    for moment, day in DAYS:
        text = asked.get(day)
        if text is None:
            continue
        year, month, number = map(int, text.split("-"))
        if number > monthrange(year, month)[1]:
            return invalid(
                day, "a day of the calendar", f"The calendar has no day {text}; write one such as 2026-12-24."
            )
        begins = timegm((year, month, number, 0, 0, 0)) * 1000
        if moment == "due":
            found[moment] = begins + _DAY_MS - 1
            continue
        found[moment] = begins or 1 if (at := asked.get(moment)) is None else at
        if abs(found[moment] - begins) > _FARTHEST_MS:
            message = f"The day {text} begins nowhere at {found[moment]}; leave `{moment}` out, or say when it begins."
            return invalid(moment, f"when {text} begins in some time zone", message)
    return found
