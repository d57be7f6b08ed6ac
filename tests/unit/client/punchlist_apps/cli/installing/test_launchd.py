"""`punch daemon service` on macOS, with a script as launchctl."""

import os
import plistlib
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.commands import service
from punchlist_schemas.system import macos

LAUNCHCTL = """#!/bin/sh
echo "$@" >> "$HOME/calls"
[ "$1" != print ] || [ -e "$HOME/loaded" ]
"""


@pytest.fixture
def on_macos(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose launchctl is a script that records its arguments."""
    monkeypatch.setattr(service, "os_calls", macos)
    (home / "bin").mkdir()
    (home / "bin" / "launchctl").write_text(LAUNCHCTL)
    (home / "bin" / "launchctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    return home


def test_launch_agent_starts_daemon_at_login_and_crash(on_macos: Path, run: Any) -> None:
    outcome = run("daemon", "service", "install")
    path = on_macos / "Library/LaunchAgents/io.punchlist.punchlistd.plist"
    assert outcome.code == 0 and outcome.lines == [f"wrote {path}"] and "next login" in outcome.err
    written = plistlib.loads(path.read_bytes())
    assert written["ProgramArguments"][:4] == [sys.executable, "-P", "-m", "punchlistd"]
    assert str(on_macos / "data") in written["ProgramArguments"]
    assert (written["RunAtLoad"], written["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert not (on_macos / "calls").exists()


def test_now_and_uninstall_run_launchctl(on_macos: Path, run: Any) -> None:
    assert run("daemon", "service", "install", "--now").code == 0
    assert run("daemon", "service", "status").code == 1
    (on_macos / "loaded").touch()
    assert run("daemon", "service", "status").code == 0
    assert run("daemon", "service", "uninstall").code == 0
    assert run("daemon", "service", "uninstall").lines == ["nothing is installed"]
    calls = [line.split()[0] for line in (on_macos / "calls").read_text().splitlines()]
    assert calls == ["bootout", "bootstrap", "print", "print", "bootout", "bootout"]


def test_systemd_options_are_rejected(on_macos: Path, run: Any) -> None:
    outcome = run("daemon", "service", "install", "--hardened")
    assert outcome.code == 2 and "systemd" in outcome.err
    assert run("daemon", "service", "install", "--print").out.startswith("# /")
