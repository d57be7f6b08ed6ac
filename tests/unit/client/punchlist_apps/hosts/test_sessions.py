import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from punchlist_apps.hosts import sessions
from punchlist_apps.hosts.sessions import (
    HostProcess,
    Sessions,
    build_agent_name,
    find_host_process,
    get_session,
    hash_session,
)

A, B, C = map(hash_session, ("a", "b", "c"))


def of(directory: Path, process: str | None = "4711-99") -> Sessions:
    return Sessions(str(directory), process)


def test_agent_name_has_host_and_session_hash() -> None:
    assert build_agent_name("claude-code", A) == f"claude-code/{A[:6]}"
    assert build_agent_name("codex-mcp-client", A) == f"codex/{A[:6]}"
    assert build_agent_name("Visual Studio Code", A) == f"Visual-Studio-Code/{A[:6]}"


@pytest.mark.parametrize("host", ["", "../..", "a\x1b[2J", "x" * 10_000, "a/b", "\ud800", "  "])
def test_host_name_is_sanitized_and_shortened(host: str) -> None:
    name = build_agent_name(host, hash_session("\ud800" * 10_000))
    assert len(name) <= 47
    assert name.isascii()
    assert name.isprintable()
    assert name.count("/") == 1


def test_session_variable_counts_only_within_claude_code() -> None:
    assert get_session({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}) == "s"
    assert get_session({"CLAUDE_CODE_SESSION_ID": "s"}) is None
    assert get_session({"CLAUDECODE": "1"}) is None


def test_server_finds_session_recorded_by_hook(tmp_path: Path) -> None:
    of(tmp_path).record("a", "startup")
    assert of(tmp_path).find_agent(A) == A
    assert of(tmp_path, "4711-98").load_current() is None, "the process id was reused"
    assert of(tmp_path, None).load_current() is None


def test_clear_keeps_and_resume_restores_the_agent(tmp_path: Path) -> None:
    hooks, server = of(tmp_path), of(tmp_path)
    assert hooks.record("a", "startup") == A
    assert hooks.record("b", "clear") == A
    assert (server.find_agent(A), server.find_agent(B)) == (A, A)
    assert hooks.record("b") == A
    assert hooks.record("c", "resume") == C
    assert server.find_agent(A) == C, "the server was started in session a"
    assert of(tmp_path, "5000-1").record("b", "resume") == A, "a cleared session keeps its name in another process"


def test_sessions_of_one_process_are_separate_agents(tmp_path: Path) -> None:
    hooks, server = of(tmp_path), of(tmp_path)
    hooks.record("a", "startup")
    hooks.record("b", "startup")
    assert (server.find_agent(A), server.find_agent(B)) == (A, B)
    assert [hooks.record("a"), hooks.record("b")] == [A, B]


def test_resumed_session_keeps_its_agent(tmp_path: Path) -> None:
    hooks = of(tmp_path)
    hooks.record("a", "startup")
    assert hooks.record("c", "resume") == C
    assert hooks.record("a", "resume") == A
    assert of(tmp_path).find_agent(C) == A, "the server follows its window"


def test_cleared_session_keeps_its_agent_elsewhere(tmp_path: Path) -> None:
    of(tmp_path).record("a", "startup")
    assert of(tmp_path).record("b", "clear") == A
    other = of(tmp_path, "5000-1")
    other.record("c", "startup")
    assert other.record("b", "clear") == A, "session b continued the work of a"


def test_a_process_remembers_its_newest_fifty_sessions(tmp_path: Path) -> None:
    hooks = of(tmp_path)
    for number in range(60):
        hooks.record(f"s{number}", "clear" if number else "startup")
    noted = hooks.load_current()
    assert noted is not None
    assert noted.sessions == tuple(hash_session(f"s{number}") for number in range(10, 60))


def test_lock_on_deleted_name_file_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock = tmp_path / "agents" / f"name-{hash_session('ann')}", sessions.fcntl.flock
    gone: list[bool] = []

    def forgotten_first(file: int, operation: int) -> None:
        if not gone:
            gone.append(True)
            path.unlink()
        flock(file, operation)

    monkeypatch.setattr(sessions.fcntl, "flock", forgotten_first)
    first = of(tmp_path)
    assert first.lock_name("ann")
    assert gone
    assert not of(tmp_path).lock_name("ann"), "the lock is on the current file with this name"


def test_name_is_locked_by_one_process(tmp_path: Path) -> None:
    first, second = of(tmp_path), of(tmp_path)
    assert first.lock_name("ann")
    assert first.lock_name("ann")
    assert not second.lock_name("ann")
    assert second.lock_name("bob")
    first.close()
    assert second.lock_name("ann")


def test_old_files_are_deleted_except_locked_names(tmp_path: Path) -> None:
    kept = of(tmp_path)
    kept.lock_name("ann")
    kept.record("a", "startup")
    old = time.time() - 40 * 86_400
    for file in (tmp_path / "agents").iterdir():
        os.utime(file, (old, old))
    of(tmp_path, "5000-1").record("b", "startup")
    assert sorted(file.name.split("-")[0] for file in (tmp_path / "agents").iterdir()) == ["host", "name"]
    assert not of(tmp_path).lock_name("ann")


def test_files_deleted_by_others_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of(tmp_path).record("a", "startup")
    for file in (tmp_path / "agents").iterdir():
        os.utime(file, (1, 1))
    unlink = os.unlink

    def unlink_twice(path: str) -> None:
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", unlink_twice)
    assert of(tmp_path, "5000-1").record("b", "startup") == B


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"agent": 3}', b"\xff" * 100_000, b'{"agent": "x", "sessions": [' + b" " * 70_000 + b"]}"],
)
def test_damaged_session_file_counts_as_missing(content: bytes, tmp_path: Path) -> None:
    of(tmp_path).record("a", "startup")
    (noted,) = (tmp_path / "agents").iterdir()
    noted.write_bytes(content)
    assert of(tmp_path).load_current() is None
    assert of(tmp_path).record("b", "clear") == B


def test_link_instead_of_session_file_is_not_followed(tmp_path: Path) -> None:
    of(tmp_path).record("a", "startup")
    (noted,) = (tmp_path / "agents").iterdir()
    elsewhere = tmp_path / "elsewhere"
    noted.rename(elsewhere)
    noted.symlink_to(elsewhere)
    assert of(tmp_path).load_current() is None
    name = tmp_path / "agents" / f"name-{hash_session('ann')}"
    name.symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="symbolic link"):
        of(tmp_path).lock_name("ann")
    assert not (tmp_path / "made").exists()


def test_shells_between_host_and_hook_are_skipped() -> None:
    code = "import os; from punchlist_apps.hosts import sessions; print(sessions.find_host_process(os.getpid()))"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    direct = [sys.executable, "-c", code]
    shell = ["/bin/sh", "-c", f"{sys.executable} -c '{code}'; true"]
    told = [
        subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout for words in (direct, shell)
    ]
    assert told[0] == told[1]
    assert told[0].startswith(f"{os.getpid()}-")


def test_without_a_process_table_there_is_no_host() -> None:
    assert find_host_process(2**22 + 1) is None


def test_resumed_session_is_the_newest(tmp_path: Path) -> None:
    hooks = of(tmp_path)
    for session in ("a", "b", "a"):
        hooks.record(session, "resume")
    assert hooks.load_current() == HostProcess(A, (B, A))
