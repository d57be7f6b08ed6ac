from pathlib import Path
from typing import Any

import msgspec
import pytest

from punchlist.calls.cursor import (
    BoardStart,
    BoardView,
    Change,
    Cursor,
    EventsView,
    FoldView,
    ListView,
    RowsView,
    TaskList,
    to_predicate,
)
from punchlist.errors import Gap, WrongEpoch
from punchlist_schemas.events import StatusChanged, UnknownEvent
from punchlist_schemas.jsonrpc import Notice
from punchlist_schemas.results import BoardPush, ListPush, RowsPush, SubscribeResult
from punchlist_schemas.things import Conversation, Counts


def events(*seqs: int) -> Notice:
    event = {"type": "StatusChanged", "task": "1", "from": "pending", "to": "in_progress"}
    rows = [{"seq": n, "conversation": "c", "version": n, "at": 1, "actor": "a", "event": event} for n in seqs]
    return Notice("events", msgspec.Raw(msgspec.json.encode({"subscription": "s", "events": rows})))


def newest(version: int, **counts: int) -> Notice:
    push = ListPush(
        subscription="s", conversation="c", version=version, seq=version + 100, tasks=(), counts=Counts(**counts)
    )
    return Notice("list", msgspec.Raw(msgspec.json.encode(push)))


def answer(seq: int, epoch: str = "e1", version: int | None = None) -> SubscribeResult:
    return SubscribeResult(subscription="s", seq=seq, epoch=epoch, version=version)


def seqs(changes: list[Change]) -> list[int]:
    return [change.seq for change in changes]


def test_subscription_resumes_after_last_event_without_duplicates() -> None:
    cursor = Cursor("c", EventsView())
    assert cursor.subscribe().after is None
    assert cursor.begin(answer(10)) == []
    assert seqs(cursor.take(events(11, 12))) == [11, 12]
    again = cursor.subscribe()
    assert (again.conversation, again.after, again.epoch) == ("c", 12, "e1")
    assert cursor.begin(answer(12)) == []
    assert seqs(cursor.take(events(11, 12, 13))) == [13]
    assert seqs(cursor.take(events(13))) == []


def test_subscription_without_events_resumes_at_start() -> None:
    cursor = Cursor(None, EventsView())
    cursor.begin(answer(10))
    assert cursor.subscribe().after == 10


def test_position_of_another_log_is_an_error() -> None:
    cursor = Cursor("c", EventsView())
    cursor.begin(answer(10, "e1"))
    with pytest.raises(WrongEpoch) as caught:
        cursor.begin(answer(2, "e2"))
    assert (caught.value.epoch, caught.value.expected) == ("e1", "e2")


def test_external_position_is_sent_with_its_epoch() -> None:
    params = Cursor("c", EventsView(), after=7, epoch="e0").subscribe()
    assert (params.after, params.epoch) == (7, "e0")


def test_subscription_end_raises_its_cause() -> None:
    error = {"code": -32014, "message": "gone", "data": {"kind": "gap", "after": 3, "first": 9}}
    end = Notice("end", msgspec.Raw(msgspec.json.encode({"subscription": "s", "error": error, "next": 3})))
    with pytest.raises(Gap) as caught:
        Cursor("c", EventsView()).take(end)
    assert (caught.value.after, caught.value.first, caught.value.behind) == (3, 9, 8)


def test_notifications_of_no_concern_are_passed_over() -> None:
    assert Cursor("c", EventsView()).take(newest(1)) == []
    assert Cursor("c", EventsView()).take(Notice("a.later.one")) == []


def test_list_view_yields_current_list_then_newer_ones() -> None:
    cursor = Cursor("c", ListView())
    assert cursor.subscribe().view == "list"
    assert [tasks.version for tasks in cursor.begin(answer(5, version=3))] == [3]
    assert [tasks.version for tasks in cursor.take(newest(4))] == [4]
    assert cursor.subscribe().after is None
    assert cursor.begin(answer(6, version=4)) == []
    assert [tasks.version for tasks in cursor.begin(answer(9, version=7))] == [7]


@pytest.mark.parametrize("view", [ListView(), FoldView(), RowsView()])
def test_changed_list_state_is_yielded_without_new_events(
    view: Any,
) -> None:
    cursor = Cursor("c", view)

    def told(seq: int, state: str = "") -> list[str | None]:
        shared = {"shared": {"space": "team", "state": state}} if state else {}
        told = {"subscription": "s", "conversation": "c", "version": seq, "seq": seq, "counts": {}, **shared}
        tasks = "tasks" if view.name == "list" else "rows"
        items = cursor.take(Notice(view.name, msgspec.Raw(msgspec.json.encode({**told, tasks: ()}))))
        return [None if item.shared is None else item.shared.state for item in items]

    assert told(4) == [None]
    assert (told(4, "offline"), told(4, "offline"), told(4)) == (["offline"], [], [None])
    assert (told(3, "offline"), told(5, "behind"), told(5)) == ([], ["behind"], [None])


def test_truncated_list_is_yielded_after_restart() -> None:
    for epoch in ("e1", "e2"):  # truncated at the damage, then with the damage removed from the log
        cursor = Cursor("c", ListView())
        assert [tasks.version for tasks in cursor.begin(answer(9, version=7))] == [7]
        assert [tasks.version for tasks in cursor.begin(answer(5, epoch, version=4))] == [4]
        assert cursor.begin(answer(5, epoch, version=4)) == []
        assert [tasks.version for tasks in cursor.take(newest(5))] == [5]


def test_rows_of_another_log_start_over() -> None:
    cursor = Cursor("c", RowsView())
    cursor.begin(answer(9, "e1"))
    push = RowsPush(subscription="s", conversation="c", version=7, seq=9, rows=(), counts=Counts(), reset=True)
    cursor.take(Notice("rows", msgspec.Raw(msgspec.json.encode(push))))
    assert (cursor.subscribe("e1").after, cursor.subscribe("e1").epoch) == (9, "e1")
    assert (cursor.subscribe("e2").after, cursor.subscribe("e2").epoch) == (None, None)
    cursor.begin(answer(5, "e2"))
    assert cursor.subscribe("e2").epoch is None


def test_unknown_event_stays_undecoded() -> None:
    (change,) = Cursor("c", EventsView()).take(events(1))
    assert change.event == StatusChanged("1", "pending", "in_progress")
    row = {"seq": 2, "conversation": "c", "version": 2, "at": 1, "actor": "a", "event": {"type": "Novel", "x": 1}}
    push = Notice("events", msgspec.Raw(msgspec.json.encode({"subscription": "s", "events": [row]})))
    (novel,) = Cursor("c", EventsView()).take(push)
    assert isinstance(novel.event, UnknownEvent)
    assert msgspec.json.decode(novel.event.raw) == {"type": "Novel", "x": 1}


def tasks(version: int, **counts: int) -> TaskList:
    return TaskList((), Counts(**counts), version=version, seq=version, total=0)


def test_done_means_no_unfinished_tasks() -> None:
    done = to_predicate("done")
    assert done(tasks(1, completed=3, failed=1))
    assert not any(done(tasks(1, **{status: 1})) for status in ("pending", "in_progress", "paused"))


def test_idle_means_no_running_or_ready_tasks() -> None:
    idle = to_predicate("idle")
    assert idle(tasks(1, pending=2, blocked=2))
    assert not idle(tasks(1, in_progress=1))
    assert not idle(tasks(1, pending=1, ready=1))


def test_change_means_version_differs_from_first() -> None:
    changed = to_predicate("change")
    assert [changed(tasks(version)) for version in (3, 3, 4)] == [False, False, True]


ROWS = Path(__file__).parents[4] / "golden" / "rows.jsonl"
"""Pushes of the view `rows`, the folded list after each, and the positions where a reader was cut off and resumed."""


def test_folded_rows_equal_list() -> None:
    view, lists, seqs = RowsView(), list[TaskList](), set[int]()
    for line in ROWS.read_text().splitlines():
        each = msgspec.json.decode(line)
        if "push" in each:
            lists += view.items(msgspec.Raw(msgspec.json.encode(each["push"])))
        elif "cut" in each:
            assert lists[-1].seq == each["cut"]
            view.first(answer(each["cut"]))
        else:
            shown = [[task.id, task.status, task.version, task.title, list(task.open_blockers)] for task in lists[-1]]
            assert shown == each["list"]
            seqs.add(each["seq"])
    assert len(seqs) > 30


def test_rows_resume_after_last_complete_list() -> None:
    def push(seq: int, id: str, **more: Any) -> Notice:
        row = {"id": id, "rank": id, "title": "x", "status": "pending", "priority": "normal", "version": 1, **times}
        told: Any = {"subscription": "s", "conversation": "c", "version": seq, "seq": seq, "rows": [row], "counts": {}}
        return Notice("rows", msgspec.Raw(msgspec.json.encode({**told, **more})))

    times = {"created_at": 1, "updated_at": 1, "status_changed_at": 1}
    cursor = Cursor("c", RowsView())
    assert cursor.subscribe().after is None
    assert cursor.begin(answer(0)) == []
    assert cursor.take(push(0, "a1", reset=True, more=True)) == []
    assert cursor.subscribe().after is None
    (tasks,) = cursor.take(push(9, "a2"))
    assert [task.id for task in tasks] == ["a1", "a2"]
    assert (cursor.subscribe().after, cursor.subscribe().view) == (9, "rows")
    assert cursor.take(push(9, "a7", reset=True, more=True)) == []
    assert cursor.begin(answer(9)) == []
    (tasks,) = cursor.take(push(10, "a3"))
    assert [task.id for task in tasks] == ["a1", "a2", "a3"]


def test_board_starts_once_per_log() -> None:
    def card(seq: int, name: str) -> Notice:
        thing = Conversation(conversation=name, version=1, counts=Counts(), created_at=1, updated_at=1)
        return Notice("board", msgspec.Raw(msgspec.json.encode(BoardPush(subscription="s", seq=seq, card=thing))))

    cursor = Cursor(None, BoardView())
    assert cursor.begin(answer(9)) == [BoardStart(9)]
    told = [item for name in "ab" for item in cursor.take(card(9, name))]
    assert [push.card.conversation for push in told if isinstance(push, BoardPush)] == ["a", "b"]
    assert len(cursor.take(card(10, "a"))) == 1
    assert cursor.take(card(9, "late")) == []
    assert (cursor.subscribe().view, cursor.subscribe().after) == ("board", 10)
    assert cursor.begin(answer(12)) == []
    assert cursor.subscribe("e2").after is None
    assert cursor.begin(answer(3, "e2")) == [BoardStart(3)]
