import fcntl
import json
import os
import sqlite3
import sys
import sysconfig
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from punchlist.connection.launch import find_lock_holder
from punchlist.taskfiles.config import Config, Entry
from punchlist.taskfiles.report import Report
from punchlist_apps.cli.commands import doctor
from punchlist_apps.common import extras
from punchlist_testing.daemon import Spawned, running_daemon
from punchlist_testing.engine import Peer
from punchlist_testing.peer import HELLO, Request, Session, scripted_peer
from punchlist_testing.played import SERVER, program
from punchlist_testing.repositories import repository


def states(outcome: Any) -> dict[str, str]:
    return {finding["check"]: finding["state"] for finding in outcome.json}


def test_healthy_installation_is_ok(punch: Any) -> None:
    punch("add", "a")
    outcome = punch("doctor", "--json")
    assert outcome.code == 0
    found = states(outcome)
    assert {"python", "socket directory", "data directory", "disk", "daemon", "versions", "log", "wal"} <= set(found)
    assert {state for check, state in found.items() if check != "status file"} == {"ok"}
    output = punch("doctor")
    assert "  ok  daemon: punchlistd " in output.out


@pytest.mark.parametrize(
    ("options", "prefix", "optimized"),
    [
        ("'--enable-shared' '--prefix=/opt/python'", "/opt/python", False),
        ("'--enable-shared' '--prefix=/usr'", "/usr", True),
        ("'--enable-optimizations' '--with-lto'", "/opt/python", True),
        (None, "/opt/python", True),
    ],
    ids=["plain", "the system's", "optimized", "not told"],
)
def test_python_without_profile_is_noted(
    punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch, options: str | None, prefix: str, optimized: bool
) -> None:
    folder = home / "programs"
    folder.mkdir()
    monkeypatch.setattr(doctor, "_SYSTEM_FOLDER", str(folder))
    monkeypatch.setitem(sysconfig.get_config_vars(), "CONFIG_ARGS", options)
    monkeypatch.setattr(sys, "base_prefix", prefix)
    alone = punch("doctor")
    assert alone.code == 0
    assert ("install punchlist with a Python built with --enable-optimizations" in alone.out) is not optimized
    for name in ("python3.11", "python3.13"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    beside = punch("doctor")
    assert beside.code == 0
    advice = f"for a faster daemon, install punchlist with {folder / 'python3.13'}"
    assert (advice in beside.out) is not optimized


def test_untrusted_project_file_fails(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "a", "-c", "private")
    clone = home / "clone"
    clone.mkdir()
    (clone / ".punchlist.toml").write_text('conversation = "private"\n')
    monkeypatch.chdir(clone)
    outcome = punch("doctor")
    assert outcome.code == 1
    assert "names the list private, which was not made for this project" in outcome.out
    assert f"punch init --trust in {clone}" in outcome.out
    punch("init", "--trust")
    assert states(punch("doctor", "--json"))["project"] == "ok"


@pytest.fixture
def damaged(home: Path) -> None:
    """A data directory with the lists `a` and `b`. The event after the first task of `a` is damaged."""

    async def write() -> None:
        async with running_daemon(home) as daemon:
            peer = await Peer.open(daemon.socket)
            for name, title in (("a", "first"), ("a", "second"), ("b", "first")):
                await peer.result("task.add", conversation=name, title=title)
            peer.close()

    anyio.run(write)
    with closing(sqlite3.connect(home / "data" / "log.index", isolation_level=None)) as connection:
        connection.execute("DELETE FROM snapshots").close()
    with closing(sqlite3.connect(home / "data" / "log.db", isolation_level=None)) as connection:
        connection.execute("UPDATE log SET body = CAST(replace(body, 'second', 'secund') AS BLOB)").close()


def test_damaged_list_fails_with_advice(damaged: None, punch: Any) -> None:
    seen = punch("doctor")
    assert seen.code == 1 and "fail  list: a is damaged at position 3 (its checksum does not match)\n" in seen.out
    assert "punch daemon stop; punch daemon verify --repair" in seen.out and "list: b" not in seen.out


def test_doctor_starts_no_daemon(run: Any, home: Path) -> None:
    outcome = run("doctor", "--json")
    assert (outcome.code, states(outcome)["daemon"]) == (0, "warn")
    assert not (home / "run").exists()


def test_dead_socket_and_open_directories_are_reported(run: Any, home: Path) -> None:
    (home / "run").mkdir()
    (home / "run").chmod(0o755)
    (home / "run" / "daemon.sock").write_text("")
    (home / "data").write_text("a file")
    outcome = run("doctor")
    assert outcome.code == 1
    assert f"warn  socket directory: {home}/run is open to others (mode 0755)\n" in outcome.out
    assert f"      → chmod 700 {home}/run\n" in outcome.out
    assert f"fail  data directory: {home}/data is not a directory" in outcome.out
    assert "warn  daemon: not running" in outcome.out


def test_missing_status_file_is_reported(tmp_path: Path) -> None:
    socket = str(tmp_path / "daemon.sock")
    assert doctor.check_status_file(socket).state == "warn"
    (tmp_path / "status").write_text("1 open, 0 in progress\n")
    assert doctor.check_status_file(socket).state == "ok"


@pytest.mark.parametrize(
    ("limit", "check"),
    [("_LARGE_LOG_BYTES", "log"), ("_LARGE_WAL_BYTES", "wal"), ("_MIN_FREE_BYTES", "disk")],
)
def test_sizes_beyond_limits_are_reported(punch: Any, monkeypatch: pytest.MonkeyPatch, limit: str, check: str) -> None:
    punch("add", "a")
    monkeypatch.setattr(doctor, limit, 2**60 if check == "disk" else -1)
    outcome = punch("doctor", "--json")
    assert states(outcome)[check] == "warn"
    assert all(finding["advice"] for finding in outcome.json if finding["state"] != "ok")


def test_daemon_on_other_socket_is_reported(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_SOCKET", str(home / "run" / "other.sock"))
    outcome = punch("doctor", "--json")
    [found] = [finding for finding in outcome.json if finding["check"] == "daemon"]
    assert (outcome.code, found["state"]) == (1, "fail")
    where = f"none on {home}/run/other.sock; pid {os.getpid()} uses {home}/data and listens on another socket"
    assert found["found"] == where
    assert found["advice"].endswith(f"or stop it: kill {os.getpid()}")


def test_unheld_lock_is_ignored(tmp_path: Path) -> None:
    assert find_lock_holder(str(tmp_path)) is None
    (tmp_path / "lock").write_text(f"{os.getpid()}\n")
    assert find_lock_holder(str(tmp_path)) is None


def test_daemon_with_socket_option_is_reported(
    home: Path, run: Any, process: Spawned, monkeypatch: pytest.MonkeyPatch
) -> None:
    del process
    socket = os.environ["PUNCHLIST_SOCKET"]
    monkeypatch.setenv("PUNCHLIST_SOCKET", str(home / "run" / "other.sock"))
    assert f"use its socket: PUNCHLIST_SOCKET={socket}; or stop it: kill " in run("doctor").out


def finding(outcome: Any, check: str) -> dict[str, str]:
    [found] = [one for one in outcome.json if one["check"] == check]
    return found


def test_other_version_directory_and_errors_are_reported(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def handler(session: Session, request: Request) -> None:
        errors = ["no space left", "a bad page", "no space left"]
        status = {"data_dir": "/else/where", "log_bytes": 1, "wal_bytes": 0, "last_errors": errors}
        session.answer(request, status | {"conversations": []})

    with scripted_peer(home, handler, replace(HELLO, version="0.0.1")) as peer:
        monkeypatch.setenv("PUNCHLIST_SOCKET", peer.socket)
        outcome = run("doctor", "--json")
    assert finding(outcome, "versions")["found"].startswith("daemon 0.0.1, command ")
    assert finding(outcome, "data in use")["found"] == "the daemon stores its data in /else/where"
    result = [one["found"] for one in outcome.json if one["check"] == "last error"]
    assert result == ["no space left (2 times)", "a bad page"]


def test_other_protocol_fails(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted_peer(home, lambda session, request: None, replace(HELLO, protocol=99)) as peer:
        monkeypatch.setenv("PUNCHLIST_SOCKET", peer.socket)
        outcome = run("doctor", "--json")
    found = finding(outcome, "daemon")
    assert (outcome.code, found["state"]) == (1, "fail") and "99" in found["found"] + found["advice"]


def test_unusable_directories_fail(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("PUNCHLIST_DATA_DIR", str(home / "file" / "data"))
    found = finding(run("doctor", "--json"), "data directory")
    assert found["state"] == "fail" and found["found"].endswith("/file/data: Not a directory")
    monkeypatch.setenv("PUNCHLIST_DATA_DIR", "/proc/none/punchlist")  # not even root can create files there

    def may_be_used(path: str, _mode: int) -> bool:
        return path != "/proc"

    monkeypatch.setattr(os, "access", may_be_used)
    found = finding(run("doctor", "--json"), "data directory")
    assert (found["state"], found["advice"]) == ("fail", "use another with PUNCHLIST_DATA_DIR or --data-dir")
    assert found["found"] == "/proc/none/punchlist does not exist and can't be created in /proc"
    strange = home / "strange"
    strange.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: strange.stat().st_uid + 1)
    monkeypatch.setenv("PUNCHLIST_DATA_DIR", str(strange))
    found = finding(run("doctor", "--json"), "data directory")
    assert found["state"] == "fail" and found["found"] == f"{strange} belongs to uid {strange.stat().st_uid}"


def test_list_of_directory_is_reported(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert finding(run("doctor", "--json"), "project")["advice"] == "give agents a list here: punch init"
    monkeypatch.chdir(repository(home / "website"))
    assert finding(run("doctor", "--json"), "project")["found"].startswith("website-")
    (home / "website" / ".punchlist.toml").write_text("conversation = [")
    assert finding(run("doctor", "--json"), "project")["state"] == "fail"


def test_stopped_or_polling_mirror_is_reported(run: Any, home: Path) -> None:
    config = Config(str(home / "data"))
    config.add(Entry(str(home)))
    assert finding(run("doctor", "--json"), "mirror")["advice"] == "punch mirror run"
    report = Report(str(home / "data"), print)
    report.save()
    with open(Path(config.directory) / "lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert finding(run("doctor", "--json"), "mirror")["found"] == f"updated by pid {os.getpid()}"
        report.watching = "polling"
        report.save()
        assert "polled" in finding(run("doctor", "--json"), "mirror")["found"]
    Path(config.path).write_text("{")
    assert finding(run("doctor", "--json"), "mirror")["state"] == "fail"


def test_unreadable_status_file_fails(tmp_path: Path) -> None:
    (tmp_path / "status").mkdir()
    assert doctor.check_status_file(str(tmp_path / "daemon.sock")).state == "fail"


@pytest.mark.parametrize(("address", "extra"), [("tls://h:4222", "shared"), ("postgres://ann@h:5432/d", "postgres")])
def test_missing_extra_of_space_is_reported_with_command(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch, address: str, extra: str
) -> None:
    def is_installed(extra: str = "mcp") -> bool:
        return extra in ("mcp", "web")

    monkeypatch.setattr(extras, "is_installed", is_installed)
    before = run("doctor", "--json")
    assert f"extra {extra}" not in states(before)
    missing = finding(before, "extras")
    assert (missing["state"], missing["found"]) == (
        "ok",
        "not installed: ui, shared, postgres, chat-sdk, chatkit, uvloop",
    )
    assert missing["advice"] == f"to install one, such as shared: {extras.build_install_command('shared')}"
    (home / "data").mkdir(exist_ok=True)
    (home / "data/spaces.json").write_text(json.dumps({"spaces": [{"name": "team", "urls": [address]}]}))
    result = finding(run("doctor", "--json"), f"extra {extra}")
    assert (result["state"], result["advice"]) == (
        "warn",
        f"{extras.build_install_command(extra)}; then: punch daemon stop",
    )
    (home / "data/spaces.json").unlink()
    monkeypatch.setenv("PUNCHLIST_SPACE", f"{address}/team")
    assert finding(run("doctor", "--json"), f"extra {extra}")["state"] == "warn"


def test_host_with_plugin_and_entries_is_reported(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch = str(program(home / "bin", "punch", SERVER))
    monkeypatch.setenv("PATH", str(home / "bin"))
    (home / "project").mkdir()
    monkeypatch.chdir(home / "project")
    (home / ".gemini" / "extensions" / "punchlist").mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps({"mcpServers": {"punchlist": {"command": punch}}}))
    found = [one for one in run("doctor", "--json").json if one["check"] == "Gemini CLI"]
    assert [one["state"] for one in found] == ["ok", "warn", "ok"]
    assert found[1]["advice"] == "punch setup gemini --scope user --remove"
    rules = {"punchlist": {"overrides": [f"!{home}/*", f"{home}/project/*"]}}
    (home / ".gemini" / "extensions" / "extension-enablement.json").write_text(json.dumps(rules))
    found = [one for one in run("doctor", "--json").json if one["check"] == "Gemini CLI"]
    assert found[1]["advice"] == "gemini extensions disable punchlist --scope workspace"
    (home / "bin" / "punch").unlink()
    found = [one for one in run("doctor", "--json").json if one["check"] == "Gemini CLI"]
    assert found[-1] == {
        "check": "Gemini CLI",
        "state": "fail",
        "found": "the plugin punchlist can't run punch: punch: no such program",
        "advice": "put its directory into PATH",
    }
