"""Power cuts: an ext4 that is shut down without its journal being flushed, under load, again and again.

SIZE counts cuts. A tenth as many more run with a daemon whose commits are not flushed: that control must lose
something, or this harness could not see a loss. An answer that arrives after the cut began may be that of a disk which
is gone already: it is in doubt, and does not count.
"""

import time
from pathlib import Path
from random import Random

from punchlist_faults import judge
from punchlist_faults.load import Entry, workers
from punchlist_faults.mounts import Disk, disk, enter
from punchlist_faults.options import Figures, Options, Violation, main, need, workplace
from punchlist_faults.process import Daemon, daemon_in

CLIENTS = 4
CUTS_ON_ONE = 25
"""The disk is made anew after so many cuts, so that logs stay small."""


class _Series:
    """Cuts on one disk. The journal goes on from cut to cut: what was answered before the first is looked for ever."""

    def __init__(self, place: Path, random: Random, plant: tuple[str, ...]) -> None:
        self._random = random
        self._plant = plant
        self._place = place
        self._workers = 0
        self.figures: dict[str, int] = {"cuts": 0, "acked": 0, "lost": 0, "in doubt": 0, "unanswered but kept": 0}

    def run(self, cuts: int) -> dict[str, int]:
        with disk(self._place) as power, daemon_in(self._place / "d", power.place / "data") as daemon:
            daemon.plant = self._plant
            settled: list[Entry] = []
            for _ in range(cuts):
                journal, moment = self._until_cut(daemon, power)
                self._judge(daemon, settled, journal, moment)
                self.figures["cuts"] += 1
        return self.figures

    def _until_cut(self, daemon: Daemon, power: Disk) -> tuple[list[Entry], float]:
        daemon.start()
        self._workers += CLIENTS
        with workers(daemon.socket, CLIENTS, self._random, first=self._workers) as crowd:
            time.sleep(self._random.uniform(0.05, 0.25))
            moment = time.monotonic()
            power.cut()
            daemon.kill()
            for worker in crowd:
                worker.give_up()
            for worker in crowd:
                worker.join(doubtful_after=moment)
        power.unmount()
        power.mount()
        return [entry for worker in crowd for entry in worker.journal], moment

    def _judge(self, daemon: Daemon, settled: list[Entry], journal: list[Entry], moment: float) -> None:
        judge.sound(daemon.log)
        events = judge.stored_events(daemon.log)
        for entry in journal:
            self.figures["in doubt"] += any(ack.at >= moment for ack in entry.acks)
            entry.acks = [ack for ack in entry.acks if ack.at < moment]
        settled += journal
        now = judge.compare(settled, events)
        self.figures["acked"] = now["acked"]
        self.figures["unanswered but kept"] = now["unanswered but kept"]


def _control(options: Options, place: Path, cuts: int) -> int:
    """Cuts until the daemon that does not flush has lost something.

    Raises:
        Violation: it never did: this harness is blind.
    """
    for cut in range(1, cuts + 1):
        directory = place / f"control{cut}"
        directory.mkdir()
        try:
            _Series(directory, options.random(f"control{cut}"), ("normal",)).run(1)
        except Violation:
            return cut
    raise Violation(f"{cuts} cuts without flushes lost nothing: this harness sees no loss")


def run(options: Options) -> Figures:
    """Cut as often as SIZE says, then the control."""
    enter("mkfs.ext4")
    total: dict[str, int] = {}
    with workplace() as place:
        for number in range(0, options.size, CUTS_ON_ONE):
            directory = place / f"series{number}"
            directory.mkdir()
            cuts = min(CUTS_ON_ONE, options.size - number)
            for figure, value in _Series(directory, options.random(number), ()).run(cuts).items():
                total[figure] = total.get(figure, 0) + value
        control = _control(options, place, max(5, options.size // 10))
    need(total["acked"], "nothing was answered before a cut: this says nothing")
    return {**total, "cuts until the control lost": control}


if __name__ == "__main__":
    main("powercut", run, 100)
