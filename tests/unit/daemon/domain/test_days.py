"""Dates without a time: stored as days, with times that are updated with every change."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET

from punchlist_schemas import params as p
from punchlist_schemas.changes import CHANGES, ListApply
from punchlist_schemas.errors import Rejection
from punchlist_schemas.events import TaskEdited
from punchlist_schemas.things import Task
from punchlist_testing.domain import CONVERSATION, Recorder, check_invariants
from punchlistd.domain.commands import Wake
from punchlistd.domain.evolve import evolve
from punchlistd.domain.explain import explain
from punchlistd.domain.state.snapshot import dump_state, load_state

C: dict[str, Any] = {"conversation": CONVERSATION}
DAY = "3026-12-24"
HOUR = 3_600_000
EDIT: Any = next(change for change, params in CHANGES.items() if params is p.TaskEdit)


def midnight(day: str) -> int:
    return round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)


END = midnight("3026-12-25") - 1


def edit(recorder: Recorder, **members: Any) -> Any:
    return recorder.call(p.TaskEdit(**C, task="1", **members))


def due(recorder: Recorder) -> tuple[int | None, str | None]:
    task = recorder.state.tasks["1"]
    return task.due, task.due_day


def deferral(recorder: Recorder) -> tuple[int | None, str | None]:
    task = recorder.state.tasks["1"]
    return task.not_before, task.not_before_day


def test_a_day_is_due_until_its_end(recorder: Recorder) -> None:
    recorder.add("a", due_day=DAY)
    assert due(recorder) == (END, DAY)
    loaded = load_state(CONVERSATION, dump_state(recorder.state))
    assert loaded.ordered() == recorder.state.ordered()


def test_deferral_ends_in_the_callers_time_zone(recorder: Recorder) -> None:
    recorder.add("a", not_before_day=DAY)
    recorder.do(p.TaskAddMany(**C, tasks=(p.NewTask(title="b", not_before_day=DAY, not_before=midnight(DAY) - HOUR),)))
    assert deferral(recorder) == (midnight(DAY), DAY)
    assert recorder.state.tasks["2"].not_before == midnight(DAY) - HOUR
    (reason,) = explain(recorder.state, recorder.state.tasks["1"]).reasons
    assert reason.not_before_day == DAY
    check_invariants(recorder.state)


@pytest.mark.parametrize(
    ("member", "members"),
    [
        ("due_day", {"due_day": "3026-02-30"}),
        ("not_before_day", {"not_before_day": "3026-02-30"}),
        ("not_before", {"not_before_day": DAY, "not_before": midnight(DAY) + 15 * HOUR}),
    ],
)
@pytest.mark.parametrize("way", ["add", "add_many", "replace", "edit", "apply"])
def test_days_that_do_not_exist_are_rejected(
    recorder: Recorder, way: str, member: str, members: dict[str, Any]
) -> None:
    recorder.add("a")
    new = p.NewTask(title="b", **members)
    asked = {
        "add": p.TaskAdd(**C, title="b", **members),
        "add_many": p.TaskAddMany(**C, tasks=(new,)),
        "replace": p.ListReplace(**C, tasks=(new,)),
        "edit": p.TaskEdit(**C, task="1", **members),
        "apply": ListApply(**C, changes=(EDIT(task="1", **members),)),
    }[way]
    refused = recorder.call(asked)
    assert isinstance(refused, Rejection)
    assert (refused.kind, refused.data["field"]) == ("invalid_params", member)


def test_moment_replaces_a_day(recorder: Recorder) -> None:
    recorder.add("a", due_day=DAY, not_before_day=DAY)
    edit(recorder, due=END - HOUR, not_before=midnight(DAY) - HOUR)
    assert due(recorder) == (END - HOUR, None)
    assert deferral(recorder) == (midnight(DAY) - HOUR, None)
    recorder.do(p.ListUndo(**C))
    assert (due(recorder), deferral(recorder)) == ((END, DAY), (midnight(DAY), DAY))


def test_updated_moment_replaces_a_day(recorder: Recorder) -> None:
    recorder.add("a", due_day=DAY)
    recorder.do(p.ListReplace(**C, tasks=(p.NewTask(title="a", due=7),)))
    assert due(recorder) == (7, None)
    recorder.do(p.TaskAddMany(**C, tasks=(p.NewTask(title="a", task="1", due_day=DAY),)))
    assert due(recorder) == (END, DAY)
    recorder.do(p.ListReplace(**C, tasks=(p.NewTask(title="a"),)))
    assert due(recorder) == (END, DAY)


@pytest.mark.parametrize("cleared", ["due", "due_day"])
def test_null_clears_both(recorder: Recorder, cleared: str) -> None:
    recorder.add("a", due_day=DAY)
    edit(recorder, **{cleared: None})
    assert due(recorder) == (None, None)
    recorder.do(p.ListUndo(**C))
    assert due(recorder) == (END, DAY)
    edit(recorder, due_day=None, due=9)
    assert due(recorder) == (9, None)


def test_day_keeps_its_date_in_another_time_zone(recorder: Recorder) -> None:
    recorder.add("a", not_before_day=DAY)
    version = recorder.state.version
    edit(recorder, not_before_day=DAY, not_before=midnight(DAY) + HOUR)
    assert deferral(recorder) == (midnight(DAY) + HOUR, DAY)
    recorder.do(p.ListUndo(**C))
    assert deferral(recorder) == (midnight(DAY), DAY)
    edit(recorder, not_before_day=DAY, not_before=midnight(DAY) + HOUR)
    recorder.do(p.ListUndo(**C, to_version=version))
    assert deferral(recorder) == (midnight(DAY), DAY)
    brought = p.NewTask(title="a", task="1", not_before_day=DAY, not_before=midnight(DAY) - HOUR)
    recorder.do(p.TaskAddMany(**C, tasks=(brought,)))
    assert deferral(recorder) == (midnight(DAY) - HOUR, DAY)


def test_undo_keeps_a_day_whose_moment_changed(recorder: Recorder) -> None:
    recorder.add("a", due_day=DAY)
    edit(recorder, due=7)
    call = recorder.state.version
    edit(recorder, due=8)
    recorder.do(p.ListUndo(**C, call=call))
    assert due(recorder) == (8, None)


def test_restored_task_has_its_days(recorder: Recorder) -> None:
    recorder.add("a", due_day=DAY, not_before_day=DAY)
    before = recorder.state.tasks["1"]
    recorder.do(p.TaskDelete(**C, task="1"))
    recorder.do(p.ListUndo(**C))
    assert (due(recorder), deferral(recorder)) == ((before.due, DAY), (before.not_before, DAY))


def test_past_day_defers_no_longer(recorder: Recorder) -> None:
    recorder.at = midnight("2026-12-24")
    recorder.add("a", not_before_day="2026-12-24")
    assert deferral(recorder) == (None, None)
    edit(recorder, not_before_day=DAY)
    recorder.at = midnight(DAY)
    recorder.do(Wake(**C))
    assert deferral(recorder) == (None, None)


def test_older_members_of_a_space_read_moments(recorder: Recorder) -> None:
    recorder.add("a", due_day=DAY)
    evolve(recorder.state, TaskEdited("1", due=7), 9, 9, 9)
    assert due(recorder) == (7, None)


def test_task_without_days_omits_them(recorder: Recorder) -> None:
    recorder.add("a", due=7)
    (event,) = edit(recorder, due=8).events
    assert event == TaskEdited("1", due=8) and event.due_day is UNSET


def test_days_are_the_last_members_of_tasks() -> None:
    assert Task.__struct_fields__[-2:] == ("due_day", "not_before_day")
