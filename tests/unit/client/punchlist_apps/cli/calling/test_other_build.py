"""Upgrades while the daemon runs, with two real installations."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from punchlist import connect
from punchlist.connection.launch import Target
from punchlist.errors import TimedOut
from punchlist_apps.cli.calling import other_build
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_testing.daemon import spawned_daemon

ROOT = Path(__file__).resolve().parents[6]
FOLDERS = ("daemon", "client", "schemas")

Punch = Callable[..., "subprocess.CompletedProcess[str]"]


def install(place: Path, comment: str) -> str:
    """Copy the program, make one of the daemon's files longer, and return the copy's module path."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, place / folder)
    with open(place / "daemon" / "punchlistd" / "clock.py", "a", encoding="utf-8") as source:
        source.write(f"# {comment}\n")
    return os.pathsep.join(str(place / folder) for folder in FOLDERS)


@pytest.fixture
def upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Punch]:
    """The command line of a newer installation, while the daemon of an older one runs."""
    for name, value in {"HOME": tmp_path, "XDG_RUNTIME_DIR": tmp_path / "r"}.items():
        monkeypatch.setenv(name, str(value))
    for name in ("PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "PUNCHLIST_AUTOSTART", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)

    def punch(*words: str, path: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-P", "-m", "punchlist", *words]
        env = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    old = install(tmp_path / "old", "the older one")
    assert punch("add", "by the older one", path=old).returncode == 0
    new = install(tmp_path / "new", "the newer one of the two")
    yield lambda *words: punch(*words, path=new)
    assert punch("daemon", "stop", path=new).returncode == 0


def test_an_older_idle_daemon_is_replaced(upgraded: Punch) -> None:
    outcome = upgraded("add", "by the newer one")
    assert outcome.returncode == 0 and outcome.stderr.startswith("punch: replaced the daemon (process "), outcome.stderr
    listed = upgraded("list")
    assert listed.stderr == "" and listed.stdout.count("by the") == 2
    assert upgraded("add", "once more").stderr == ""


def test_an_older_daemon_in_use_is_noted_once(upgraded: Punch) -> None:
    with connect(autostart=False) as other:
        pid = other.status().pid
        outcome = upgraded("add", "by the newer one")
        assert outcome.returncode == 0 and "an older build" in outcome.stderr, outcome.stderr
        assert f"(process {pid})" in outcome.stderr and "punch daemon stop" in outcome.stderr
        claim = {"conversation": "default", "owner": "ann", "lease_ms": 3_600_000, "keep": True}
        other.call("task.claim", claim)
    assert upgraded("add", "once more").stderr == "", "the claim keeps the daemon in use"
    with connect(autostart=False) as client:
        assert client.status().pid == pid


def test_only_daemon_with_lower_version_is_older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    with spawned_daemon(tmp_path) as older:
        target = Target(older.socket, older.data_dir, autostart=True)
        with Caller(socket=older.socket, data_dir=older.data_dir, autostart=True) as caller:
            hello = caller.open()
            monkeypatch.setattr(other_build, "__version__", "0.0.1")
            other_build.handle_other_build(caller, hello, target, notes.append)
            other_build.handle_other_build(caller, hello, target, notes.append)
            assert len(notes) == 1 and "runs another build" in notes[0]
            monkeypatch.setattr(other_build, "__version__", "99.0")
            other_build.handle_other_build(caller, hello, target, notes.append)
            assert len(notes) == 2 and f"replaced the daemon (process {hello.pid}" in notes[1]
            assert caller.open().pid != hello.pid
            monkeypatch.setattr(other_build, "__version__", hello.version)
            other_build.handle_other_build(caller, caller.open(), target, notes.append)
            assert len(notes) == 3 and "an older build" not in notes[2]
            caller.call("daemon.shutdown")


def test_versions_sort_by_release() -> None:
    ordered = "0.1.0 0.2.0.dev0 0.2.0rc1.dev1 0.2.0rc1 0.2.0rc2 0.2.0 0.2.0.post3 0.2.1 0.10.0".split()
    stamped = [f"{version}+g58f14210.changed" for version in ordered]
    assert sorted(reversed(stamped), key=other_build._build_sort_key) == stamped  # pyright: ignore[reportPrivateUsage]


def test_a_daemon_that_does_not_stop_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_build, "_STOP_TIMEOUT_S", 0.0)
    with spawned_daemon(tmp_path) as daemon, Caller(socket=daemon.socket, data_dir=daemon.data_dir) as caller:
        pid = caller.open().pid
        with pytest.raises(TimedOut, match=rf"process {pid}\) did not stop; find out why: punch doctor"):
            other_build._connect_to_successor(caller, pid)  # pyright: ignore[reportPrivateUsage] - a real daemon would have ended
