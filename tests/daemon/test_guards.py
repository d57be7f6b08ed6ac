import asyncio
import threading

import anyio
import pytest

from punchlistd.guards import Faults, Replaced, most_telling, watch
from punchlistd.store.port import StorageFailed


async def test_what_stays_ours_is_watched_for_ever_and_what_is_lost_ends_it() -> None:
    looks = iter([True] * 20)
    with anyio.fail_after(5), pytest.raises(Replaced, match="/b was removed or replaced"):
        await watch({"/a": lambda: True, "/b": lambda: next(looks, False)}, 0.001)


async def test_a_look_wakes_no_thread() -> None:
    threads: set[int] = set()

    def look() -> bool:
        threads.add(threading.get_ident())
        return False

    with anyio.fail_after(5), pytest.raises(Replaced):
        await watch({"/a": look}, 0.001)
    assert threads == {threading.get_ident()}


async def test_a_fault_in_a_callback_of_the_loop_rises() -> None:
    faults = Faults()
    loop = asyncio.get_running_loop()
    with faults.noticed(), anyio.fail_after(5):
        loop.call_soon(lambda: 1 // 0)
        loop.call_soon(int, "no number")
        with pytest.raises(ZeroDivisionError):
            await faults.rise()


async def test_what_is_no_fault_of_a_callback_goes_where_it_went_before() -> None:
    loop = asyncio.get_running_loop()
    before, told = loop.get_exception_handler(), list[str]()
    loop.set_exception_handler(lambda loop, context: told.append(context["message"]))
    with Faults().noticed():
        loop.call_exception_handler({"message": "a connection broke", "exception": OSError(), "transport": None})
    loop.call_exception_handler({"message": "afterwards"})
    loop.set_exception_handler(None)
    with Faults().noticed():
        loop.call_exception_handler({"message": "to the log"})
    loop.set_exception_handler(before)
    assert told == ["a connection broke", "afterwards"]


def test_the_most_telling_exception_of_a_group_is_found_at_any_depth() -> None:
    unknown = StorageFailed("disk")
    group = ExceptionGroup("", [ValueError("x"), ExceptionGroup("", [Replaced("s"), unknown])])
    assert most_telling(group, (StorageFailed, Replaced)) is unknown
    assert isinstance(most_telling(group, ()), ValueError)
