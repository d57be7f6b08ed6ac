import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist import connect
from punchlist.connection import launch
from punchlist.tools.budget import count_tokens
from punchlist_apps.hosts.hooks import HOOK_HOSTS
from punchlist_apps.hosts.read_positions import ReadPositions
from punchlist_apps.hosts.sessions import build_agent_name, hash_session
from punchlist_testing.agent_hosts import command, environment
from punchlist_testing.daemon import Running
from punchlist_testing.repositories import repository, worktree

MAX_TOKENS = 60
"""Upper limit for the report of one change, in tokens."""

HEADER_TOKENS = 50
"""Upper limit for what a host's output has in addition to the changes, in tokens."""

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"
AGENT = build_agent_name("claude-code", hash_session(SESSION))


@pytest.fixture(autouse=True)
def _project(run: Any) -> None:
    run("init", "default")


@pytest.fixture(autouse=True)
def this_process_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat this process as the host, because its parent processes may all be shells."""
    monkeypatch.setattr(os, "getppid", os.getpid)


def hook(punch: Any, event: str, session: str = SESSION, host: str = "claude-code", **members: Any) -> Any:
    given = {"session_id": session, "hook_event_name": event, "transcript_path": "/x", **members}
    return punch("agent", "prime", "--hook", "--host", host, stdin=json.dumps(given))


def test_prime_prints_open_tasks_or_nothing(punch: Any) -> None:
    assert punch("agent", "prime").out == ""
    punch("add", "Write")
    assert punch("agent", "prime").lines[1:] == ['  #1 "Write" [pending]']
    punch("start", "1")
    punch("done", "1")
    assert punch("agent", "prime").out == ""


def test_changes_are_reported_to_session_once(punch: Any) -> None:
    punch("add", "Write")
    assert len(punch("agent", "prime", "--session", SESSION).lines) == 2
    punch("daemon", "call", "task.set_status", "conversation=default", "task=1", "status=in_progress", "actor=ada")
    result = punch("agent", "prime", "--session", SESSION).lines
    assert result[1:] == ['  #1 "Write" [in_progress]', "Since you last looked:", '  #1 "Write" in_progress by ada']
    assert len(punch("agent", "prime", "--session", SESSION).lines) == 2


def test_prompt_hook_reports_only_changes_by_others(punch: Any) -> None:
    punch("add", "Write")
    assert hook(punch, "SessionStart", source="startup").lines[1:] == ['  #1 "Write" [pending]']
    assert hook(punch, "UserPromptSubmit", prompt="hello").out == ""
    punch("daemon", "call", "task.set_status", "conversation=default", "task=1", "status=in_progress", f"actor={AGENT}")
    punch("edit", "1", "-d", "for the start page", "--actor", f"{AGENT}/reviewer")
    assert hook(punch, "UserPromptSubmit").out == ""
    punch("done", "1", "--actor", "bob")
    assert hook(punch, "UserPromptSubmit").lines[1:] == ['  #1 "Write" completed by bob']
    assert hook(punch, "UserPromptSubmit").out == ""


def test_stop_hook_reminds_once(punch: Any) -> None:
    punch("add", "Write")
    assert hook(punch, "Stop").out == ""
    punch("queue", "claim", "1", "-o", AGENT)
    assert hook(punch, "Stop", stop_hook_active=True).out == ""
    result = hook(punch, "Stop").json
    assert result["decision"] == "block"
    assert '#1 "Write"' in result["reason"]
    assert hook(punch, "Stop").out == ""
    assert hook(punch, "Stop", session="another").out == "", "the task isn't the other session's"


def test_stop_hook_counts_only_own_tasks(punch: Any) -> None:
    for owner in ("", "claude-code", "agent", f"{AGENT}0", SESSION, "zed"):
        punch("add", "Write", "--owner", owner, "--status", "in_progress", "--actor", AGENT)
        assert hook(punch, "Stop").out == "", owner


def test_sessions_see_only_changes_by_others(punch: Any) -> None:
    punch("add", "Write")
    punch("add", "Publish")
    for session in (SESSION, "another"):
        hook(punch, "SessionStart", session, source="startup")
    punch("queue", "claim", "1", "-o", AGENT, "--actor", AGENT)
    assert hook(punch, "UserPromptSubmit").out == ""
    assert f'"Write" claimed by {AGENT}' in hook(punch, "UserPromptSubmit", "another").out
    assert hook(punch, "Stop", "another").out == ""
    assert '#1 "Write"' in hook(punch, "Stop").json["reason"]


def test_agent_stays_after_clear(punch: Any) -> None:
    punch("add", "Write")
    hook(punch, "SessionStart", source="startup")
    punch("queue", "claim", "1", "-o", AGENT, "--actor", AGENT)
    assert "#1" in hook(punch, "SessionStart", "cleared", source="clear").out
    assert hook(punch, "Stop", "cleared").json["decision"] == "block"


@pytest.mark.parametrize("session", ["x" * 10_000, "a\x1b[2J\n", "../../etc/passwd", "\x00"])
def test_hostile_session_id_is_not_stored_or_printed(session: str, punch: Any, daemon: Running) -> None:
    punch("add", "Write")
    outcome = hook(punch, "SessionStart", session, source="startup")
    assert outcome.code == 0
    assert session not in outcome.out + outcome.err
    files = list(Path(daemon.data_dir, "agents").iterdir())
    assert [len(file.name) for file in files] == [len("host-") + 32]
    assert files[0].stat().st_size < 1_000
    assert files[0].stat().st_mode & 0o777 == 0o600


def test_attached_session_gets_its_list(punch: Any) -> None:
    punch("add", "There", "-c", "website")
    punch("agent", "attach", SESSION, "-c", "website")
    assert '"There"' in hook(punch, "SessionStart").out
    assert hook(punch, "SessionStart", session="another").out == ""


def test_hook_never_fails(run: Any, punch: Any, daemon: Running) -> None:
    punch("add", "Write")
    for host, entry in HOOK_HOSTS.items():
        for given in ("", "{", "[]", '{"session_id": 3}', '{"session_id": "../\\ud800"}'):
            outcome = punch("agent", "prime", "--hook", "--host", host, stdin=given)
            assert outcome.code == 0
            assert not outcome.out or entry.output == "text" or outcome.json
        assert "Write" in punch("agent", "prime", "--hook", "--host", host, stdin="{}").out
        assert (hook(punch, "OfALaterVersion", host=host).out, outcome.code) == ("", 0)
    daemon.app.stop()
    gone = run("agent", "prime", "--hook", "--socket", daemon.socket + ".gone", stdin="{}")
    assert (gone.code, gone.out) == (0, "")
    assert gone.err.startswith("punchlist: ")


@pytest.mark.parametrize("host", HOOK_HOSTS)
def test_each_host_gets_every_change_once(punch: Any, host: str) -> None:
    names = {moment: name for name, moment in HOOK_HOSTS[host].events.items()}
    own = build_agent_name(host, hash_session(SESSION))
    later = names.get("prompt") or names["tool"]
    punch("add", "Write")
    assert "Write" in hook(punch, names["start"], host=host, source="startup").out
    punch("queue", "claim", "1", "-o", own, "--actor", own)
    assert hook(punch, later, host=host).out == ""
    punch("note", "1", "use the new API", "--actor", "bob")
    news = hook(punch, later, host=host).out
    assert "bob notes" in news and count_tokens(news) <= MAX_TOKENS + HEADER_TOKENS
    assert hook(punch, later, host=host).out == ""
    if "stop" in names:
        assert "In progress" in hook(punch, names["stop"], host=host).out
        assert hook(punch, names["stop"], host=host).out == ""


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
def test_two_hooks_of_one_event_print_once(punch: Any, daemon: Any, event: str, home: Path) -> None:
    punch("add", "Write")
    hook(punch, "SessionStart", source="startup")
    punch("note", "1", "use the new API", "--actor", "bob")
    punch("queue", "claim", "1", "-o", AGENT, "--actor", AGENT)
    given = json.dumps({"session_id": SESSION, "hook_event_name": event, "source": "resume"}).encode()
    hooks = [
        subprocess.Popen(
            command(daemon, "agent", "prime", "--hook"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=home,
            env=environment(),
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(given)[0] for process in hooks]
    assert sorted(map(bool, outputs)) == [False, True]


def test_waiting_for_the_lock_counts_as_hooks_time(
    punch: Any, daemon: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, tried = fcntl.flock, list[int]()

    def record_try(file: int, operation: int) -> None:
        tried.append(file)
        flock(file, operation)

    given = json.dumps({"session_id": SESSION, "hook_event_name": "UserPromptSubmit"})
    with ReadPositions(daemon.data_dir).lock(hash_session(SESSION), "default"):
        monkeypatch.setattr(launch, "HOOK_S", 0.0)
        monkeypatch.setattr(fcntl, "flock", record_try)
        assert punch("agent", "prime", "--hook", "-c", "default", stdin=given).err
    assert len(tried) == 1, "the hook waited for the lock after its time"


def test_hook_does_not_wait_for_its_inputs_end(punch: Any, daemon: Any, home: Path) -> None:
    punch("add", "Write")
    words = command(daemon, "agent", "prime", "--hook")
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=home, env=environment(), text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("{}")
        process.stdin.flush()
        assert "Write" in process.stdout.read()


def test_sessions_of_one_server_are_one_agent(punch: Any) -> None:
    punch("add", "Write")
    hook(punch, "SessionStart", host="gemini", source="startup")
    hook(punch, "SessionStart", session="cleared", host="gemini", source="startup")
    own = build_agent_name("gemini", hash_session(SESSION))
    punch("queue", "claim", "1", "-o", own, "--actor", own)
    assert "In progress" in hook(punch, "AfterAgent", session="cleared", host="gemini").out


def test_restored_log_resets_read_positions(punch: Any, daemon: Running) -> None:
    punch("add", "Write")
    assert hook(punch, "SessionStart").lines[1:] == ['  #1 "Write" [pending]']
    look = min(Path(daemon.data_dir, "looked").iterdir())  # the other file is its lock
    known = json.loads(look.read_bytes())
    look.write_text(json.dumps(known | {"epoch": "another", "seq": 0}))
    assert hook(punch, "UserPromptSubmit").out == ""
    assert json.loads(look.read_bytes()) == known


def test_prime_outside_project_gives_advice(punch: Any, home: Path) -> None:
    punch("add", "Private", "-c", "default")
    (home / ".punchlist.toml").unlink()
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        outcome = hook(punch, event)
        assert (outcome.code, outcome.out) == (0, "")
        assert outcome.err == "punchlist: No task list for this directory\n"
    assert punch("agent", "prime").err.splitlines()[1] == "  run punch init in the project's directory"


def test_session_keeps_list_in_other_directory(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".punchlist.toml").unlink()
    website, other = repository(home / "website"), repository(home / "other")
    monkeypatch.chdir(website)
    punch("add", "Write")
    monkeypatch.chdir(home)
    assert "Write" in hook(punch, "SessionStart", session="one", cwd=str(website)).out
    assert "Write" in hook(punch, "SessionStart", session="two", cwd=str(worktree(website, home / "fix"))).out
    assert hook(punch, "SessionStart", session="three", cwd=str(other)).out == ""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(website))
    assert "Write" in hook(punch, "SessionStart", session="four", cwd=str(other)).out


def test_hook_of_removed_project_uses_no_list(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "Private")  # added to the list of the project's former directory
    gone = str(home / "website")
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        outcome = hook(punch, event, cwd=gone)
        assert (outcome.code, outcome.out) == (0, "")
        assert outcome.err == f"punchlist: The project's directory {gone} is gone\n"
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", gone)
    assert hook(punch, "SessionStart", cwd=str(home)).out == ""
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(home))
    assert "Private" in hook(punch, "SessionStart", cwd=gone).out


def test_cloned_repository_gets_no_private_list(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "Private", "-c", "default")
    clone = repository(home / "clone")
    (clone / ".punchlist.toml").write_text('conversation = "default"')
    outcome = hook(punch, "SessionStart", cwd=str(clone))
    assert (outcome.code, outcome.out) == (0, "")
    assert "names the list default, which was not made for this project" in outcome.err
    monkeypatch.chdir(clone)
    assert punch("init", "--trust").code == 0
    assert "Private" in hook(punch, "SessionStart", cwd=str(clone)).out


def test_stop_hook_ends_turn_and_clears_list(punch: Any) -> None:
    punch("set", "auto_clear=idle")
    punch("add", "Write")
    punch("queue", "claim", "1", "-o", AGENT)
    assert hook(punch, "Stop").json["decision"] == "block"
    punch("done", "1", "--force")
    assert punch("list").lines[0] == "default  1/1"
    assert hook(punch, "Stop").out == ""
    assert punch("list").lines == ["default  0/0", "  no tasks"]


def test_changes_beyond_page_are_reported_next_time(punch: Any, daemon: Running) -> None:
    punch("add", "Write")
    hook(punch, "SessionStart", source="startup")
    tasks = [{"title": f"task {number}"} for number in range(1_000)]
    with connect(socket=daemon.socket, autostart=False, name="bob") as client:
        client.call("task.add_many", {"conversation": "default", "tasks": tasks})
    punch("note", "1", "late", "--actor", "bob")
    assert "more changes: see the list" in hook(punch, "UserPromptSubmit").out
    assert hook(punch, "UserPromptSubmit").lines[1:] == ['  #1 "Write": bob notes "late"']
