"""`punch daemon stop` and `start` with a separate daemon."""

import os
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import spawned_daemon


def test_stop_without_daemon_succeeds(run: Any) -> None:
    outcome = run("daemon", "stop")
    assert (outcome.code, outcome.lines) == (0, ["no daemon is running"])


def test_start_reports_daemon(punch: Any) -> None:
    outcome = punch("daemon", "start")
    assert outcome.code == 0 and f"the daemon is running: process {os.getpid()}, " in outcome.lines[0]
    assert punch("daemon", "start", "--json").json["pid"] == os.getpid()


def test_stop_waits_for_exit(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with spawned_daemon(tmp_path / "d") as daemon:
        other = run("--socket", daemon.socket, "daemon", "stop")
        assert other.code != 0 and "data directory" in other.err
        monkeypatch.setenv("PUNCHLIST_DATA_DIR", daemon.data_dir)
        outcome = run("--socket", daemon.socket, "daemon", "stop")
        assert outcome.code == 0 and outcome.lines[0].startswith("stopped the daemon (process ")
        assert not os.path.exists(daemon.socket)
