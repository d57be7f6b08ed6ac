"""`punch daemon stop`, over a daemon of its own."""

import os
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import spawned_daemon


def test_where_no_daemon_runs_there_is_nothing_to_stop(run: Any) -> None:
    told = run("daemon", "stop")
    assert (told.code, told.lines) == (0, ["no daemon is running"])


def test_a_start_tells_which_daemon_runs(punch: Any) -> None:
    told = punch("daemon", "start")
    assert told.code == 0 and f"the daemon is running: process {os.getpid()}, " in told.lines[0]
    assert punch("daemon", "start", "--json").json["pid"] == os.getpid()


def test_a_daemon_has_gone_when_it_is_said(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with spawned_daemon(tmp_path / "d") as daemon:
        other = run("--socket", daemon.socket, "daemon", "stop")
        assert other.code != 0 and "data directory" in other.err
        monkeypatch.setenv("PUNCHLIST_DATA_DIR", daemon.data_dir)
        told = run("--socket", daemon.socket, "daemon", "stop")
        assert told.code == 0 and told.lines[0].startswith("stopped the daemon (process ")
        assert not os.path.exists(daemon.socket)
