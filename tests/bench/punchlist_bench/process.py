"""Figures about processes and the machine, from /proc."""

import os
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
