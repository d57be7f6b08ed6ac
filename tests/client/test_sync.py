"""What only the blocking face has: many threads on one client."""

import threading

from punchlist import connect
from punchlist_testing.daemon import Running


def test_threads_share_a_client(daemon: Running) -> None:
    with connect(socket=daemon.socket, autostart=False) as client:
        plan = client.conversation("c")
        threads = [threading.Thread(target=lambda: [plan.add("t") for _ in range(20)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert [task.id for task in plan.list()] == [str(n) for n in range(1, 161)]


def test_a_watch_that_is_left_behind_lets_go_of_its_connection(daemon: Running) -> None:
    with connect(socket=daemon.socket, autostart=False) as client:
        plan = client.conversation("c")
        plan.add("one")
        for change in plan.watch(after=0):
            assert change.version == 1
            break
        for _ in range(100):
            if not client.status().subscriptions:
                break
        assert client.status().subscriptions == ()
