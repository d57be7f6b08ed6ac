import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.hosts.sessions import build_agent_name, hash_session
from punchlist_testing.repositories import repository
from punchlist_testing.terminal import command, environment

SESSION = "7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66"
AGENT = build_agent_name("claude-code", hash_session(SESSION))


@pytest.fixture(autouse=True)
def website(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository; commands run in it, and the status line elsewhere."""
    monkeypatch.setattr(os, "getppid", os.getpid)  # this process is the host
    website = repository(home / "website")
    monkeypatch.chdir(website)
    return website


def show(punch: Any, place: object, **members: Any) -> str:
    given = {"session_id": SESSION, "cwd": "/", "workspace": {"project_dir": str(place), "current_dir": "/"}}
    outcome = punch("agent", "statusline", stdin=json.dumps({**given, **members}))
    assert (outcome.code, outcome.err) == (0, "")
    return str(outcome.out)


def test_line_names_progress_own_task_and_ready_tasks(punch: Any, website: Path) -> None:
    assert show(punch, website) == ""
    for title in ("Write", "Other's", "Fix\x1b[2J " + "long " * 20, "Publish", "Test"):
        punch("add", title)
    punch("done", "1")
    punch("start", "2", "--owner", "claude-code/000000")
    assert show(punch, website) == "1/5 · 3 ready\n"
    punch("start", "3", "--owner", f"{AGENT}/reviewer")
    assert show(punch, website) == "1/5 · #3 Fix\\x1b[2J long long long long long lon… · 2 ready\n"
    assert show(punch, website, session_id="another") == "1/5 · 2 ready\n"


def test_line_is_of_the_attached_list(punch: Any, website: Path) -> None:
    punch("add", "There", "-c", "site")
    punch("agent", "attach", SESSION, "-c", "site")
    assert show(punch, website) == "0/1 · 1 ready\n"
    assert punch("agent", "statusline", "-c", "site").out == "0/1 · 1 ready\n"


def test_untrusted_project_file_shows_nothing(punch: Any, home: Path) -> None:
    punch("add", "Private", "-c", "private")
    (home / "cloned").mkdir()
    (home / "cloned/.punchlist.toml").write_text('conversation = "private"\n')
    for place in (home / "cloned", home / "gone", "relative", "\0"):
        assert show(punch, place) == ""


def test_list_of_cloned_project_is_shown(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "cloned").mkdir()
    (home / "cloned/.punchlist.toml").write_text('conversation = "team"\n')
    monkeypatch.chdir(home / "cloned")
    punch("add", "Write")
    assert show(punch, home / "cloned") == "0/1 · 1 ready\n"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"session_id": 3}', '{"workspace": {"project_dir": []}}', "\udcff"])
def test_malformed_input_means_no_session(punch: Any, home: Path, monkeypatch: Any, text: str) -> None:
    (home / "empty").mkdir()
    monkeypatch.chdir(home / "empty")
    outcome = punch("agent", "statusline", stdin=text)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_open_input_does_not_block(home: Path) -> None:
    read, write = os.pipe()
    process = subprocess.run(
        command("agent", "statusline"), stdin=read, capture_output=True, env=environment(), timeout=20, check=True
    )
    os.close(read)
    os.close(write)
    assert (process.stdout, process.stderr) == (b"", b"")
