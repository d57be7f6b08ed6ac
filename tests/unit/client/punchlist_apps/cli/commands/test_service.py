"""`punch daemon service` without a user manager and with a fake one.

Tests with a real one are in `tests/system/systemd`.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.relay.dialing import find_path

NAMES = ["punchlistd.service", "punchlistd.socket", "sockets.target.wants/punchlistd.socket"]

FAKE = """#!/bin/sh
echo "$@" >> "$HOME/asked"
case "$*" in
  *show\\ punchlistd*)
    printf "%s\\n" ActiveState=active SubState=running MainPID=7 NRestarts=2 Result=signal StatusText=Serving;;
  *"$FAILING"*) test -z "$FAILING" || { echo "Job failed." >&2; exit 1; };;
esac
"""


@pytest.fixture
def units(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of user units, without a user manager."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return home / ".config" / "systemd" / "user"


@pytest.fixture
def asked(home: Path, units: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which a fake user manager records its calls."""
    (home / "bin").mkdir()
    (home / "bin" / "systemctl").write_text(FAKE)
    (home / "bin" / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAILING", "")
    return home / "asked"


def installed(units: Path) -> list[str]:
    return sorted(str(path.relative_to(units)) for path in units.rglob("*") if not path.is_dir() or path.is_symlink())


def test_install_writes_units(run: Any, units: Path, home: Path) -> None:
    outcome = run("daemon", "service", "install")
    assert outcome.code == 0
    assert installed(units) == NAMES
    assert [line.split()[0] for line in outcome.lines] == ["wrote", "wrote", "linked"]
    assert f"--data-dir {home}/data" in (units / "punchlistd.service").read_text()
    assert f"ListenStream={home}/run/daemon.sock" in (units / "punchlistd.socket").read_text()
    assert (units / NAMES[2]).resolve() == (units / "punchlistd.socket").resolve()


def test_extra_mcp_adds_the_worker(
    run: Any, asked: Path, units: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("mcp", "mcp_types", "uvicorn"):
        (home / "bin" / f"{module}.py").touch()
    monkeypatch.setattr(sys, "path", [str(home / "bin"), *sys.path])
    assert run("daemon", "service", "install", "--now").code == 0
    mcp = ["punchlist-mcp.service", "punchlist-mcp.socket", "sockets.target.wants/punchlist-mcp.socket"]
    assert installed(units) == sorted([*NAMES, *mcp])
    path = find_path(f"{home}/run/daemon.sock", f"{home}/data")
    assert f"ListenStream={path}\n" in (units / "punchlist-mcp.socket").read_text()
    service = (units / "punchlist-mcp.service").read_text()
    assert f"-m punchlist_apps.worker --idle-exit 900 --socket {path} --data-dir {home}/data\n" in service
    assert "start punchlistd.socket punchlist-mcp.socket" in asked.read_text()
    assert run("daemon", "service", "uninstall", "--now").code == 0
    assert "stop punchlistd.socket punchlistd.service punchlist-mcp.socket" in asked.read_text()
    assert installed(units) == []


def test_missing_manager_is_reported_with_advice(run: Any, units: Path) -> None:
    outcome = run("daemon", "service", "install")
    assert outcome.code == 0
    assert "systemd's user manager is not available" in outcome.err
    assert "loginctl enable-linger" in outcome.err
    outcome = run("daemon", "service", "install", "--now")
    assert outcome.code == 1
    assert "nothing was started" in outcome.err


def test_repeated_install_rewrites_changed_units(run: Any, units: Path) -> None:
    run("daemon", "service", "install")
    assert {line.split()[0] for line in run("daemon", "service", "install").lines} == {"unchanged"}
    (units / "punchlistd.service").write_text("changed")
    assert "differs from what install would write" in run("daemon", "service", "status").out
    assert run("daemon", "service", "install").lines[1].split()[0] == "rewrote"
    assert "differs" not in run("daemon", "service", "status").out


def test_print_changes_nothing(run: Any, units: Path) -> None:
    outcome = run("daemon", "service", "install", "--print", "--hardened")
    assert outcome.code == 0
    assert [text in outcome.out for text in ("ListenStream=", "ExecStart=", "PrivateUsers=yes")] == [True] * 3
    assert not units.exists()


def test_uninstall_removes_only_installed_files(run: Any, units: Path) -> None:
    run("daemon", "service", "install", "--hardened")
    (units / "other.service").write_text("theirs")
    outcome = run("daemon", "service", "uninstall")
    assert outcome.code == 0
    assert len(outcome.lines) == 4
    assert installed(units) == ["other.service"]
    assert run("daemon", "service", "uninstall").lines == ["nothing is installed"]


def test_uninstall_notes_running_daemon(punch: Any, units: Path) -> None:
    hint = "the daemon is still running; to stop it: punch daemon stop"
    punch("daemon", "service", "install")
    assert hint in punch("daemon", "service", "uninstall").err
    assert punch("list").code == 0, "the daemon is still running"
    punch("daemon", "stop")
    assert hint not in punch("daemon", "service", "uninstall").err


def test_install_now_starts_socket_and_restarts_service(run: Any, asked: Path) -> None:
    outcome = run("daemon", "service", "install", "--now")
    assert outcome.code == 0
    words = [line.removeprefix("--user --no-pager ") for line in asked.read_text().splitlines()]
    assert [line for line in words if not line.startswith("show")] == [
        "daemon-reload",
        "start punchlistd.socket",
        "try-restart punchlistd.service",
    ]


@pytest.mark.parametrize("step", ["daemon-reload", "start", "try-restart"])
def test_failed_step_is_reported(run: Any, asked: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setenv("FAILING", f"{step}")
    outcome = run("daemon", "service", "install", "--now")
    assert outcome.code == 1
    assert f"systemctl --user {step}" in outcome.err
    assert "Job failed." in outcome.err


def test_status_shows_files_and_units(run: Any, asked: Path) -> None:
    run("daemon", "service", "install")
    outcome = run("daemon", "service", "status")
    assert outcome.code == 0
    assert "punchlistd.service: active (running), process 7, 2 restarts, signal, Serving" in outcome.out
    found = run("daemon", "service", "status", "--json").json
    assert found["units"]["punchlistd.socket"]["MainPID"] == "7"
    assert found["files"] == {"punchlistd.socket": "installed", "punchlistd.service": "installed"}


def test_status_without_units_exits_1(run: Any, units: Path) -> None:
    outcome = run("daemon", "service", "status")
    assert outcome.code == 1
    assert "not installed" in outcome.out


def test_uninstall_now_stops_units_first(run: Any, asked: Path) -> None:
    run("daemon", "service", "install")
    assert run("daemon", "service", "uninstall", "--now").code == 0
    words = asked.read_text()
    assert words.index("stop punchlistd.socket punchlistd.service") < words.rindex("daemon-reload")


def test_units_are_private_for_any_umask(run: Any, units: Path, home: Path) -> None:
    before = os.umask(0)
    try:
        assert run("daemon", "service", "install").code == 0
    finally:
        os.umask(before)
    made = [home / ".config", *(home / ".config").rglob("*"), home / "data"]
    assert {oct(path.lstat().st_mode & 0o077) for path in made if not path.is_symlink()} == {"0o0"}


def test_web_units_are_installed_and_removed(run: Any, units: Path, home: Path) -> None:
    assert run("daemon", "service", "install", "--web").code == 0
    web = ["punchlist-web.service", "punchlist-web.socket", "sockets.target.wants/punchlist-web.socket"]
    assert installed(units) == sorted([*NAMES, *web])
    command = f"web --idle-exit 10m --socket {home}/run/daemon.sock --data-dir {home}/data"
    assert command in (units / "punchlist-web.service").read_text()
    status = run("daemon", "service", "status")
    assert f"{units / 'punchlist-web.socket'}: installed" in status.lines
    assert run("daemon", "service", "uninstall").code == 0
    assert installed(units) == []
