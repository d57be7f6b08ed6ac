"""Features of the blocking face only: threads that share a client, and finalizers."""

import gc
import threading
import time
from collections import Counter
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from punchlist import Client, ConnectionLost, Conversation, TimedOut, connect
from punchlist.connection.portal import portal
from punchlist_testing.blocking import PATIENCE_S, eventually, waits
from punchlist_testing.daemon import Running


@pytest.fixture
def client(daemon: Running) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, timeout_s=5) as client:
        yield client


@pytest.fixture
def plan(client: Client) -> Conversation:
    return client.conversation("c")


# threads


def test_threads_share_a_client(plan: Conversation) -> None:
    def add() -> list[int]:
        return [int(plan.add("t").id) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(add) for _ in range(8)]
        assert sorted(one for ids in made for one in ids.result(PATIENCE_S)) == list(range(1, 161))


def test_waiting_call_delays_no_other_thread(client: Client, plan: Conversation) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.conversation("empty").take, "ann", wait_ms=60_000)
        assert eventually(waits)
        began = time.monotonic()
        for _ in range(20):
            plan.add("t")
        assert time.monotonic() - began < 5
        assert not waiting.done()
        client.conversation("empty").add("at last")
        taken = waiting.result(PATIENCE_S).task
        assert taken is not None and taken.title == "at last"


def test_shared_client_works_each_task_once(client: Client, plan: Conversation) -> None:
    """Six workers share one client. Some wait for a task while bodies of others run for longer than a lease."""
    plan.add_many([f"job {n}" for n in range(4)])
    runs: Counter[str] = Counter()

    def work(worker: int) -> None:
        with client.conversation("c").work(f"w{worker}", lease_ms=1_000, wait_ms=1_400) as tasks:
            for task in tasks:
                runs[task.id] += 1
                with client.conversation("c").watch() as changes, pytest.raises(TimedOut):
                    while True:  # the body takes longer than its lease
                        changes.next(timeout_s=1.2)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, n) for n in range(6)]:
            done.result(PATIENCE_S)
    assert runs == {"1": 1, "2": 1, "3": 1, "4": 1}
    assert {task.status for task in plan.list()} == {"completed"}


def test_closed_client_ends_calls_and_is_reusable(client: Client, plan: Conversation) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(plan.take, "ann", wait_ms=60_000)
        assert eventually(waits)
        client.close()
        with pytest.raises(ConnectionLost, match="closed"):
            waiting.result(PATIENCE_S)
    assert plan.add("one").id == "1"


# Abandoned objects


def test_abandoned_watch_releases_its_connection(client: Client, plan: Conversation) -> None:
    plan.add("one")
    for change in plan.watch(after=0):
        assert change.version == 1
        break
    gc.collect()
    assert eventually(lambda: client.status().subscriptions == ())


def test_abandoned_client_releases_its_connection(client: Client, daemon: Running) -> None:
    connect(socket=daemon.socket, autostart=False, name="forgotten")
    gc.collect()
    assert eventually(lambda: [one.name for one in client.status().clients] == ["python"])


def test_finalizer_does_not_wait(plan: Conversation) -> None:
    """A Work object in a reference cycle can be collected at any time, even in the loop's thread during a call."""
    plan.add("one")

    def leave() -> None:
        work = plan.work("w")
        work.take()
        cycle: list[object] = [work]
        cycle.append(cycle)

    gc.disable()
    try:
        leave()
        done = threading.Event()

        async def collect() -> None:
            gc.collect()
            done.set()

        portal().call(collect)
        assert done.is_set()
    finally:
        gc.enable()
    assert eventually(lambda: plan.get("1").status == "pending")
