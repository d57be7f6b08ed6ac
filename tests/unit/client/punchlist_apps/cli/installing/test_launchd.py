"""`punch daemon service` on macOS: what is written, and what launchctl is asked; there is no launchd here."""

import os
import plistlib
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.commands import service
from punchlist_schemas.system import macos

LAUNCHCTL = """#!/bin/sh
echo "$@" >> "$HOME/asked"
[ "$1" != print ] || [ -e "$HOME/loaded" ]
"""


@pytest.fixture
def on_macos(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which launchctl is a script that notes what it is asked."""
    monkeypatch.setattr(service, "os_calls", macos)
    (home / "bin").mkdir()
    (home / "bin" / "launchctl").write_text(LAUNCHCTL)
    (home / "bin" / "launchctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    return home


def test_the_agent_starts_this_daemon_at_login_and_after_a_crash(on_macos: Path, run: Any) -> None:
    done = run("daemon", "service", "install")
    path = on_macos / "Library/LaunchAgents/io.punchlist.punchlistd.plist"
    assert done.code == 0 and done.lines == [f"wrote {path}"] and "next login" in done.err
    written = plistlib.loads(path.read_bytes())
    assert written["ProgramArguments"][:4] == [sys.executable, "-P", "-m", "punchlistd"]
    assert str(on_macos / "data") in written["ProgramArguments"]
    assert (written["RunAtLoad"], written["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert not (on_macos / "asked").exists()


def test_now_and_uninstall_ask_launchctl(on_macos: Path, run: Any) -> None:
    assert run("daemon", "service", "install", "--now").code == 0
    assert run("daemon", "service", "status").code == 1
    (on_macos / "loaded").touch()
    assert run("daemon", "service", "status").code == 0
    assert run("daemon", "service", "uninstall").code == 0
    assert run("daemon", "service", "uninstall").lines == ["nothing is installed"]
    asked = [line.split()[0] for line in (on_macos / "asked").read_text().splitlines()]
    assert asked == ["bootout", "bootstrap", "print", "print", "bootout", "bootout"]


def test_what_systemd_alone_can_do_is_refused(on_macos: Path, run: Any) -> None:
    refused = run("daemon", "service", "install", "--hardened")
    assert refused.code == 2 and "systemd" in refused.err
    assert run("daemon", "service", "install", "--print").out.startswith("# /")
