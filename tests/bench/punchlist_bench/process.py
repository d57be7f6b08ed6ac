"""Figures about processes and the machine, from /proc."""

import contextlib
import os
import time
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return _status(pid)["VmRSS"] << 10


def wake_ups(pid: int) -> int:
    """Return the number of voluntary context switches of all threads of a process."""
    return sum(
        _fields(task / "status").get("voluntary_ctxt_switches", 0) for task in Path(f"/proc/{pid}/task").iterdir()
    )


def cpu_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process; 0 if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK_S


def precise_cpu_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process, in nanosecond steps, and of its ended children, in ticks;
    0 if it has ended."""
    try:
        # CPUCLOCK_SCHED of another process: see clock_getcpuclockid in the C library.
        own = time.clock_gettime(~pid << 3 | 2)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return own + (int(fields[13]) + int(fields[14])) * TICK_S


def proportional_bytes(pid: int) -> int:
    """Return the memory of a process, each shared page divided by the number of processes that share it (PSS); 0 if the
    process has ended."""
    try:
        return _fields(Path(f"/proc/{pid}/smaps_rollup"))["Pss"] << 10
    except (OSError, KeyError):
        return 0


def available_bytes() -> int:
    """Return the memory that new processes can use without swapping."""
    return _fields(Path("/proc/meminfo"))["MemAvailable"] << 10


def list_running() -> list[int]:
    """Return the ids of all processes."""
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def is_running(pid: int) -> bool:
    """Return whether a process hasn't ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def read_environment(pid: int) -> bytes:
    """Return the environment that a process was started with; nothing if it has ended or is another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process; do nothing if it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def machine_busy_seconds() -> float:
    """Return the busy time of the machine, summed over all processors."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) * TICK_S


def directory_bytes(directory: Path) -> int:
    """Return the total size of the files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _status(pid: int) -> dict[str, int]:
    return _fields(Path(f"/proc/{pid}/status"))


def _fields(path: Path) -> dict[str, int]:
    """Return the numbers in a file of `name: value` lines."""
    pairs = (line.split()[:2] for line in path.read_text().splitlines() if len(line.split()) > 1)
    return {name.rstrip(":"): int(value) for name, value in pairs if value.isdigit()}
