"""Without a user manager, and with one that a script plays; `tests/system/systemd` has a real one."""

import os
from pathlib import Path
from typing import Any

import pytest

NAMES = ["punchlistd.service", "punchlistd.socket", "sockets.target.wants/punchlistd.socket"]

PLAYED = """#!/bin/sh
echo "$@" >> "$HOME/asked"
case "$*" in
  *show\\ punchlistd*)
    printf "%s\\n" ActiveState=active SubState=running MainPID=7 NRestarts=2 Result=signal StatusText=Serving;;
  *"$FAILING"*) test -z "$FAILING" || { echo "Job failed." >&2; exit 1; };;
esac
"""


@pytest.fixture
def units(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of user units; no manager answers."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    return home / ".config" / "systemd" / "user"


@pytest.fixture
def asked(home: Path, units: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a played manager was asked."""
    (home / "bin").mkdir()
    (home / "bin" / "systemctl").write_text(PLAYED)
    (home / "bin" / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAILING", "")
    return home / "asked"


def installed(units: Path) -> list[str]:
    return sorted(str(path.relative_to(units)) for path in units.rglob("*") if not path.is_dir() or path.is_symlink())


def test_install_writes_the_units_and_says_what_it_did(run: Any, units: Path, home: Path) -> None:
    done = run("daemon", "service", "install")
    assert done.code == 0
    assert installed(units) == NAMES
    assert [line.split()[0] for line in done.lines] == ["wrote", "wrote", "linked"]
    assert f"--data-dir {home}/data" in (units / "punchlistd.service").read_text()
    assert f"ListenStream={home}/run/daemon.sock" in (units / "punchlistd.socket").read_text()
    assert (units / NAMES[2]).resolve() == (units / "punchlistd.socket").resolve()


def test_without_a_manager_it_says_so_and_what_helps(run: Any, units: Path) -> None:
    done = run("daemon", "service", "install")
    assert done.code == 0
    assert "systemd's user manager is not available" in done.err
    assert "loginctl enable-linger" in done.err
    done = run("daemon", "service", "install", "--now")
    assert done.code == 1
    assert "nothing was started" in done.err


def test_install_can_be_repeated_and_mends_what_was_changed(run: Any, units: Path) -> None:
    run("daemon", "service", "install")
    assert {line.split()[0] for line in run("daemon", "service", "install").lines} == {"unchanged"}
    (units / "punchlistd.service").write_text("changed")
    assert "differs from what install would write" in run("daemon", "service", "status").out
    assert run("daemon", "service", "install").lines[1].split()[0] == "rewrote"
    assert "differs" not in run("daemon", "service", "status").out


def test_print_changes_nothing(run: Any, units: Path) -> None:
    done = run("daemon", "service", "install", "--print", "--hardened")
    assert done.code == 0
    assert [text in done.out for text in ("ListenStream=", "ExecStart=", "PrivateUsers=yes")] == [True] * 3
    assert not units.exists()


def test_uninstall_takes_away_what_install_made_and_nothing_else(run: Any, units: Path) -> None:
    run("daemon", "service", "install", "--hardened")
    (units / "other.service").write_text("theirs")
    done = run("daemon", "service", "uninstall")
    assert done.code == 0
    assert len(done.lines) == 4
    assert installed(units) == ["other.service"]
    assert run("daemon", "service", "uninstall").lines == ["nothing is installed"]


def test_uninstall_says_that_the_daemon_goes_on_and_how_to_end_it(punch: Any, units: Path) -> None:
    hint = "the daemon is still running; to stop it: punch daemon stop"
    punch("daemon", "service", "install")
    assert hint in punch("daemon", "service", "uninstall").err
    assert punch("list").code == 0, "it does"
    punch("daemon", "stop")
    assert hint not in punch("daemon", "service", "uninstall").err


def test_install_now_starts_the_socket_and_restarts_the_service_by_the_manager(run: Any, asked: Path) -> None:
    done = run("daemon", "service", "install", "--now")
    assert done.code == 0
    words = [line.removeprefix("--user --no-pager ") for line in asked.read_text().splitlines()]
    assert [line for line in words if not line.startswith("show")] == [
        "daemon-reload",
        "start punchlistd.socket",
        "try-restart punchlistd.service",
    ]


@pytest.mark.parametrize("step", ["daemon-reload", "start", "try-restart"])
def test_a_step_that_fails_is_told(run: Any, asked: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setenv("FAILING", f"{step}")
    done = run("daemon", "service", "install", "--now")
    assert done.code == 1
    assert f"systemctl --user {step}" in done.err
    assert "Job failed." in done.err


def test_status_tells_of_files_and_units(run: Any, asked: Path) -> None:
    run("daemon", "service", "install")
    done = run("daemon", "service", "status")
    assert done.code == 0
    assert "punchlistd.service: active (running), process 7, 2 restarts, signal, Serving" in done.out
    found = run("daemon", "service", "status", "--json").json
    assert found["units"]["punchlistd.socket"]["MainPID"] == "7"
    assert found["files"] == {"punchlistd.socket": "installed", "punchlistd.service": "installed"}


def test_status_of_nothing_is_a_refusal(run: Any, units: Path) -> None:
    done = run("daemon", "service", "status")
    assert done.code == 1
    assert "not installed" in done.out


def test_uninstall_now_stops_it_first(run: Any, asked: Path) -> None:
    run("daemon", "service", "install")
    assert run("daemon", "service", "uninstall", "--now").code == 0
    words = asked.read_text()
    assert words.index("stop punchlistd.socket punchlistd.service") < words.rindex("daemon-reload")


def test_the_units_are_for_us_alone_whatever_the_umask(run: Any, units: Path, home: Path) -> None:
    before = os.umask(0)
    try:
        assert run("daemon", "service", "install").code == 0
    finally:
        os.umask(before)
    made = [home / ".config", *(home / ".config").rglob("*"), home / "data"]
    assert {oct(path.lstat().st_mode & 0o077) for path in made if not path.is_symlink()} == {"0o0"}


def test_the_web_server_gets_a_socket_and_a_service_too_and_goes_with_them(run: Any, units: Path, home: Path) -> None:
    assert run("daemon", "service", "install", "--web").code == 0
    web = ["punchlist-web.service", "punchlist-web.socket", "sockets.target.wants/punchlist-web.socket"]
    assert installed(units) == sorted([*NAMES, *web])
    command = f"web --idle-exit 10m --socket {home}/run/daemon.sock --data-dir {home}/data"
    assert command in (units / "punchlist-web.service").read_text()
    status = run("daemon", "service", "status")
    assert f"{units / 'punchlist-web.socket'}: installed" in status.lines
    assert run("daemon", "service", "uninstall").code == 0
    assert installed(units) == []
