"""The units of the MCP worker under a real user manager, with the SDK of `make conformance`."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from punchlist_testing.optional import require_package
from punchlist_testing.user_manager import AS_NOBODY, Unavailable, UserManager, user_manager
from punchlist_testing.workers import PATIENCE_S, Host, ending

require_package("mcp")

SERVICE, SOCKET = "punchlist-mcp.service", "punchlist-mcp.socket"
EXTRA = "[Unit]\nStartLimitBurst=100\n[Service]\nEnvironment=PYTHONPATH={path}\n"
QUICK = """
import sys
from punchlist_apps.relay import relay
relay.PING_S = relay.HANG_S = 1.0
from punchlist_apps.cli import main
sys.exit(main())
"""
"""A relay that soon ends a worker that doesn't reply."""


@pytest.fixture(scope="module")
def manager() -> Iterator[UserManager]:
    """A manager in which the service has been installed and started."""
    try:
        with user_manager() as manager:
            for unit in ("punchlistd.service", SERVICE):
                extra = manager.units / f"{unit}.d" / "test.conf"
                manager.run("mkdir", "-p", str(extra.parent))
                extra.write_text(EXTRA.format(path=manager.env["PYTHONPATH"]))
            assert SOCKET in manager.punch("daemon", "service", "install", "--now")
            yield manager
    except Unavailable as reason:
        pytest.skip(str(reason))


def connect(manager: UserManager, *program: str) -> Host:
    return Host(
        None, python=(*AS_NOBODY, manager.python), program=program or ("-P", "-m", "punchlist"), env=manager.env
    )


@pytest.fixture
def host(manager: UserManager) -> Iterator[Host]:
    with connect(manager) as host:
        yield host


def read_worker(manager: UserManager) -> Any:
    return json.loads(manager.punch("daemon", "status", "--json"))["worker"]


def examine(manager: UserManager) -> str:
    return manager.run(manager.python, "-P", "-m", "punchlist", "doctor", check=False)


def find_worker(manager: UserManager) -> int:
    return int(manager.show("MainPID", SERVICE))


def until(manager: UserManager, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, manager.log() + Path(manager.data_dir, "mcp.log").read_text()
        time.sleep(0.02)


def test_first_session_starts_the_worker(manager: UserManager) -> None:
    assert manager.show("ActiveState", SERVICE) == "inactive"
    assert "sessions: none; the first one starts a worker" in examine(manager)
    assert read_worker(manager) is None
    assert manager.show("ActiveState", SERVICE) == "inactive", "neither command starts a worker"
    with connect(manager) as host:
        assert "Added #1" in host.call("plan", tasks=[{"title": "first"}])
        worker = read_worker(manager)
        assert (worker["pid"], worker["state"], worker["sessions"]) == (find_worker(manager), "running", 1)
        assert "NoNewPrivs:\t1" in Path("/proc", str(worker["pid"]), "status").read_text()
    assert f"{SERVICE}: active (running), process {worker['pid']}" in manager.punch("daemon", "service", "status")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_worker_is_replaced(number: int, manager: UserManager, host: Host) -> None:
    former = find_worker(manager)
    with ending(former):
        os.kill(former, number)
    assert "Added" in host.call("plan", tasks=[{"title": f"after {number}"}])
    assert find_worker(manager) == read_worker(manager)["pid"] != former


def test_suspended_worker_is_replaced(manager: UserManager) -> None:
    with connect(manager, "-P", "-c", QUICK) as host:
        former = find_worker(manager)
        os.kill(former, signal.SIGSTOP)
        assert read_worker(manager) == {"pid": former, "state": "suspended", "sessions": None} | dict.fromkeys(
            ("since", "build")
        )
        assert "Added" in host.call("plan", tasks=[{"title": "after all"}])
        assert find_worker(manager) == read_worker(manager)["pid"] != former


def test_successor_becomes_the_main_process(manager: UserManager, host: Host) -> None:
    has_moved, replies = Event(), list[str]()

    def call() -> None:
        while not has_moved.is_set():
            replies.append(host.call("plan", tasks=[{"title": f"moved {len(replies)}"}]))

    former, starts, caller = find_worker(manager), manager.show("NRestarts", SERVICE), Thread(target=call)
    caller.start()
    try:
        os.kill(former, signal.SIGUSR1)
        until(manager, lambda: find_worker(manager) not in (0, former))
        until(manager, lambda: not os.path.exists(f"/proc/{former}"))
    finally:
        has_moved.set()
        caller.join()
    assert replies
    assert all("Added" in reply for reply in replies)
    assert read_worker(manager)["pid"] == find_worker(manager), "the successor outlives its predecessor"
    assert manager.show("NRestarts", SERVICE) == starts
    assert manager.show("ActiveState", SERVICE) == "active"


def test_broken_upgrade_leaves_the_worker(manager: UserManager, host: Host) -> None:
    source, log = manager.program / "client/punchlist_apps/worker/session.py", Path(manager.data_dir, "mcp.log")
    text, former = source.read_text(), find_worker(manager)
    source.write_text("import nothing_that_exists\n")
    try:
        with connect(manager) as another:  # each new session makes the worker look for an upgrade
            until(manager, lambda: "no successor started" in log.read_text())
            assert "Added" in another.call("plan", tasks=[{"title": "in spite of it"}])
    finally:
        source.write_text(text + "# repaired\n")
    assert find_worker(manager) == former
    with connect(manager):
        until(manager, lambda: find_worker(manager) not in (0, former))
    assert "Added" in host.call("plan", tasks=[{"title": "repaired"}])


def test_unmanaged_worker_yields_to_the_unit(manager: UserManager) -> None:
    manager.systemctl("stop", SOCKET, SERVICE)
    assert f"{SOCKET} is not active" in examine(manager)
    with connect(manager) as host:
        worker = read_worker(manager)["pid"]
        assert find_worker(manager) == 0
        manager.systemctl("start", SOCKET)  # replaces the socket of the running worker
        with connect(manager):
            assert find_worker(manager) == read_worker(manager)["pid"] != worker
        assert "Added" in host.call("plan", tasks=[{"title": "after the unmanaged one"}])
    manager.systemctl("stop", SOCKET, SERVICE)
    with connect(manager):
        said = manager.punch("daemon", "service", "install", "--now")
    assert "stopped the MCP worker that was not started by the service" in said


def test_stop_leaves_the_socket_for_the_next_session(manager: UserManager) -> None:
    with connect(manager) as host:
        assert "stopped the daemon" in manager.punch("daemon", "stop")
        until(manager, lambda: manager.show("ActiveState", SERVICE) == "inactive")
        manager.punch("daemon", "start")
        assert "Added" in host.call("plan", tasks=[{"title": "after the stop"}])
        assert find_worker(manager)


def test_uninstall_removes_the_units(manager: UserManager) -> None:
    manager.punch("daemon", "service", "uninstall", "--now")
    assert manager.show("ActiveState", SOCKET) == "inactive"
    assert not list(manager.units.glob("**/punchlist-mcp.s*t"))
    assert not list(Path(manager.socket).parent.glob("mcp-*.sock"))
