"""The part of the history that is kept for undo."""

from random import Random
from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_testing.domain import CONVERSATION, Recorder, random_call, strip_stamps
from punchlistd.domain.undo.lookback import build_aim

C: dict[str, Any] = {"conversation": CONVERSATION}


def test_newest_calls_are_kept_and_marked_as_truncated(recorder: Recorder) -> None:
    for title in "abcd":
        recorder.add(title)
    whole, cut = recorder.look_back(), recorder.look_back(depth=2)
    assert (list(whole.calls), whole.is_cut) == ([1, 3, 4, 5], False)
    assert (list(cut.calls), cut.is_cut) == ([4, 5], True)
    assert strip_stamps(cut.state) == strip_stamps(recorder.state)
    assert cut.seq == recorder.seq


def test_undone_calls_and_undos_are_skipped(recorder: Recorder) -> None:
    recorder.add("a")
    recorder.do(p.TaskDelete(**C, task="1"))
    recorder.do(p.ListUndo(**C))
    past = recorder.look_back()
    assert list(past.calls) == [1]
    assert past.last_restored("1", recorder.state.tasks["1"].created_at) == 4


def test_changes_of_others_count_until_undone(recorder: Recorder) -> None:
    recorder.call(p.TaskAdd(**C, title="a"), "ann")
    recorder.call(p.TaskEdit(**C, task="1", title="b"), "bob")
    recorder.call(p.ListClear(**C), "bob")
    past = recorder.look_back("ann")
    assert (past.last_touched("1"), past.last_clear, recorder.look_back("bob").last_clear) == (3, 4, 0)
    recorder.do(p.ListUndo(**C, of="bob"), "cat")
    past = recorder.look_back("ann")
    assert (past.last_touched("1"), past.last_clear) == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_shorter_lookback_gives_the_same_or_reports_truncation(seed: int) -> None:
    random, recorder = Random(seed), Recorder()
    for _ in range(60):
        call = random_call(random, recorder.state)
        if random.random() < 0.2:
            call = p.ListUndo(**C, of=random.choice((None, "ann", "bob")), count=random.choice((1, 2, 5)))
            whole = recorder.decide_undo(call)
            assert whole is not None
            for depth in (1, 3, 10):
                less = recorder.decide_undo(call, depth)
                assert less in (None, whole), (build_aim(call), depth)
        recorder.call(call, random.choice(("ann", "bob")))
