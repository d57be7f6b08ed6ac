"""Spans of tasks in progress, and numbers of tasks over time."""

from random import Random
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.things import MAX_INTEGER, Gate, SettingsPatch, Span, Totals
from punchlist_testing.domain import CONVERSATION, Recorder, replay
from punchlistd.domain.spans import ListReader, Spans
from punchlistd.domain.state import initial_state
from punchlistd.domain.state.tally import Tally

MINUTE = 60_000


def read(
    recorder: Recorder, from_at: int = 1, to_at: int = MAX_INTEGER, limit: int = 1_000, start: int = 0
) -> tuple[tuple[Span, ...], tuple[Totals, ...], bool]:
    """Read the recorder's spans, from the state after its first `start` events."""
    spans = Spans(from_at, to_at, recorder.at, limit)
    facts, tally = recorder.facts, Tally()
    for fact in facts:
        tally.add(fact.at, fact.version, fact.seq, fact.actor)
    state = replay(CONVERSATION, facts[:start]) if start else initial_state(CONVERSATION)
    reader = ListReader(state, spans, tally.find_last(to_at))
    for fact in facts[start:]:
        if not reader.follow(fact):
            break
    reader.finish()
    return *spans.build(), spans.is_cut


def show(spans: tuple[Span, ...]) -> list[tuple[Any, ...]]:
    return [(s.task, s.owner, s.outcome, None if s.to_at is None else s.to_at - s.from_at) for s in spans]


def claim(recorder: Recorder, task: str, owner: str) -> None:
    recorder.do(p.TaskClaim(conversation=CONVERSATION, task=task, owner=owner))


def wait(recorder: Recorder, minutes: int) -> None:
    recorder.at += minutes * MINUTE - 7


def test_each_outcome_ends_a_span(recorder: Recorder) -> None:
    recorder.add("done", estimate_ms=5)
    recorder.add("failed")
    recorder.add("asks", gate=Gate(yes=True))
    recorder.add("given back")
    recorder.add("deleted")
    recorder.add("runs")
    for task in "123456":
        claim(recorder, task, f"a{task}")
    for task, status in (("1", "completed"), ("2", "failed"), ("3", "completed"), ("4", "pending")):
        wait(recorder, 10)
        recorder.set_status(task, status)
    recorder.do(p.TaskDelete(conversation=CONVERSATION, task="5"))
    spans, _, is_cut = read(recorder)
    assert [(s.task, s.owner, s.outcome) for s in spans] == [
        ("1", "a1", "completed"),
        ("2", "a2", "failed"),
        ("3", "a3", "waits"),
        ("4", "a4", "released"),
        ("5", "a5", "released"),
        ("6", "a6", "running"),
    ]
    assert (spans[0].title, spans[0].estimate_ms, spans[5].to_at, is_cut) == ("done", 5, None, False)
    assert recorder.state.tasks["1"].version == spans[0].version


def test_spans_of_an_hour_equal_the_time_spent(recorder: Recorder) -> None:
    recorder.do(p.ConversationOpen(conversation=CONVERSATION, settings=SettingsPatch(max_attempts=3)))
    for number in range(5):
        recorder.add(f"t{number}")
    chance = Random(7)
    for _ in range(60):
        wait(recorder, 1)
        task = str(chance.randrange(1, 6))
        if recorder.state.tasks[task].status == "pending":
            claim(recorder, task, f"a{task}")
        else:
            recorder.set_status(task, chance.choice(("completed", "failed", "pending", "paused", "in_progress")))
    spans, _, _ = read(recorder)
    for task in recorder.state.tasks.values():
        lengths = [s.to_at - s.from_at for s in spans if s.task == task.id and s.to_at is not None]
        assert abs(sum(lengths) - task.spent_ms) < 1_000, task


def test_another_owner_begins_another_span(recorder: Recorder) -> None:
    recorder.add("t", status="in_progress")
    wait(recorder, 1)
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="1", owner="ann"))
    wait(recorder, 2)
    recorder.do(p.TaskEdit(conversation=CONVERSATION, task="1", owner="bob"))
    wait(recorder, 3)
    recorder.set_status("1", "completed")
    assert show(read(recorder)[0]) == [
        ("1", "ann", "released", 3 * MINUTE),
        ("1", "bob", "completed", 3 * MINUTE),
    ]


def test_a_clear_ends_all_spans(recorder: Recorder) -> None:
    recorder.add("a", status="in_progress")
    recorder.add("b", status="in_progress")
    recorder.do(p.ListClear(conversation=CONVERSATION))
    recorder.add("c", status="in_progress")
    spans, totals, _ = read(recorder)
    assert [s.outcome for s in spans] == ["released", "released", "running"]
    assert totals[-1] == Totals(at=recorder.at, all=1, done=0, failed=0)


def test_a_span_that_ends_before_it_begins_is_a_point(recorder: Recorder) -> None:
    recorder.at = 100 * MINUTE
    recorder.add("t", status="in_progress")
    recorder.at = MINUTE
    recorder.set_status("1", "completed")
    recorder.at = 200 * MINUTE
    (span,) = read(recorder)[0]
    assert span.to_at == span.from_at > 99 * MINUTE


def test_an_event_while_the_clock_was_ahead_hides_no_later_spans(recorder: Recorder) -> None:
    recorder.at = 100 * MINUTE
    recorder.add("t")
    recorder.at = 900 * MINUTE
    recorder.add("added while the clock was ahead")
    recorder.at = 101 * MINUTE
    recorder.set_status("1", "in_progress")
    wait(recorder, 5)
    recorder.set_status("1", "completed")
    wait(recorder, 5)
    spans, totals, _ = read(recorder, 90 * MINUTE, recorder.at)
    assert show(spans) == [("1", "", "completed", 5 * MINUTE)]
    assert totals[-1] == Totals(at=recorder.at, all=2, done=1, failed=0)
    assert read(recorder, 90 * MINUTE, 100 * MINUTE)[1][-1].all == 0


def test_latest_spans_are_kept(recorder: Recorder) -> None:
    recorder.add("t")
    for _ in range(50):
        wait(recorder, 1)
        recorder.set_status("1", "in_progress")
        recorder.set_status("1", "pending")
    spans, _, is_cut = read(recorder, limit=7)
    assert is_cut and spans == read(recorder)[0][-7:]


@pytest.mark.parametrize("seed", range(12))
def test_window_selects_spans_and_totals(seed: int) -> None:
    print("seed", seed)
    chance, recorder = Random(seed), Recorder()
    recorder.at = 1_000 * MINUTE
    for _ in range(120):
        recorder.at += chance.randrange(MINUTE)
        tasks = [*recorder.state.tasks.values()]
        if not tasks or chance.random() < 0.2:
            recorder.add("t", status=chance.choice(("pending", "in_progress", "failed")))
        elif chance.random() < 0.1:
            recorder.do(p.TaskDelete(conversation=CONVERSATION, task=chance.choice(tasks).id))
        else:
            recorder.set_status(
                chance.choice(tasks).id, chance.choice(("in_progress", "completed", "failed", "pending"))
            )
    facts = recorder.facts
    begin, end = sorted(chance.randrange(facts[0].at, facts[-1].at) for _ in range(2))
    start = sum(fact.at < begin for fact in facts)
    spans, totals, _ = read(recorder, begin, end, start=start)
    every, _, _ = read(recorder)
    assert [(s.task, s.from_at, s.to_at, s.outcome) for s in spans] == [
        (s.task, s.from_at, s.to_at, s.outcome)
        for s in every
        if s.from_at <= end and (s.to_at is None or s.to_at >= begin)
    ]
    assert len(totals) <= 240 and (not totals or totals[-1].at == end)
    for total in totals[:: max(1, len(totals) // 20)]:
        counts = replay(CONVERSATION, [fact for fact in facts if fact.at <= total.at]).counts()
        everything = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
        assert (total.all, total.done, total.failed) == (everything, counts.completed, counts.failed)
