"""`kill -9` under load. SIZE is the number of kills.

Nine clients, one of them bound to a user, keep a journal and repeat unanswered calls. Subscribers to every view, both
bound to this user and unbound, resume from where they stopped.
"""

import time

from punchlist_faults import judge
from punchlist_faults.load import Crowd, workers
from punchlist_faults.options import Figures, Options
from punchlist_faults.process import running_daemon
from punchlist_faults.viewers import USER, WATCHED, Viewer, judge_all

CLIENTS = 8


def run(options: Options) -> Figures:
    random = options.random()
    starts: list[float] = []
    with running_daemon() as daemon:
        viewers = [Viewer(daemon.socket, options.random(viewed), *viewed) for viewed in WATCHED]
        with (
            workers(daemon.socket, CLIENTS, random) as anybody,
            workers(daemon.socket, 1, random, first=CLIENTS, user=USER) as bound,
        ):
            crowd = Crowd([*anybody, *bound])
            for _ in range(options.size):
                time.sleep(random.uniform(0.02, 0.3))
                daemon.kill()
                starts.append(daemon.start())
            crowd.finish()
        daemon.stop()
        events = judge.stored_events(daemon.log)
        daemon.start()
        try:
            judge_all(daemon, viewers, events)
        finally:
            for viewer in viewers:
                viewer.close()
        return {
            "kills": options.size,
            **judge.judge_daemon(daemon, crowd.journal),
            "views that resumed": len(viewers),
            "times": sum(viewer.resumed for viewer in viewers),
            "slowest start, ms": round(max(starts) * 1000),
        }
