import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from punchlist_schemas.system.notify import notify
from punchlistd.net import systemd

# systemd starts the service with the sockets as descriptors 3, 4, … and its process id in the environment.
INHERIT = """
import os, socket, sys
sys.path[:0] = {path!r}
from punchlistd.net import systemd
from punchlistd.net.listener import PlaceUnusable
os.environ["LISTEN_PID"] = {pid}
os.environ["LISTEN_FDS"] = {count!r}
os.environ["LISTEN_FDNAMES"] = "punchlist"
os.set_inheritable(3, True)
try:
    inherited = systemd.take_inherited_socket(os.environ)
    print(inherited and inherited.path, os.get_inheritable(3), [name for name in os.environ if name[:6] == "LISTEN"])
except PlaceUnusable as error:
    print("refused:", error)
"""


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    tmp_path.chmod(0o700)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "s"))
        (tmp_path / "s").chmod(0o600)
        sock.listen()
        yield sock


def inherit(listening: socket.socket, pid: str = "str(os.getpid())", count: str = "1") -> str:
    code = INHERIT.format(path=[each for each in sys.path if each], pid=pid, count=count)
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" 3<&0 </dev/null', sys.executable, code],
        stdin=listening.fileno(),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_inherited_socket_is_not_passed_to_children(listening: socket.socket) -> None:
    assert inherit(listening) == f"{listening.getsockname()} False []\n"


@pytest.mark.parametrize("pid", ["'1'", "''", "'junk'", "'-1'"])
def test_sockets_of_another_process_are_ignored(listening: socket.socket, pid: str) -> None:
    assert inherit(listening, pid=pid) == "None True []\n"


@pytest.mark.parametrize("count", ["0", "2", "", "junk"])
def test_any_count_but_one_is_rejected(listening: socket.socket, count: str) -> None:
    assert inherit(listening, count=count) == (
        f"refused: The service manager passed LISTEN_FDS={count!r}; exactly one socket can be served.\n"
    )


def test_nothing_is_inherited_without_systemd() -> None:
    assert systemd.take_inherited_socket({}) is None


def path_address(tmp_path: Path) -> str:
    return str(tmp_path / "notify")


def abstract_address(tmp_path: Path) -> str:
    return f"@{tmp_path}"


@pytest.mark.parametrize("address", [path_address, abstract_address])
def test_notification_is_one_datagram(tmp_path: Path, address: Callable[[Path], str]) -> None:
    name = address(tmp_path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(5)
        manager.bind(name.replace("@", "\0"))
        assert notify({"NOTIFY_SOCKET": name}, "READY=1", "STATUS=Serving /a b")
        assert manager.recv(100) == b"READY=1\nSTATUS=Serving /a b"


def test_nothing_is_sent_without_a_manager() -> None:
    assert not notify({}, "READY=1")


def test_unreachable_manager_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not notify({"NOTIFY_SOCKET": str(tmp_path / "nothing")}, "WATCHDOG=1")
    assert "could not be told WATCHDOG=1" in caplog.text
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "deaf"))
        told = [notify({"NOTIFY_SOCKET": str(tmp_path / "deaf")}, "WATCHDOG=1") for _ in range(2000)]
    assert told[0]
    assert not told[-1]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "junk"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
        ({"WATCHDOG_USEC": "2500000"}, 2.5),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": str(os.getpid())}, 2.5),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "1"}, None),
    ],
)
def test_watchdog_interval_is_read_for_this_process(env: dict[str, str], expected: float | None) -> None:
    assert systemd.watchdog_s(env) == expected
