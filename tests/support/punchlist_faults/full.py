"""A disk that fills up, a quota that is used up, a disk whose flushes fail, and one that turns read-only.

All under a daemon with many calls waiting: SIZE counts the clients. Filling needs root (a small file system in memory),
a quota btrfs, failing strace.
"""

import os
import re
import time
from contextlib import AbstractContextManager
from pathlib import Path

from punchlist_faults import judge
from punchlist_faults.load import Entry, Worker, workers
from punchlist_faults.mounts import disk, enter, quota_disk, small_disk
from punchlist_faults.options import Figures, Options, Unavailable, main, need, workplace
from punchlist_faults.process import Daemon, daemon_in, eventually
from punchlist_faults.sweep import Fault, attach

TOLD_S = 0.1
"""Within this time everybody who waits is told."""

ENDED_S = 1.0


def fill(place: Path) -> Path:
    """Take all space that is left."""
    filler = place / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue
    return filler


def _journal(crowd: list[Worker]) -> list[Entry]:
    return [entry for worker in crowd for entry in worker.journal]


def fills_up(place: Path, options: Options, what: str, limited: AbstractContextManager[Path]) -> Figures:
    """Take all room there is under load, read, give it back, and go on without a restart."""
    with limited as small, daemon_in(place, small / "data") as daemon:
        daemon.start()
        with workers(daemon.socket, options.size, options.random("full")) as crowd:
            time.sleep(0.2)
            filler = fill(small)
            eventually(lambda: any(worker.told for worker in crowd), 20, "somebody is told that the disk is full")
            link = daemon.connect()
            reading = eventually(lambda: "tasks" in link.result("task.list", conversation="shared.0"), 5, "reads go on")
            slowest = _slowest_refusal(daemon)
            head = link.result("event.subscribe")["seq"]
            freed = time.monotonic()
            os.unlink(filler)
            after = daemon.connect()
            eventually(lambda: "result" in after.call("task.add", conversation="again", title="x"), 10, "it recovers")
            recovered = time.monotonic() - freed
            for worker in crowd:
                worker.finish()
            for worker in crowd:
                worker.join()
        kinds = {kind for worker in crowd for _, kind in worker.told}
        need(kinds == {"storage_full"}, f"it said {kinds}")
        need(slowest <= TOLD_S * 5, f"a refusal took {slowest:.2f} s")
        need(recovered <= 1, f"it needed {recovered:.2f} s to recover")
        need(daemon.stop() == 0, "the daemon did not stop well")
        judge.sound(daemon.log)
        figures = judge.compare(_journal(crowd), judge.stored_events(daemon.log))
    return {
        f"{what}: acked": figures["acked"],
        f"{what}: acked falsely": 0,
        f"{what}: slowest refusal, ms": round(slowest * 1000),
        f"{what}: reads, ms": round(reading * 1000, 1),
        f"{what}: events before space returned": head,
        f"{what}: recovered after, ms": round(recovered * 1000),
    }


def _slowest_refusal(daemon: Daemon) -> float:
    link = daemon.connect()
    slowest = 0.0
    for number in range(10):
        began = time.monotonic()
        answer = link.call("task.add", conversation="refused", title=f"{number}" + "x" * 400, description="y" * 60_000)
        slowest = max(slowest, time.monotonic() - began)
        need("result" in answer or answer["error"]["data"]["kind"] == "storage_full", f"it answered {answer}")
    return slowest


def fails(place: Path, options: Options) -> Figures:
    """Let every flush of the live daemon fail: nothing is acknowledged any more, all are told, and it ends with 74."""
    with daemon_in(place) as daemon:
        daemon.start()
        traced = place / "traced"
        with workers(daemon.socket, options.size, options.random("eio")) as crowd:
            time.sleep(0.2)
            tracer = attach(daemon, Fault("fdatasync", "EIO", "40+"), traced)
            try:
                code = daemon.wait(20)
                ended = time.monotonic()
            finally:
                tracer.kill()
                tracer.wait()
            for worker in crowd:
                worker.give_up()
            for worker in crowd:
                worker.join()
        seen = traced.read_text(errors="replace")
        after = seen[seen.index("(INJECTED)") :]
        acks = re.findall(r'send(?:to|msg)\(.*\\"result\\":.*\\"seq\\":', after)
        # A call that was on its way when the daemon failed is told to come again instead: it was never begun.
        told = sorted(min(at for at, _ in worker.told) for worker in crowd if worker.told)
        unknown = sum(kind == "outcome_unknown" for worker in crowd for _, kind in worker.told)
        need(unknown > 0, "nobody was told that the outcome is unknown")
        need(not acks, f"it acknowledged after the error: {acks[:1]}")
        need(code == 74, f"it ended with {code}: {daemon.said()}")
        untold = [worker.asked_at - told[0] for worker in crowd if not worker.told]
        need(
            not untold,
            f"of {options.size} waiting clients some were not told; they asked {untold} s after the first was",
        )
        spread = told[-1] - told[0]
        need(spread <= TOLD_S, f"it took {spread:.2f} s to tell everybody")
        need(ended - told[0] <= ENDED_S + 1, f"it lived for {ended - told[0]:.2f} s")
        return {
            "EIO: acks after the first": 0,
            "EIO: told outcome_unknown": unknown,
            "EIO: first to last told, ms": round(spread * 1000),
            "EIO: ended after, ms": round((ended - told[0]) * 1000),
            **{f"EIO: {name}": value for name, value in judge.final(daemon, _journal(crowd)).items()},
        }


def turns_read_only(place: Path, options: Options) -> Figures:
    """A disk that takes no more writes: nothing false is acknowledged, and what is there can be read."""
    with disk(place) as ext4, daemon_in(place, ext4.place / "data") as daemon:
        daemon.start()
        with workers(daemon.socket, options.size, options.random("read-only")) as crowd:
            time.sleep(0.3)
            try:
                ext4.turn_read_only()
            except Unavailable as missing:
                return {"read-only: skipped": str(missing)}
            code = daemon.wait(5)
            for worker in crowd:
                worker.give_up()
            for worker in crowd:
                worker.join()
        need(code == 74, f"it ended with {code}: {daemon.said()}")
        events = judge.stored_events(daemon.log)
        figures = judge.compare(_journal(crowd), events)
        daemon.options = ["--read-only"]
        daemon.start()
        link = daemon.connect()
        shown = judge.projections(events, link)
        refused = link.call("task.add", conversation="shared.0", title="x")["error"]["data"]["kind"]
        need(refused == "forbidden", f"a change was answered with {refused}")
        link.close()
        need(daemon.stop() == 0, "the one that reads did not stop well")
    return {**{f"read-only: {name}": figures[name] for name in ("acked", "lost", "events")}, "read-only: shown": shown}


def run(options: Options) -> Figures:
    """One after the other."""
    enter("strace", "mkfs.ext4")
    with workplace() as place:
        for name in ("a", "c", "d"):
            (place / name).mkdir()
        try:
            quota = fills_up(place / "d", options, "quota", quota_disk(place / "d" / "small", "8M"))
        except Unavailable as missing:
            quota = {"quota: skipped": str(missing)}
        return {
            **fills_up(place / "a", options, "full", small_disk(place / "a" / "small", "8m")),
            **quota,
            **fails(place / "b", options),
            **turns_read_only(place / "c", options),
        }


if __name__ == "__main__":
    main("full", run, 20)
