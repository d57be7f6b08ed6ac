import asyncio

import anyio

from punchlist_schemas.methods import METHODS
from punchlist_schemas.params import TaskAdd
from punchlist_testing.engine import Engine, Peer, TouchyLog, until
from punchlistd.engine.calls import Arrival, DaemonCaller, Write, stamp
from punchlistd.engine.lists.loaded import Place
from punchlistd.engine.writing.inbox import Inbox, Signal


async def test_early_signal_is_kept_once() -> None:
    signal = Signal()
    signal.give()
    signal.give()
    with anyio.fail_after(1):
        await signal.take()
    with anyio.move_on_after(0.01) as waited:
        await signal.take()
    assert waited.cancelled_caught


async def test_signal_wakes_all_waiters() -> None:
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


async def test_barrier_opens_when_earlier_writes_are_published(running: Engine, peer: Peer, log: TouchyLog) -> None:
    gate = log.hold()
    peer.send("task.add", {"conversation": "c", "title": "a"}, id=1)
    await gate.reached()
    passed = asyncio.ensure_future(running.inbox.barrier())
    await until(lambda: not running.inbox.queue)
    assert not passed.done()
    gate.open()
    with anyio.fail_after(30):
        assert await passed is None
    assert running.subscriptions.head == log.head > 0


async def test_barrier_opens_at_shutdown() -> None:
    inbox = Inbox()
    inbox.close()
    with anyio.fail_after(30):
        refused = await inbox.barrier()
    assert refused is not None and refused.kind == "shutting_down"


def test_posts_of_a_list_keep_their_order() -> None:
    inbox, add = Inbox(), TaskAdd(conversation="c", title="a")
    long = Write(DaemonCaller(), None, METHODS["task.add"], add, stamp(DaemonCaller(), add), is_long=True)
    posts = [Arrival(name, 1, Place(), Place(), [], lambda _: None) for name in ("a", "b", "a")]
    posts[0].is_long = True
    inbox.queue += (long, *posts)
    inbox.yield_to_others()
    assert list(inbox.queue) == [posts[1], long, posts[0], posts[2]]
