"""A full disk, a used-up quota, failing flushes and a disk that turns read-only, under SIZE waiting clients.

A full disk needs root (for a small file system in memory), a quota needs btrfs, and failing flushes need strace.
"""

import os
import time
from contextlib import AbstractContextManager
from pathlib import Path

from punchlist_faults import judge
from punchlist_faults.load import workers
from punchlist_faults.mounts import disk, quota_disk, small_disk
from punchlist_faults.options import Figures, Options, Unavailable, need, workplace
from punchlist_faults.process import Daemon, daemon_in, eventually
from punchlist_faults.sweep import Fault, acks_after, attach

TOLD_S = 2.0
"""Upper limit for the time until each waiting client gets a response, in seconds. It is generous, because the machine
may be busy."""

ENDED_S = 2.0
"""Upper limit from the first error to the end of the daemon, in seconds."""


def fill(place: Path) -> Path:
    filler = place / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"\0" * size) == size:
                    pass
            except OSError:
                continue
    return filler


def fills_up(place: Path, options: Options, what: str, limited: AbstractContextManager[Path]) -> Figures:
    """Fill the disk under load, read, free the space, and continue without a restart."""
    with limited as small, daemon_in(place, small / "data") as daemon:
        daemon.start()
        with workers(daemon.socket, options.size, options.random("full")) as crowd:
            time.sleep(0.2)
            filler = fill(small)
            eventually(lambda: any(worker.errors for worker in crowd), 20, "a client gets storage_full")
            link = daemon.connect()
            reading = eventually(lambda: "tasks" in link.result("task.list", conversation="shared.0"), 5, "reads go on")
            slowest = _slowest_refusal(daemon)
            head = link.result("event.subscribe")["seq"]
            freed = time.monotonic()
            os.unlink(filler)
            after = daemon.connect()
            eventually(lambda: "result" in after.call("task.add", conversation="again", title="x"), 10, "it recovers")
            recovered = time.monotonic() - freed
            crowd.finish()
        kinds = {kind for worker in crowd for _, kind in worker.errors}
        need(kinds == {"storage_full"}, f"calls failed with {kinds}")
        need(slowest <= TOLD_S, f"a refusal took {slowest:.2f} s")
        need(recovered <= TOLD_S, f"it needed {recovered:.2f} s to recover")
        daemon.stop()
        judge.verify_log(daemon.log)
        figures = judge.compare(crowd.journal, judge.stored_events(daemon.log))
    return {
        f"{what}: acked": figures["acked"],
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
    """Make every flush fail: no more calls are acknowledged, all clients get errors, and the daemon exits with 74."""
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
            crowd.give_up()
        seen = traced.read_text(errors="replace")
        acks = acks_after(seen)
        # Calls that the daemon had not started when the flush failed get `shutting_down` instead.
        error_times = sorted(min(at for at, _ in worker.errors) for worker in crowd if worker.errors)
        unknown = sum(kind == "outcome_unknown" for worker in crowd for _, kind in worker.errors)
        need(unknown > 0, "no client got outcome_unknown")
        need(not acks, f"it acknowledged after the error: {acks[:1]}")
        need(code == 74, f"it ended with {code}: {daemon.output()}")
        unanswered = [worker.asked_at - error_times[0] for worker in crowd if not worker.errors]
        need(not unanswered, f"waiting clients got no answer; they asked {unanswered} s after the first error")
        spread = error_times[-1] - error_times[0]
        need(spread <= TOLD_S, f"it took {spread:.2f} s until every client had an error")
        need(ended - error_times[0] <= ENDED_S, f"it lived for {ended - error_times[0]:.2f} s")
        return {
            "EIO: told outcome_unknown": unknown,
            "EIO: first to last told, ms": round(spread * 1000),
            "EIO: ended after, ms": round((ended - error_times[0]) * 1000),
            **{f"EIO: {name}": value for name, value in judge.judge_daemon(daemon, crowd.journal).items()},
        }


def turns_read_only(place: Path, options: Options) -> Figures:
    """Make the disk read-only: no lost call is acknowledged, and the log can be read."""
    with disk(place) as ext4, daemon_in(place, ext4.place / "data") as daemon:
        daemon.start()
        with workers(daemon.socket, options.size, options.random("read-only")) as crowd:
            time.sleep(0.3)
            try:
                ext4.turn_read_only()
            except Unavailable as missing:
                return {"read-only: skipped": str(missing)}
            code = daemon.wait(5)
            crowd.give_up()
        need(code == 74, f"it ended with {code}: {daemon.output()}")
        events = judge.stored_events(daemon.log)
        figures = judge.compare(crowd.journal, events)
        daemon.options = ["--read-only"]
        daemon.start()
        link = daemon.connect()
        shown = judge.check_lists(events, link)
        refused = link.call("task.add", conversation="shared.0", title="x")["error"]["data"]["kind"]
        need(refused == "forbidden", f"a change was answered with {refused}")
        link.close()
        daemon.stop()
    return {**{f"read-only: {name}": figures[name] for name in ("acked", "events")}, "read-only: shown": shown}


def run(options: Options) -> Figures:
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
