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

from punchlist_testing.unmeasured import untraced

# Shared machines make wall-clock deadlines flaky; a failing example prints how to get it again.
settings.register_profile("punchlist", deadline=None, print_blob=True)
settings.load_profile("punchlist")

IN_MEMORY = "/dev/shm"
ROOM_BYTES = 2 << 30
"""A run that fails everywhere keeps about so much."""


def pytest_configure(config: pytest.Config) -> None:
    """Where it can be, the files of tests are kept in memory: a third of the time goes into waiting for fsync() else.

    What an fsync() means is the matter of tests/crash and of the harnesses that cut the power. TMPDIR is heeded.
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
    "tests/crash/",
    "tests/systemd/",
    "tests/examples/",
    "tests/journeys/",
    "tests/client/cli/test_terminal.py",
    "tests/client/cli/test_other_build.py",
    "tests/client/cli/commands/test_setup.py",
    "tests/client/cli/commands/test_backup.py",
    "tests/client/hosts/",
    "tests/client/mirror/",
    "tests/client/test_",
)
"""What begins so starts many processes of which others measure the coverage: measuring one costs 0.1 s and more."""

MEASURE_PROCESSES = "COVERAGE_PROCESS_CONFIG"
"""The variable by which coverage.py measures each Python that a measured one starts."""

UNTRACED = ("tests/crash/",)
"""What begins so does long work in its own process, of which the tests of each module run the same lines."""

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
    "tests/crash/test_harnesses.py",
    "tests/client/cli/test_terminal.py",
    "tests/systemd/test_user_manager.py",
    "tests/daemon/test_app.py",
    "tests/client/test_recovery.py",
    "tests/daemon/test_run.py",
    "tests/daemon/test_repair.py",
    "tests/schemas/test_malformed.py",
    "tests/client/test_sync.py",
    "tests/daemon/test_leftovers.py",
    "tests/client/cli/commands/test_backup.py",
    "tests/crash/test_race.py",
    "tests/crash/test_drain.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest are run first: what is left at the end is short, and all processes end together."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))


def pytest_collection_finish() -> None:
    """What was collected is never searched for garbage again: it is thousands of tests, and all that they imported."""
    gc.freeze()
    gc.enable()


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
