"""What holds for every test."""

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import nullcontext

import pytest
from hypothesis import settings

from punchlist_testing.optional import summarize
from punchlist_testing.unmeasured import untraced

# Shared machines make wall-clock deadlines flaky; a failing example prints how to get it again.
settings.register_profile("punchlist", deadline=None, print_blob=True)
settings.load_profile("punchlist")

IN_MEMORY = "/dev/shm"
ROOM_BYTES = 2 << 30
"""A run that fails everywhere keeps about so much."""


def pytest_configure(config: pytest.Config) -> None:
    """Where it can be, the files of tests are kept in memory: a third of the time goes into waiting for fsync() else.

    What an fsync() means is the matter of tests/system/crash and of the harnesses that cut the power. TMPDIR is heeded.
    """
    # A shell starts what runs in its background with this ignored, and the programs of the tests would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "TMPDIR" not in os.environ and has_room(IN_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = IN_MEMORY
    if config.getoption("numprocesses", None):
        sys.settrace(None)  # this process only hands out tests: coverage.py measures those that run them
    gc.disable()  # until the tests are collected: all of it stays


def has_room(directory: str) -> bool:
    """Whether a directory can take the files of all tests, among them programs."""
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
"""What begins so starts many processes of which others measure the coverage: measuring one costs 0.1 s and more."""

MEASURE_PROCESSES = "COVERAGE_PROCESS_CONFIG"
"""The variable by which coverage.py measures each Python that a measured one starts."""

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
"""What begins so takes long and runs, in this process, lines that others run, too: of 60,000 steps from line to line
these alone run 300. A traced test takes more than twice the time."""

_measuring = os.environ.get(MEASURE_PROCESSES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Whether a test is measured, and the processes that it starts, depends on its file."""
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
    """The files that take longest are run first: what is left at the end is short, and all processes end together."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """What was collected is never searched for garbage again: it is thousands of tests, and all that they imported."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was skipped, and the command that runs it."""
    if lines := summarize(terminalreporter.getreports("skipped")):
        terminalreporter.section("skipped")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """aiosqlite knows asyncio alone, so the daemon and its tests do too."""
    return "asyncio"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """A program run in this process sets its own umask: the files of the tests to come must not depend on it."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)
