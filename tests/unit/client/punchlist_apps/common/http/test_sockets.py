"""Servers listen only on this machine, wherever their sockets come from."""

import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from punchlist_apps.common.http import sockets
from punchlist_apps.common.http.sockets import open_loopback_sockets, open_unix_socket, take_systemd_sockets

FIRST = 200


def hand_over(monkeypatch: pytest.MonkeyPatch, *given: socket.socket) -> None:
    """Pass sockets like systemd: consecutive descriptors, counted in the environment."""
    for number, one in enumerate(given):
        os.dup2(one.fileno(), FIRST + number)
        one.close()
    monkeypatch.setattr(sockets, "_FIRST_FD", FIRST)
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", str(len(given)))


def test_both_loopback_addresses_share_one_port() -> None:
    found = open_loopback_sockets(0)
    try:
        assert {one.getsockname()[0] for one in found} <= {"127.0.0.1", "::1"}
        (port,) = {one.getsockname()[1] for one in found}
        with pytest.raises(OSError, match="in use"):
            open_loopback_sockets(port)
    finally:
        for one in found:
            one.close()


def test_ipv4_is_enough_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    listening = sockets._open_listener  # pyright: ignore[reportPrivateUsage]

    def no_ipv6(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
        # The kernel's error on machines without ::1.
        return listening(family, "2001:db8::1" if family == socket.AF_INET6 else address, port)

    monkeypatch.setattr(sockets, "_open_listener", no_ipv6)
    (only,) = open_loopback_sockets(0)
    with closing(only):
        assert only.getsockname()[0] == "127.0.0.1"


def test_systemd_sockets_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hand_over(monkeypatch, *open_loopback_sockets(0), open_unix_socket(str(tmp_path / "s")))
    found = take_systemd_sockets()
    assert (found[0].family, found[-1].family) == (socket.AF_INET, socket.AF_UNIX)
    for one in found:
        one.close()
    monkeypatch.setenv("LISTEN_PID", "1")
    assert take_systemd_sockets() == []


def test_socket_reachable_by_other_machines_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    hand_over(monkeypatch, socket.create_server(("0.0.0.0", 0)))
    with pytest.raises(ValueError, match=r"must be on 127\.0\.0\.1"):
        take_systemd_sockets()


def test_unix_socket_is_private_and_replaces_stale_ones(tmp_path: Path) -> None:
    path = str(tmp_path / "web.sock")
    with closing(open_unix_socket(path)):
        assert os.stat(path).st_mode & 0o777 == 0o600
        with pytest.raises(OSError, match="in use"):
            open_unix_socket(path)
    with closing(open_unix_socket(path)), socket.socket(socket.AF_UNIX) as caller:  # the previous server has ended
        caller.connect(path)
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(OSError, match="in use"):
        open_unix_socket(str(file))
    assert file.read_text() == "mine"
