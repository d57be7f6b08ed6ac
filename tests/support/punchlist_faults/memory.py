"""Lets a daemon with eight clients run out of memory: allocations fail, or the kernel kills it.

Each happens SIZE times. The kill needs root and permission to create a memory control group.
"""

import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from punchlist_faults import judge
from punchlist_faults.load import workers
from punchlist_faults.options import Figures, Options, need
from punchlist_faults.process import Daemon, eventually, running_daemon

CLIENTS = 8
STARVED_S = 1.0
MORE_BYTES = 1 << 20
"""Memory that a daemon can still allocate before the kernel kills it."""

ENDS = (70, 74, -signal.SIGSEGV, -signal.SIGABRT)
"""Permitted exit codes when memory runs out. A stack that can't grow and an abort in C end the process like a kill."""

_GROUPS = Path("/sys/fs/cgroup")


def run(options: Options) -> Figures:
    random, ends = options.random(), Counter[str]()
    with _groups() as group, running_daemon() as daemon:
        with workers(daemon.socket, CLIENTS, random) as crowd:
            for worker in crowd:  # Calls may fail when memory runs out.
                worker.again |= {"internal_error"}
            for _ in range(options.size):
                time.sleep(random.uniform(0.05, 0.3))
                ends[_starve(daemon, random)] += 1
                if group is not None:
                    time.sleep(random.uniform(0.05, 0.3))
                    _squeeze(daemon, group)
                    ends["killed by the kernel"] += 1
            crowd.finish()
        why = {} if group is not None else {"kernel's kill": "skipped: needs root and a memory control group"}
        return {**dict(sorted(ends.items())), **why, **judge.judge_daemon(daemon, crowd.journal)}


def _starve(daemon: Daemon, random: Random) -> str:
    """Make allocations fail for a while, and restart the daemon if it ended; describe how it ended or continued."""
    size = int(Path(f"/proc/{daemon.pid()}/statm").read_text().split()[0]) * resource.getpagesize()
    resource.prlimit(
        daemon.pid(), resource.RLIMIT_AS, (size + random.choice((0, 1, 4, 16)) * (1 << 20), resource.RLIM_INFINITY)
    )
    link = daemon.connect()
    until = time.monotonic() + STARVED_S
    number = 0
    while daemon.is_running and time.monotonic() < until:
        with suppress(OSError, EOFError):
            number += 1
            link.call("task.add", conversation=f"big{number % 50}", title="x", description="y" * 60_000)
            link.call("event.read", after=0, limit=1000)
    daemon.hang_up()
    if daemon.is_running:
        with suppress(ProcessLookupError):
            resource.prlimit(daemon.pid(), resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    if daemon.is_running:
        try:
            daemon.connect().result("task.list", conversation="shared.0")
            daemon.hang_up()
        except (OSError, EOFError):
            daemon.wait()
        else:
            return "went on without memory"
    code = daemon.wait()
    need(code in ENDS, f"it ended with {code}: {daemon.output()[-2000:]}")
    daemon.start()
    return f"ended for want of memory with {code}"


def _squeeze(daemon: Daemon, group: Path) -> None:
    """Limit additional memory, wait for the kernel to kill the daemon, and start it again.

    Memory that the daemon already has stays charged to its former group.
    """
    limit = group / ("memory.max" if (group / "memory.max").exists() else "memory.limit_in_bytes")
    limit.write_text("-1" if limit.name != "memory.max" else "max")
    (group / "cgroup.procs").write_text(str(daemon.pid()))
    limit.write_text(str(MORE_BYTES))
    link = daemon.connect()

    def is_killed() -> bool:
        with suppress(OSError, EOFError):
            link.call("task.add", conversation="squeezed", title="x", description="y" * 60_000)
        return not daemon.is_running

    eventually(is_killed, 10, "the kernel kills it")
    daemon.hang_up()
    need(daemon.wait() == -signal.SIGKILL, f"it ended otherwise: {daemon.output()[-2000:]}")
    daemon.start()


def _is_removed(group: Path) -> bool:
    with suppress(OSError):  # busy for a moment after a kill
        group.rmdir()
    return not group.exists()


@contextmanager
def _groups() -> Generator[Path | None]:
    unified = (_GROUPS / "cgroup.controllers").exists()
    group = (_GROUPS if unified else _GROUPS / "memory") / f"punchlist-faults-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    try:
        names = ("memory.max", "memory.limit_in_bytes")
        yield group if any((group / name).exists() for name in names) else None
    finally:
        eventually(lambda: _is_removed(group), 5, f"{group} can be removed")
