"""Limits and settings of the caller that the daemon resets, with real processes."""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from punchlist_testing.terminal import environment
from punchlistd.process.limits import MIN_DESCRIPTORS

SHOW = """
import os, resource, sys
from punchlistd.process import limits as process
connections = process.detach()
print(connections, os.getpriority(os.PRIO_PROCESS, 0), oct(os.umask(0)),
      *(resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU)))
"""


def detached(prepare: Callable[[], object]) -> subprocess.CompletedProcess[str]:
    """Run `detach` in a process whose settings `prepare` has changed; the output shows the resulting settings."""
    return subprocess.run(
        [sys.executable, "-c", SHOW],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env=environment(),
        preexec_fn=prepare,
    )


def test_callers_soft_limits_are_reset() -> None:
    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (50, 400))
        resource.setrlimit(resource.RLIMIT_CPU, (1, resource.RLIM_INFINITY))
        os.umask(0)
        if os.getuid() == 0:
            os.nice(10)  # resetting this needs privileges

    done = detached(prepare)
    assert done.stderr == ""
    assert done.stdout.split() == ["336", "0", "0o77", "400", "-1"]


def test_callers_hard_limit_is_logged() -> None:
    done = detached(lambda: resource.setrlimit(resource.RLIMIT_CPU, (30, 30)))
    assert "limits it to 30 seconds of processor time" in done.stderr


def test_too_few_descriptors_prevent_the_start(tmp_path: Path) -> None:
    few = MIN_DESCRIPTORS - 1
    done = subprocess.run(
        [sys.executable, "-m", "punchlistd", "--socket", str(tmp_path / "s"), "--data-dir", str(tmp_path / "d")],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)),
    )
    assert done.returncode == 78
    assert f"this process may open {few} files and needs {MIN_DESCRIPTORS}: raise the limit" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.getuid() == 0, reason="root may take back any priority")
def test_callers_priority_is_logged() -> None:
    done = detached(lambda: os.nice(5))
    assert "runs at nice 5, and so does the daemon" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_threads_use_little_address_space() -> None:
    script = """
import threading
from punchlistd.process import limits as process
process.reduce_address_space()
def size():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmSize:"))
before, ready, end = size(), threading.Barrier(4), threading.Event()
def work():
    kept = [bytes(600) for _ in range(100)]
    ready.wait()
    end.wait()
for _ in range(3):
    threading.Thread(target=work).start()
ready.wait()
print(size() - before)
end.set()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=True, env=environment()
    )
    assert int(done.stdout) < 3 * 2048, "kB; glibc would take 3 x 72 MiB"
