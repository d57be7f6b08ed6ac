import json
import signal
import subprocess
import sys

from punchlist_apps.cli.printing.screen import build_frame, build_spinner_update, crop
from punchlist_apps.common.terminal.style import SPIN, Style
from punchlist_testing.unmeasured import unmeasured


def test_a_frame_replaces_the_previous_one() -> None:
    assert build_frame(["a", "b"], 0) == "\ra\x1b[K\nb\x1b[K\n\x1b[J"
    assert build_frame(["c"], 2) == "\x1b[2A\rc\x1b[K\n\x1b[J"


def test_cropped_lines_are_counted() -> None:
    assert crop(["a", "b"], 2, Style()) == ["a", "b"]
    assert crop(["a", "b", "c"], 2, Style()) == ["a", "  … 2 more lines"]


def test_a_signal_always_restores_the_cursor() -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "punchlist_testing.struck_screen"],
        env={**unmeasured(), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    ends = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert len(ends) > 200, "one signal for each step of the interpreter"
    for number, code, got in ends:
        assert code in (-number, 128 + number, 130), (number, code, got)
        assert got.rfind("\x1b[?25h") >= got.rfind("\x1b[?25l"), (number, code, got)
    ends_by_signal = {(number, code) for number, code, _ in ends}
    assert (signal.SIGTERM, 143) in ends_by_signal and (signal.SIGINT, 130) in ends_by_signal


def test_only_spinner_lines_are_redrawn() -> None:
    assert build_spinner_update(["head", f"  {SPIN} one", "two"], "⠙") == "\x1b[2A\r  ⠙ one\x1b[K\x1b[2B\r"
    assert build_spinner_update(["head", "two"], "⠙") == ""
