import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from punchlist_faults.process import daemon_in
from punchlist_testing.terminal import environment
from punchlistd.process.guards import Faults, Replaced, pick_exception, watch
from punchlistd.store.port import StorageFailed


async def test_lost_file_ends_the_daemon() -> None:
    looks = iter([True] * 20)
    with anyio.fail_after(30), pytest.raises(Replaced, match="/b was removed or replaced"):
        await watch({"/a": lambda: True, "/b": lambda: next(looks, False)}, 0.001)


async def test_check_wakes_no_thread() -> None:
    threads: set[int] = set()

    def look() -> bool:
        threads.add(threading.get_ident())
        return False

    with anyio.fail_after(30), pytest.raises(Replaced):
        await watch({"/a": look}, 0.001)
    assert threads == {threading.get_ident()}


async def test_exception_in_a_callback_propagates() -> None:
    faults = Faults()
    loop = asyncio.get_running_loop()
    with faults.capture(), anyio.fail_after(30):
        loop.call_soon(lambda: 1 // 0)
        loop.call_soon(int, "no number")
        with pytest.raises(ZeroDivisionError):
            await faults.raise_first()


async def test_other_loop_errors_keep_their_handler() -> None:
    loop = asyncio.get_running_loop()
    before, told = loop.get_exception_handler(), list[str]()
    loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
    with Faults().capture():
        loop.call_exception_handler({"message": "a connection broke", "exception": OSError(), "transport": None})
    loop.call_exception_handler({"message": "afterwards"})
    loop.set_exception_handler(None)
    with Faults().capture():
        loop.call_exception_handler({"message": "to the log"})
    loop.set_exception_handler(before)
    assert told == ["a connection broke", "afterwards"]


def test_most_specific_exception_of_a_group_is_found() -> None:
    unknown = StorageFailed("disk")
    group = ExceptionGroup("", [ValueError("x"), ExceptionGroup("", [Replaced("s"), unknown])])
    assert pick_exception(group, (StorageFailed, Replaced)) is unknown
    assert isinstance(pick_exception(group, ()), ValueError)


async def test_memory_error_propagates_after_the_announcement() -> None:
    announced: list[str] = []
    faults = Faults(lambda: announced.append("ends"))
    with faults.capture(), anyio.fail_after(30):
        asyncio.get_running_loop().call_exception_handler({"message": "a transport broke", "exception": MemoryError()})
        assert announced == ["ends"]
        with pytest.raises(MemoryError):
            await faults.raise_first()


def test_daemon_out_of_memory_keeps_acknowledged_calls(
    tmp_path: Path,
) -> None:
    """Running out of memory leaves a writer task that can't be cancelled, so the daemon must not wait for it to end."""
    with daemon_in(tmp_path) as daemon:
        daemon.plant = ("lost-wakeup",)
        daemon.start()
        link = daemon.connect()
        link.result("task.add", conversation="c", title="kept")
        link.send("task.add", {"conversation": "c", "title": "lost"})
        assert daemon.wait(15) == 70
        assert "did not stop within" in daemon.output()
        daemon.plant = ()
        daemon.start()
        kept = [task["title"] for task in daemon.connect().result("task.list", conversation="c")["tasks"]]
        assert kept == ["kept"], "the stuck writer neither ran nor answered the call"


@pytest.mark.parametrize(
    "ended",
    [
        "threading.Thread(target=lambda: 1 // 0).start()",
        "Bad()",
        "resort.start_timer()",
    ],
    ids=["thread", "unraisable", "overdue"],
)
def test_process_that_can_not_continue_exits_70(ended: str) -> None:
    script = f"""
import threading
from punchlistd.process import guards
class Bad:
    def __del__(self): raise MemoryError
guards.END_S = 0.1
resort = guards.LastResort(70)
{ended}
threading.Event().wait(20)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=False, env=environment()
    )
    assert done.returncode == 70, done.stderr
