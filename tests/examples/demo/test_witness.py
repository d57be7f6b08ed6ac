import json
import subprocess
import threading
from collections.abc import Callable, Generator

import pytest

from punchlist_demo.witness import Witness

Process = subprocess.Popen[str]
PATIENCE_S = 30.0


@pytest.fixture
def process() -> Generator[Process]:
    """Prints what it gets."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.kill()


@pytest.fixture
def emit(process: Process) -> Callable[..., None]:
    def emit(*versions: int) -> None:
        assert process.stdin is not None
        for version in versions:
            process.stdin.write(json.dumps({"version": version}) + "\n")

    return emit


def test_each_event_is_counted(process: Process, emit: Callable[..., None]) -> None:
    witness = Witness(process)
    assert (witness.count, witness.in_order) == (0, True)
    emit(1, 2, 3)
    assert witness.wait_for(3, PATIENCE_S)
    assert (witness.count, witness.in_order) == (3, True)


@pytest.mark.parametrize("versions", [(1, 3), (1, 2, 2), (2,), (2, 1)], ids=["hole", "twice", "late", "swapped"])
def test_missing_or_repeated_events_are_noticed(
    process: Process, emit: Callable[..., None], versions: tuple[int, ...]
) -> None:
    witness = Witness(process)
    emit(*versions)
    assert witness.wait_for(len(versions), PATIENCE_S)
    assert not witness.in_order


def test_wait_for_missing_event_times_out(process: Process, emit: Callable[..., None]) -> None:
    witness = Witness(process)
    emit(1)
    assert witness.wait_for(1, PATIENCE_S)
    assert not witness.wait_for(2, 0.01)


def test_half_a_line_is_dropped(process: Process, emit: Callable[..., None]) -> None:
    witness = Witness(process)
    emit(1)
    assert process.stdin is not None
    process.stdin.write('{"version": ')
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    for thread in threading.enumerate():
        if thread.name == "demo-witness":
            thread.join(PATIENCE_S)
    assert (witness.count, witness.in_order) == (1, True)
