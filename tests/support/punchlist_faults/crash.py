"""`kill -9` again and again under load: nine clients keep a journal and ask again, and nothing answered may be lost.

One client is bound to a user. Subscribers to every view, of this user and unbound, resume behind what they have.

SIZE counts kills.
"""

import time

from punchlist_faults import judge
from punchlist_faults.load import Follower, workers
from punchlist_faults.options import Figures, Options, Violation, main, need, workplace
from punchlist_faults.process import daemon_in, eventually
from punchlist_faults.viewers import USER, WATCHED, Viewer, judge_all

CLIENTS = 8


def run(options: Options) -> Figures:
    """Kill as often as SIZE says, then judge."""
    random = options.random()
    starts: list[float] = []
    with workplace() as place, daemon_in(place) as daemon:
        starts.append(daemon.start())
        follower = Follower(daemon.socket)
        viewers = [Viewer(daemon.socket, options.random(each), *each) for each in WATCHED]
        with (
            workers(daemon.socket, CLIENTS, random) as anybody,
            workers(daemon.socket, 1, random, first=CLIENTS, user=USER) as bound,
        ):
            crowd = [*anybody, *bound]
            for _ in range(options.size):
                time.sleep(random.uniform(0.02, 0.3))
                daemon.kill()
                starts.append(daemon.start())
            for worker in crowd:
                worker.finish()
            for worker in crowd:
                worker.join()
        journal = [entry for worker in crowd for entry in worker.journal]
        link = daemon.connect()
        head = link.result("event.subscribe")["seq"]
        link.close()
        try:
            eventually(lambda: follower.caught_up(head), 30, "the subscriber has everything")
        finally:
            follower.close()
        if follower.failure is not None:
            raise Violation("the subscriber failed") from follower.failure
        need(follower.seqs == list(range(1, head + 1)), "the subscriber missed events or got some twice")
        daemon.stop()
        events = judge.stored_events(daemon.log)
        daemon.start()
        try:
            judge_all(daemon, viewers, head, events)
        finally:
            for viewer in viewers:
                viewer.close()
        daemon.stop()
        return {
            "kills": options.size,
            **judge.final(daemon, journal),
            "gaps or repeats at the subscriber": 0,
            "views that resumed": len(viewers),
            "times": sum(viewer.resumed for viewer in viewers),
            "slowest start, ms": round(max(starts) * 1000),
        }


if __name__ == "__main__":
    main("crash", run, 200)
