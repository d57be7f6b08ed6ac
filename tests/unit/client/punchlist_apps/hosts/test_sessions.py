import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from punchlist_apps.hosts import sessions
from punchlist_apps.hosts.sessions import Sessions, agent_name, host_process, key_of, session_of

A, B, C = map(key_of, ("a", "b", "c"))


def of(directory: Path, process: str | None = "4711-99") -> Sessions:
    return Sessions(str(directory), process)


def test_an_agents_name_is_its_host_and_a_part_of_its_sessions_hash() -> None:
    assert agent_name("claude-code", A) == f"claude-code/{A[:6]}"
    assert agent_name("Visual Studio Code", A) == f"Visual-Studio-Code/{A[:6]}"


@pytest.mark.parametrize("host", ["", "../..", "a\x1b[2J", "x" * 10_000, "a/b", "\ud800", "  "])
def test_whatever_a_host_calls_itself_the_name_is_short_and_plain(host: str) -> None:
    name = agent_name(host, key_of("\ud800" * 10_000))
    assert len(name) <= 47
    assert name.isascii()
    assert name.isprintable()
    assert name.count("/") == 1


def test_the_session_of_the_environment_counts_within_its_host_alone() -> None:
    assert session_of({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s"}) == "s"
    assert session_of({"CLAUDE_CODE_SESSION_ID": "s"}) is None
    assert session_of({"CLAUDECODE": "1"}) is None


def test_the_server_finds_what_a_hook_of_the_same_process_has_noted(tmp_path: Path) -> None:
    of(tmp_path).note("a", "startup")
    assert of(tmp_path).agent(A) == A
    assert of(tmp_path, "4711-98").current() is None, "the process id was used again"
    assert of(tmp_path, None).current() is None


def test_after_clear_the_agent_stays_and_after_resume_the_older_one_is_back(tmp_path: Path) -> None:
    hooks, server = of(tmp_path), of(tmp_path)
    assert hooks.note("a", "startup") == A
    assert hooks.note("b", "clear") == A
    assert (server.agent(A), server.agent(B)) == (A, A)
    assert hooks.note("b") == A
    assert hooks.note("c", "resume") == C
    assert server.agent(A) == C, "the server was started in session a"
    assert of(tmp_path, "5000-1").note("b", "resume") == A, "what was cleared goes by the same name in another process"


def test_another_session_of_the_same_process_is_another_agent(tmp_path: Path) -> None:
    hooks, server = of(tmp_path), of(tmp_path)
    hooks.note("a", "startup")
    hooks.note("b", "startup")
    assert (server.agent(A), server.agent(B)) == (A, B)
    assert [hooks.note("a"), hooks.note("b")] == [A, B]


def test_who_goes_back_to_an_older_session_of_the_same_window_has_its_agent_again(tmp_path: Path) -> None:
    hooks = of(tmp_path)
    hooks.note("a", "startup")
    assert hooks.note("c", "resume") == C
    assert hooks.note("a", "resume") == A
    assert of(tmp_path).agent(C) == A, "the server goes with its window"


def test_what_was_cleared_keeps_its_agent_when_it_is_cleared_again_elsewhere(tmp_path: Path) -> None:
    of(tmp_path).note("a", "startup")
    assert of(tmp_path).note("b", "clear") == A
    other = of(tmp_path, "5000-1")
    other.note("c", "startup")
    assert other.note("b", "clear") == A, "session b went on with the work of a"


def test_a_process_remembers_its_newest_fifty_sessions(tmp_path: Path) -> None:
    hooks = of(tmp_path)
    for number in range(60):
        hooks.note(f"s{number}", "clear" if number else "startup")
    noted = hooks.current()
    assert noted is not None
    assert noted.sessions == tuple(key_of(f"s{number}") for number in range(10, 60))


def test_a_name_whose_file_was_forgotten_while_it_was_taken_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock = tmp_path / "agents" / f"name-{key_of('ann')}", sessions.fcntl.flock
    gone: list[bool] = []

    def forgotten_first(file: int, operation: int) -> None:
        if not gone:
            gone.append(True)
            path.unlink()
        flock(file, operation)

    monkeypatch.setattr(sessions.fcntl, "flock", forgotten_first)
    first = of(tmp_path)
    assert first.take("ann")
    assert gone
    assert not of(tmp_path).take("ann"), "the lock is on the file that has the name"


def test_a_name_is_one_living_processs_own(tmp_path: Path) -> None:
    first, second = of(tmp_path), of(tmp_path)
    assert first.take("ann")
    assert first.take("ann")
    assert not second.take("ann")
    assert second.take("bob")
    first.close()
    assert second.take("ann")


def test_what_is_long_gone_is_forgotten_but_no_name_in_use(tmp_path: Path) -> None:
    kept = of(tmp_path)
    kept.take("ann")
    kept.note("a", "startup")
    old = time.time() - 40 * 86_400
    for file in (tmp_path / "agents").iterdir():
        os.utime(file, (old, old))
    of(tmp_path, "5000-1").note("b", "startup")
    assert sorted(file.name.split("-")[0] for file in (tmp_path / "agents").iterdir()) == ["host", "name"]
    assert not of(tmp_path).take("ann")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"agent": 3}', b"\xff" * 100_000, b'{"agent": "x", "sessions": [' + b" " * 70_000 + b"]}"],
)
def test_a_spoiled_note_is_as_none(content: bytes, tmp_path: Path) -> None:
    of(tmp_path).note("a", "startup")
    (noted,) = (tmp_path / "agents").iterdir()
    noted.write_bytes(content)
    assert of(tmp_path).current() is None
    assert of(tmp_path).note("b", "clear") == B


def test_a_link_in_the_place_of_a_note_is_not_followed(tmp_path: Path) -> None:
    of(tmp_path).note("a", "startup")
    (noted,) = (tmp_path / "agents").iterdir()
    elsewhere = tmp_path / "elsewhere"
    noted.rename(elsewhere)
    noted.symlink_to(elsewhere)
    assert of(tmp_path).current() is None
    name = tmp_path / "agents" / f"name-{key_of('ann')}"
    name.symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="symbolic link"):
        of(tmp_path).take("ann")
    assert not (tmp_path / "made").exists()


def test_shells_between_a_host_and_its_hook_are_passed_over() -> None:
    code = "from punchlist_apps.hosts.sessions import host_process; print(host_process())"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    direct = [sys.executable, "-c", code]
    shell = ["/bin/sh", "-c", f"{sys.executable} -c '{code}'; true"]
    told = [
        subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout for words in (direct, shell)
    ]
    assert told[0] == told[1]
    assert told[0].startswith(f"{os.getpid()}-")


def test_without_a_process_table_there_is_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions.os, "getppid", lambda: 2**22 + 1)
    assert host_process() is None
