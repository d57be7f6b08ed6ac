"""The shipped units under a real user manager."""

import http.client
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from punchlist_testing.callers import Callers
from punchlist_testing.daemon import Raw
from punchlist_testing.user_manager import Unavailable, UserManager, user_manager

SOON_S = 15.0


EXTRA = """\
[Unit]
{unit}
[Service]
Environment=PYTHONPATH={path}
StandardError=append:{home}/daemon.log
WatchdogSec=1
"""


def configure(manager: UserManager, unit: str = "StartLimitBurst=100") -> None:
    """Add the tests' settings to the shipped units: the path of the copied program, a log, short timeouts."""
    extra = manager.units / "punchlistd.service.d" / "test.conf"
    manager.run("mkdir", "-p", str(extra.parent))
    extra.write_text(EXTRA.format(unit=unit, path=manager.env["PYTHONPATH"], home=manager.home))
    manager.systemctl("daemon-reload")


@pytest.fixture(scope="module")
def manager() -> Iterator[UserManager]:
    """A manager in which the service has been installed and started."""
    try:
        with user_manager() as manager:
            configure(manager)
            assert "ran systemctl --user start punchlistd.socket" in manager.punch(
                "daemon", "service", "install", "--now"
            )
            yield manager
    except Unavailable as reason:
        pytest.skip(str(reason))


def until(manager: UserManager, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline, manager.log()
        time.sleep(0.02)


def pid_of_the_daemon(manager: UserManager) -> int:
    """Return the daemon's process id, asked for as clients do.

    Retries after a reset, because a killed daemon drops the connections that it accepted.
    """
    deadline = time.monotonic() + SOON_S
    while True:
        client = Raw(manager.socket)
        try:
            return int(client.result("daemon.status")["pid"])
        except (ConnectionError, EOFError):
            assert time.monotonic() < deadline, manager.log()
        finally:
            client.close()


def test_first_connection_starts_the_daemon(manager: UserManager) -> None:
    pid = pid_of_the_daemon(manager)
    assert manager.show("MainPID") == str(pid)
    assert manager.show("StatusText") == f"Serving {manager.socket}"
    assert oct(os.stat(manager.socket).st_mode & 0o777) == "0o600"
    assert oct(os.stat(os.path.dirname(manager.socket)).st_mode & 0o777) == "0o700"
    assert f"punchlistd.service: active (running), process {pid}" in manager.punch("daemon", "service", "status")


def test_settings_without_namespaces_take_effect(manager: UserManager) -> None:
    status = Path("/proc", str(pid_of_the_daemon(manager)), "status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert "Umask:\t0077" in status
    assert "CapEff:\t0000000000000000" in status


def test_crashed_daemon_is_restarted(manager: UserManager) -> None:
    first = pid_of_the_daemon(manager)
    inode, restarts = os.stat(manager.socket).st_ino, int(manager.show("NRestarts"))
    os.kill(first, signal.SIGKILL)
    assert pid_of_the_daemon(manager) != first
    until(manager, lambda: int(manager.show("NRestarts")) == restarts + 1)
    assert os.stat(manager.socket).st_ino == inode


def test_watchdog_restarts_a_hung_daemon(
    manager: UserManager,
) -> None:
    first = pid_of_the_daemon(manager)
    restarts = int(manager.show("NRestarts"))
    os.kill(first, signal.SIGSTOP)
    assert pid_of_the_daemon(manager) != first
    until(manager, lambda: int(manager.show("NRestarts")) == restarts + 1)


def test_watchdog_spares_a_healthy_daemon(manager: UserManager) -> None:
    first = pid_of_the_daemon(manager)
    with Callers(manager.socket, "busy", 4) as callers:
        time.sleep(2.2)  # more than twice WatchdogSec
    assert callers.failed == []
    assert pid_of_the_daemon(manager) == first


def test_restarts_under_load_lose_no_call(manager: UserManager) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with Callers(manager.socket, "load", 8) as callers:
        for _ in range(4):
            callers.wait_for(chance.randrange(1, 100))
            manager.systemctl("restart", "punchlistd.service")
        callers.wait_for(50)
    assert callers.failed == []
    assert callers.lost() == []
    print(f"{len(callers.acknowledged)} calls, the slowest took {callers.slowest_s * 1000:.0f} ms")


def test_failing_daemon_is_given_up(manager: UserManager) -> None:
    manager.systemctl("stop", "punchlistd.service")
    configure(manager, "")
    log = Path(manager.data_dir, "log.db")
    log.rename(log.with_suffix(".aside"))
    log.write_bytes(b"no database " * 500)
    manager.systemctl("reset-failed")
    before = manager.log().count("is not a punchlist log")
    try:
        client = Raw(manager.socket)
        until(manager, lambda: manager.show("Result", "punchlistd.socket") == "service-start-limit-hit")
        client.close()
        assert 1 <= manager.log().count("is not a punchlist log") - before <= 5
        assert not os.path.exists(manager.socket)
    finally:
        log.unlink()
        log.with_suffix(".aside").rename(log)
        configure(manager)
        manager.systemctl("reset-failed")
        manager.systemctl("start", "punchlistd.socket")
    assert pid_of_the_daemon(manager)


def test_unmanaged_daemon_yields_to_the_service(manager: UserManager) -> None:
    manager.systemctl("stop", "punchlistd.socket", "punchlistd.service")
    manager.punch("add", "by itself")
    assert os.path.exists(manager.socket)
    assert manager.show("MainPID") == "0"
    assert "stopped the daemon that was not started by the service" in manager.punch(
        "daemon", "service", "install", "--now"
    )
    assert str(pid_of_the_daemon(manager)) == manager.show("MainPID")
    assert "by itself" in manager.punch("list")


def test_stop_holds_until_the_next_command(manager: UserManager) -> None:
    manager.punch("list")
    assert manager.show("ActiveState", "punchlistd.socket") == "active"
    assert "stopped the daemon" in manager.punch("daemon", "stop")
    assert manager.show("ActiveState", "punchlistd.socket") == "inactive"
    assert not os.path.exists(manager.socket)
    manager.punch("list")
    assert str(pid_of_the_daemon(manager)) == manager.show("MainPID")


def test_daemon_that_lost_its_socket_yields(manager: UserManager) -> None:
    manager.systemctl("stop", "punchlistd.socket", "punchlistd.service")
    manager.punch("add", "once more")
    manager.systemctl("start", "punchlistd.socket")  # replaces the socket of the running daemon
    assert str(pid_of_the_daemon(manager)) == manager.show("MainPID")


def test_hardened_unit_sees_only_its_own_files(manager: UserManager) -> None:
    said = manager.punch("daemon", "service", "install", "--now", "--hardened")
    assert "hardening.conf" in said
    pid = pid_of_the_daemon(manager)
    for namespace in ("user", "net", "mnt", "ipc"):
        assert os.readlink(f"/proc/{pid}/ns/{namespace}") != os.readlink(f"/proc/{manager.pid}/ns/{namespace}")
    mounts = Path("/proc", str(pid), "mountinfo").read_text()
    seen = {line.split()[4]: line.split()[5].split(",")[0] for line in mounts.splitlines()}
    assert (seen["/"], seen[manager.data_dir]) == ("ro", "rw")
    assert {"/home", "/root", "/run/user", "/tmp"} <= set(seen)
    below = f"/proc/{pid}/root"
    assert os.listdir(f"{below}/root") == os.listdir(f"{below}/home") == []
    assert sorted(os.listdir(f"{below}{manager.runtime}")) == ["punchlist", "systemd"]
    assert os.listdir(f"{below}{manager.runtime}/systemd") == ["notify"]
    manager.punch("add", "hardened")
    until(manager, (manager.runtime / "punchlist" / "status").exists)


def test_first_request_starts_the_page_server(
    manager: UserManager,
) -> None:
    service = "punchlist-web.service"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]  # a free port, because another user of this machine may run punch web
    drop_ins = {
        service: EXTRA.format(unit="", path=manager.env["PYTHONPATH"], home=manager.home).partition("Watch")[0],
        "punchlist-web.socket": f"[Socket]\nListenStream=\nListenStream=127.0.0.1:{port}\n",
    }
    for unit, text in drop_ins.items():
        path = manager.units / f"{unit}.d" / "test.conf"
        manager.run("mkdir", "-p", str(path.parent))
        path.write_text(text)
    assert "punchlist-web.socket" in manager.punch("service", "install", "--now", "--web")
    assert manager.show("ActiveState", service) == "inactive"
    assert b"<!doctype html>" in fetched(port, "/")
    pid = int(manager.show("MainPID", service))
    secret = Path(manager.data_dir, "web.token").read_text().strip()
    assert b'"conversations"' in fetched(port, "/api/v1/conversations", secret)
    os.kill(pid, signal.SIGKILL)
    until(manager, lambda: manager.show("MainPID", service) not in ("0", str(pid)))
    assert b'"conversations"' in fetched(port, "/api/v1/conversations", secret)
    assert "::/0" in manager.show("IPAddressDeny", service)


def fetched(port: int, path: str, secret: str = "") -> bytes:
    """Return the body of the page server's response."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=SOON_S)) as connection:
        connection.request("GET", path, headers={"Authorization": f"Bearer {secret}"} if secret else {})
        return connection.getresponse().read()


def test_uninstall_leaves_only_the_log(manager: UserManager) -> None:
    said = manager.punch("daemon", "service", "uninstall", "--now")
    assert "removed" in said
    assert not os.path.exists(manager.socket)
    assert sorted(path.name for path in manager.units.rglob("*") if path.is_file()) == ["test.conf"] * 3
    assert Path(manager.data_dir, "log.db").exists()
    assert manager.show("LoadState") == "not-found"
