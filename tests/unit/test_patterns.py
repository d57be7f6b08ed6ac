"""The run time of regular expressions grows linearly with the length of their text, or more slowly."""

import os
import subprocess
import sys

import pytest

from punchlist_testing.patterns import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(330)]


def slow_patterns(*sources: str) -> list[str]:
    """Return a line for each slow pattern in these sources, or in all of them.

    A separate process has no other threads that affect the measurement.
    """
    done = subprocess.run(
        [sys.executable, "-m", "punchlist_testing.patterns", *sources],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests/support")},
    )
    return done.stdout.splitlines()


def test_no_pattern_takes_more_than_linear_time() -> None:
    assert slow_patterns() == []


def test_slow_patterns_are_found() -> None:
    slow = (r"[ \t]*<!--", r"\[\[([^\]]+)\]", r"(a|a)*b")
    assert len(slow_patterns(*slow)) == len(slow)
