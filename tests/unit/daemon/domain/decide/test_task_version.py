"""`task_version`: a change is rejected if its task has changed since the caller read it."""

from typing import Any

import msgspec
import pytest

from punchlist_schemas import params as p
from punchlist_schemas.changes import ListApply
from punchlist_schemas.errors import Rejection
from punchlist_testing.domain import CONVERSATION, Recorder
from punchlistd.domain.commands import Decision

C: dict[str, Any] = {"conversation": CONVERSATION}

CALLS: list[tuple[type[p.Mutation], dict[str, Any]]] = [
    (p.TaskEdit, {"title": "changed"}),
    (p.TaskSetStatus, {"status": "failed"}),
    (p.TaskMove, {"to_end": True}),
    (p.TaskDelete, {}),
]


@pytest.fixture
def recorder() -> Recorder:
    recorder = Recorder()
    recorder.add("one")
    recorder.add("two")
    return recorder


def edit(recorder: Recorder, task: str, title: str) -> None:
    recorder.do(p.TaskEdit(**C, task=task, title=title))


def apply(recorder: Recorder, *changes: dict[str, Any]) -> Decision | Rejection:
    return recorder.call(msgspec.convert({**C, "changes": changes}, ListApply))


@pytest.mark.parametrize(("call", "members"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_change_of_a_changed_task_is_rejected(recorder: Recorder, call: Any, members: dict[str, Any]) -> None:
    seen = recorder.state.tasks["1"].version
    edit(recorder, "2", "another task")
    assert isinstance(recorder.call(call(**C, task="1", task_version=seen, **members)), Decision)
    recorder.do(p.ListUndo(**C))
    edit(recorder, "1", "reworded")
    rejection = recorder.call(call(**C, task="1", task_version=seen, **members))
    assert isinstance(rejection, Rejection)
    now = recorder.state.tasks["1"].version
    assert (rejection.kind, rejection.data) == (
        "version_conflict",
        {"task": "1", "expected": seen, "actual": now},
    )
    assert isinstance(recorder.call(call(**C, task="1", task_version=now, **members)), Decision)


def test_changes_are_compared_with_versions_before_the_call(recorder: Recorder) -> None:
    seen = recorder.state.tasks["1"].version
    owner = {"method": "task.edit", "task": "1", "owner": "codex", "task_version": seen}
    reopened = {"method": "task.set_status", "task": "1", "status": "paused", "task_version": seen}
    assert isinstance(apply(recorder, owner, reopened), Decision)
    rejection = apply(recorder, {"method": "task.add", "title": "new"}, owner)
    assert isinstance(rejection, Rejection)
    assert (rejection.kind, rejection.data["task"], rejection.data["change"]) == ("version_conflict", "1", 1)
    assert len(recorder.state.tasks) == 2


def test_version_of_a_task_needs_one_task(recorder: Recorder) -> None:
    rejection = recorder.call(p.TaskDelete(**C, tasks=("1", "2"), task_version=2))
    assert isinstance(rejection, Rejection)
    assert (rejection.kind, rejection.data["field"]) == ("invalid_params", "task_version")


def test_unknown_task_is_not_a_conflict(recorder: Recorder) -> None:
    rejection = recorder.call(p.TaskMove(**C, task="9", to_end=True, task_version=2))
    assert isinstance(rejection, Rejection)
    assert rejection.kind == "not_found"
