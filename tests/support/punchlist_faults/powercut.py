"""Power cuts under load: shuts down an ext4 without flushing its journal. SIZE is the number of cuts.

A control run uses a daemon whose commits are not flushed. It must lose data; otherwise this program could not detect a
loss. A response that arrives after the cut began may concern data on a disk that has already failed, so it doesn't
count.
"""

import time
from pathlib import Path
from random import Random

from punchlist_faults import judge
from punchlist_faults.load import Entry, workers
from punchlist_faults.mounts import disk
from punchlist_faults.options import Figures, Options, Violation, need, workplace
from punchlist_faults.process import daemon_in

CLIENTS = 4
CUTS_ON_ONE = 25
"""Cuts after which the disk is recreated, to keep logs small."""


def _cut(place: Path, random: Random, cuts: int, *plant: str) -> dict[str, int]:
    """Cut the power of one disk repeatedly. The journal covers all cuts, so later losses are detected too."""
    journal: list[Entry] = []
    figures: dict[str, int] = {}
    place.mkdir()
    with disk(place) as power, daemon_in(place / "d", power.place / "data") as daemon:
        daemon.plant = plant
        for number in range(cuts):
            daemon.start()
            with workers(daemon.socket, CLIENTS, random, first=number * CLIENTS) as crowd:
                time.sleep(random.uniform(0.05, 0.25))
                moment = time.monotonic()
                power.cut()
                daemon.kill()
                crowd.give_up(doubtful_after=moment)
            power.unmount()
            power.mount()
            judge.verify_log(daemon.log)
            for entry in crowd.journal:
                entry.acks = [ack for ack in entry.acks if ack.at < moment]
            journal += crowd.journal
            figures = judge.compare(journal, judge.stored_events(daemon.log))
    return figures


def _control(options: Options, place: Path, cuts: int) -> int:
    for cut in range(1, cuts + 1):
        try:
            _cut(place / f"control{cut}", options.random(f"control{cut}"), 1, "normal")
        except Violation:
            return cut
    raise Violation(f"{cuts} cuts without flushes lost nothing: this program sees no loss")


def run(options: Options) -> Figures:
    total = {"cuts": options.size, "acked": 0, "unanswered but kept": 0}
    with workplace() as place:
        for number in range(0, options.size, CUTS_ON_ONE):
            cuts = min(CUTS_ON_ONE, options.size - number)
            figures = _cut(place / f"series{number}", options.random(number), cuts)
            for figure in ("acked", "unanswered but kept"):
                total[figure] += figures[figure]
        control = _control(options, place, max(5, options.size // 10))
    need(total["acked"], "nothing was answered before a cut: this says nothing")
    return {**total, "cuts until the control lost": control}
