"""Thousands of idle connections beside a hundred active ones: what one costs, and how fast the active ones are served.

SIZE counts the idle ones; a hundredth as many, at least two, are active.
"""

import threading

from punchlist_faults.crowd import connections, need_descriptors, percentile, request, round_trips, rss_bytes
from punchlist_faults.options import Figures, Options, Violation, main, need, workplace
from punchlist_faults.process import daemon_in

CALLS = 50
"""Of each active one, a tenth of a second apart; a fifth of them where there are few connections."""

MAX_BYTES = 12 << 10


def run(options: Options) -> Figures:
    """Open them, then measure."""
    active = max(2, options.size // 100)
    need_descriptors(options.size + active)
    took: list[float] = []
    failures: list[BaseException] = []
    with workplace() as place, daemon_in(place) as daemon:
        daemon.start()
        round_trips(daemon, 20, conversation="warm")
        before = rss_bytes(daemon)

        def work(number: int, pace: threading.Event) -> None:
            try:
                for _ in range(CALLS if options.size >= 1_000 else CALLS // 5):
                    took.extend(round_trips(daemon, 1, conversation=f"c{number}"))
                    pace.wait(0.1)
            except BaseException as error:
                failures.append(error)

        with connections(daemon, options.size, request("daemon.hello")):
            each = (rss_bytes(daemon) - before) // options.size
            pace = threading.Event()
            crowd = [threading.Thread(target=work, args=(number, pace)) for number in range(active)]
            for thread in crowd:
                thread.start()
            for thread in crowd:
                thread.join()
            link = daemon.connect()
            need(link.result("daemon.status")["clients"], "the daemon tells of its connections")
            link.close()
        if failures:
            raise Violation(f"an active connection failed: {failures[0]!r}")
        need(daemon.stop() == 0, "the daemon did not stop well")
    need(each <= MAX_BYTES or options.size < 1000, f"an idle connection costs {each:,} bytes")
    return {
        "idle": options.size,
        "active": active,
        "bytes per idle one": each,
        "call p50, ms": round(percentile(took, 0.5) * 1000, 2),
        "call p99, ms": round(percentile(took, 0.99) * 1000, 2),
    }


if __name__ == "__main__":
    main("connections", run, 10_000)
