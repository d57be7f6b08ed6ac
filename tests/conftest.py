"""Settings, hooks and fixtures for all tests."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from punchlist_testing.optional import summarize
from punchlist_testing.unmeasured import untraced

# Wall-clock deadlines are flaky on shared machines. A failing example prints how to reproduce it.
settings.register_profile("punchlist", deadline=None, print_blob=True)
settings.load_profile("punchlist")

ROOT = Path(__file__).resolve().parents[1]
IN_MEMORY = "/dev/shm"
ROOM_BYTES = 2 << 30
"""About the amount that a run in which every test fails leaves behind."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep the files of tests in memory if possible. Otherwise a third of the time is spent waiting for fsync().

    The effect of fsync() is tested in tests/system/crash and by the harnesses that cut the power. If TMPDIR is set, it
    is used instead.
    """
    # A shell starts background processes with SIGINT ignored, and the programs started by tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Variables of the person who runs the tests would lead them to that person's daemon and lists.
    for name in [name for name in os.environ if name.startswith("PUNCHLIST_") and name != "PUNCHLIST_WRITE"]:
        del os.environ[name]
    # Only the tests of the warm process start one.
    os.environ["PUNCHLIST_WARM"] = "0"
    if "TMPDIR" not in os.environ and has_room(IN_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = IN_MEMORY
    if config.getoption("numprocesses", None):
        sys.settrace(None)  # this process only distributes tests; coverage.py measures the workers
    gc.disable()  # until the tests are collected, because all of these objects stay
    if config.args == ["tests"] and hasattr(config, "workerinput"):
        _share_rewriting(config)


def _share_rewriting(config: pytest.Config) -> None:
    """Let each worker collect the files in another order.

    In a fresh clone, each of them would otherwise rewrite the assertions of all files at the same time, and find
    nothing that another one has just stored.
    """
    worker: dict[str, Any] = getattr(config, "workerinput")  # noqa: B009 - xdist adds it
    places = [ROOT / "tests"]
    for name in ("tests", "tests/unit", "tests/unit/client", "tests/unit/client/punchlist_apps", "tests/unit/daemon"):
        places.remove(ROOT / name)
        tests = (path for path in (ROOT / name).iterdir() if path.is_dir() or path.match("test_*.py"))
        places += sorted(path for path in tests if path.is_file() or any(path.rglob("test_*.py")))
    start = len(places) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    config.args = [str(path) for path in places[start:] + places[:start]]


def has_room(directory: str) -> bool:
    """Return whether a directory has room for the files of all tests, and allows programs to run."""
    return (
        os.access(directory, os.W_OK)
        and not os.statvfs(directory).f_flag & os.ST_NOEXEC
        and shutil.disk_usage(directory).free >= ROOM_BYTES
    )


UNMEASURED = (
    "tests/system/crash/",
    "tests/system/systemd/",
    "tests/system/examples/",
    "tests/system/journeys/",
    "tests/unit/daemon/app/test_app.py",
    "tests/unit/daemon/app/test_run.py",
    "tests/unit/daemon/offline/test_leftovers.py",
    "tests/unit/client/punchlist_apps/cli/test_init.py",
    "tests/unit/client/punchlist_apps/cli/test_terminal.py",
    "tests/unit/client/punchlist_apps/cli/calling/test_other_build.py",
    "tests/unit/client/punchlist_apps/cli/commands/test_setup.py",
    "tests/unit/client/punchlist_apps/cli/commands/test_backup.py",
    "tests/unit/client/punchlist_apps/hosts/",
    "tests/unit/client/punchlist_apps/files/mirror/",
    "tests/unit/client/punchlist/test_",
    "tests/unit/client/punchlist/clients/",
    "tests/unit/client/punchlist/connection/",
)
"""Path prefixes of tests that start many processes whose lines other tests cover.

Measuring the coverage of one process takes 0.1 s or more.
"""

MEASURE_PROCESSES = "COVERAGE_PROCESS_CONFIG"
"""The variable with which coverage.py measures every Python process started by a measured one."""

UNTRACED = (
    "tests/system/crash/",
    "tests/system/editors/",
    "tests/system/journeys/",
    "tests/unit/test_",
    "tests/unit/client/punchlist_apps/chat/test_cost.py",
    "tests/unit/client/punchlist_apps/chat/test_kills.py",
    "tests/unit/client/punchlist_apps/chat/test_seeds.py",
    "tests/unit/client/punchlist_apps/chat/test_truth.py",
    "tests/unit/client/punchlist_apps/cli/test_coming_from.py",
    "tests/unit/client/punchlist_apps/cli/test_start.py",
    "tests/unit/client/punchlist_apps/cli/parsing/test_index.py",
    "tests/unit/client/punchlist/taskfiles/test_file_names.py",
    "tests/unit/client/punchlist/test_faces.py",
    "tests/unit/client/punchlist/base/test_text.py",
    "tests/unit/client/punchlist/tools/test_sizes.py",
    "tests/unit/daemon/domain/decide/test_apply.py",
    "tests/unit/daemon/domain/decide/test_claim.py",
    "tests/unit/daemon/domain/test_properties.py",
    "tests/unit/daemon/engine/lists/test_history.py",
    "tests/unit/daemon/engine/test_restart.py",
    "tests/unit/daemon/engine/test_slices.py",
    "tests/unit/daemon/net/connection/test_connection.py",
    "tests/unit/daemon/net/test_jsonrpc.py",
    "tests/unit/daemon/replication/test_simulation.py",
    "tests/unit/daemon/store/recovery/test_cut.py",
    "tests/unit/daemon/store/test_port.py",
    "tests/unit/daemon/offline/test_repair.py",
    "tests/unit/schemas/test_framing.py",
)
"""Path prefixes of slow tests that, in this process, cover few lines that no other test covers.

Of 60,000 line transitions, 300 are covered only by these tests. A traced test takes more than twice as long.
"""

_measuring = os.environ.get(MEASURE_PROCESSES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Decide by a test's file whether to measure it and the processes that it starts."""
    if _measuring is not None:
        if item.location[0].startswith(UNMEASURED):
            os.environ.pop(MEASURE_PROCESSES, None)
        else:
            os.environ[MEASURE_PROCESSES] = _measuring
    with untraced() if item.location[0].startswith(UNTRACED) else nullcontext():
        return (yield)


LONGEST = (
    "tests/unit/daemon/replication/test_sharing.py",
    "tests/unit/daemon/replication/adapters/postgres/test_postgres.py",
    "tests/unit/daemon/replication/adapters/nats/test_nats.py",
    "tests/system/systemd/test_user_manager.py",
    "tests/unit/daemon/replication/adapters/postgres/test_sharing_postgres.py",
    "tests/system/crash/test_harnesses.py",
    "tests/unit/client/punchlist/test_recovery.py",
    "tests/unit/daemon/replication/test_port.py",
    "tests/unit/client/punchlist_apps/cli/test_terminal.py",
    "tests/system/editors/test_emacs.py",
    "tests/unit/daemon/app/test_app.py",
    "tests/unit/client/punchlist_apps/ui/test_list_screen.py",
    "tests/unit/daemon/app/test_run.py",
    "tests/unit/daemon/offline/test_repair.py",
    "tests/unit/client/punchlist_apps/hosts/test_check.py",
    "tests/unit/client/punchlist/clients/test_work.py",
    "tests/unit/client/punchlist/clients/test_sync.py",
    "tests/unit/client/punchlist_apps/cli/commands/test_backup.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest files first, so that only short tests remain at the end and all workers finish together."""
    places = {name: place for place, name in enumerate(LONGEST)}
    # All workers must collect the tests in one order.
    items.sort(key=lambda item: (places.get(name := item.nodeid.partition("::")[0], len(places)), name))


def pytest_collection_finish() -> None:
    """Exclude the collected tests and their imports, which are thousands of objects, from garbage collection."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the skipped tests, and the command that runs them."""
    if lines := summarize(terminalreporter.getreports("skipped")):
        terminalreporter.section("skipped")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """aiosqlite supports only asyncio, so the daemon and its tests do too."""
    return "asyncio"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Restore the umask, because a program that runs in this process sets its own."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
