"""Dates without a time: `due_day` and `not_before_day`, and the moments computed from them.

A moment is stored with each day, for callers that use only moments, for sorting, and for waking deferred tasks. A task
is due at the end of its day in UTC. A deferral ends when the day starts in the caller's time zone if the caller sends
that moment, otherwise in UTC.
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
_MAX_OFFSET_MS = 14 * 3_600_000
"""Maximum difference between midnight in a time zone and midnight in UTC, in milliseconds."""

_Request = TypeVar("_Request", p.TaskAdd, p.NewTask)


def add_moments(request: _Request) -> _Request | Rejection:
    """Add the moments of a requested task's days."""
    if request.due_day is None and request.not_before_day is None:
        return request
    moments = _compute_moments({name: getattr(request, name) for pair in DAYS for name in pair})
    return moments if isinstance(moments, Rejection) else replace(request, **moments)


def add_edit_moments(params: p.TaskEdit) -> p.TaskEdit | Rejection:
    """Add the moments of an edit's days. An edit that clears a day also clears its moment."""
    request = {name: value for pair in DAYS for name in pair if (value := getattr(params, name)) is not UNSET}
    if not request:
        return params
    moments = _compute_moments(request)
    if isinstance(moments, Rejection):
        return moments
    for moment, day in DAYS:
        if day in request and request[day] is None:
            moments[moment] = request.get(moment)
    return replace(params, **moments) if moments else params


def _compute_moments(request: dict[str, Any]) -> dict[str, Any] | Rejection:
    """Return the moments of a call's days, or reject an invalid day."""
    moments: dict[str, Any] = {}
    for moment, day in DAYS:
        text = request.get(day)
        if text is None:
            continue
        year, month, number = map(int, text.split("-"))
        if number > monthrange(year, month)[1]:
            return invalid(day, "a calendar date", f"{text} is not a calendar date; write one such as 2026-12-24.")
        start_ms = timegm((year, month, number, 0, 0, 0)) * 1000
        if moment == "due":
            moments[moment] = start_ms + _DAY_MS - 1
            continue
        moments[moment] = start_ms or 1 if (requested := request.get(moment)) is None else requested
        if abs(moments[moment] - start_ms) > _MAX_OFFSET_MS:
            message = (
                f"{moments[moment]} is not the start of {text} in any time zone; leave `{moment}` out, or pass "
                "the start of that day."
            )
            return invalid(moment, f"the start of {text} in a time zone", message)
    return moments
