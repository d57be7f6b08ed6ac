import asyncio

import anyio

from punchlistd.engine.signal import Signal


async def test_a_signal_given_before_it_is_taken_is_not_lost_and_counts_once() -> None:
    signal = Signal()
    signal.give()
    signal.give()
    with anyio.fail_after(1):
        await signal.take()
    with anyio.move_on_after(0.01) as waited:
        await signal.take()
    assert waited.cancelled_caught


async def test_everybody_who_waits_is_woken_and_one_who_left_takes_nothing_along() -> None:
    signal = Signal()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await signal.take()
        woken.append(number)

    tasks = [asyncio.create_task(wait(number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0)
    signal.give()
    with anyio.fail_after(1):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert woken == [0, 2]
