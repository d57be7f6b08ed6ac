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
    """Prints what it is told."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        yield process
        process.kill()


@pytest.fixture
def tell(process: Process) -> Callable[..., None]:
    def tell(*versions: int) -> None:
        assert process.stdin is not None
        for version in versions:
            process.stdin.write(json.dumps({"version": version}) + "\n")

    return tell


def test_each_event_is_counted_and_announced(process: Process, tell: Callable[..., None]) -> None:
    announced = threading.Semaphore(0)
    witness = Witness(process, announced.release)
    assert (witness.count, witness.in_order, witness.pid) == (0, True, process.pid)
    tell(1, 2, 3)
    assert witness.wait_for(3, PATIENCE_S)
    assert (witness.count, witness.in_order) == (3, True)
    assert all(announced.acquire(timeout=PATIENCE_S) for _ in range(3))


@pytest.mark.parametrize("versions", [(1, 3), (1, 2, 2), (2,), (2, 1)], ids=["hole", "twice", "late", "turned round"])
def test_what_is_not_every_event_once_and_in_order_is_noticed(
    process: Process, tell: Callable[..., None], versions: tuple[int, ...]
) -> None:
    witness = Witness(process, lambda: None)
    tell(*versions)
    assert witness.wait_for(len(versions), PATIENCE_S)
    assert not witness.in_order


def test_waiting_for_what_does_not_come_ends_in_time(process: Process, tell: Callable[..., None]) -> None:
    witness = Witness(process, lambda: None)
    tell(1)
    assert witness.wait_for(1, PATIENCE_S)
    assert not witness.wait_for(2, 0.01)


def test_a_process_that_is_killed_in_the_middle_of_a_line_harms_nobody(
    process: Process, tell: Callable[..., None]
) -> None:
    witness = Witness(process, lambda: None)
    tell(1)
    assert process.stdin is not None
    process.stdin.write('{"version": ')
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    for thread in threading.enumerate():
        if thread.name == "demo-witness":
            thread.join(PATIENCE_S)
    assert (witness.count, witness.in_order) == (1, True)
