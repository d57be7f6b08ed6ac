import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist_schemas import project_file
from punchlist_schemas.directory import find_list
from punchlist_testing.repositories import git, repository, worktree
from punchlist_testing.terminal import command, environment


@pytest.fixture(autouse=True)
def _place(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "my project" / "src").mkdir(parents=True)
    monkeypatch.chdir(home / "my project")


def test_project_file_names_list(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert punch("init", "website").code == 0
    monkeypatch.chdir(home / "my project" / "src")
    punch("add", "here")
    assert punch("list").lines == ["website  0/1", "  ☐ #1 here"]
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "elsewhere")
    assert punch("list", "--json").json["tasks"] == []


def test_init_needs_no_daemon(home: Path) -> None:
    repository(home / "my project")
    process = subprocess.run(command("init", "website"), env=environment(), capture_output=True, check=True, timeout=20)
    assert process.stdout.decode().startswith(f"wrote {home}/my project/.punchlist.toml")


def test_fresh_name_contains_directory_and_stays(run: Any, home: Path) -> None:
    first = run("init", "--json").json
    assert first["conversation"].startswith("my-project-")
    assert run("init", "--json").json == first
    assert project_file.read(str(home / "my project" / project_file.NAME)) == first["conversation"]


def test_existing_project_file_is_kept(run: Any) -> None:
    run("init", "one")
    assert run("init", "one").code == 0
    outcome = run("init", "two")
    assert outcome.code == 1
    assert "names one" in outcome.err
    assert project_file.read(project_file.NAME) == "one"


def test_invalid_list_name_is_rejected(run: Any) -> None:
    assert run("init", "../x").code == 2
    assert find_list() is None


@pytest.mark.parametrize("words", [("list",), ("add", "x"), ("init",)])
def test_broken_project_file_stops_commands(punch: Any, home: Path, words: tuple[str, ...]) -> None:
    (home / "my project" / project_file.NAME).write_text("conversation = [")
    outcome = punch(*words)
    assert outcome.code == 78
    assert ".punchlist.toml" in outcome.err
    assert punch("list", "all", "--json").json["conversations"] == []


def test_repository_keeps_its_own_list(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    website = repository(home / "website")
    monkeypatch.chdir(website)
    punch("add", "Before")
    name = punch("init", "--json").json["conversation"]
    assert name.startswith("website-")
    assert punch("list").lines == ["website  0/1", "  ☐ #1 Before"]
    monkeypatch.chdir(worktree(website, home / "fix"))
    assert punch("list").lines[1:] == ["  ☐ #1 Before"]


def test_subdirectory_gets_only_named_list(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(home / "website")
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    assert run("init").lines[0].startswith(f"wrote {root / project_file.NAME}: ")
    assert run("init", "part").lines[0] == f"wrote {root / 'sub' / project_file.NAME}: this project's list is part"
    assert run("init").lines[0] == f"{root / 'sub' / project_file.NAME} already names part"


def test_new_name_reports_earlier_tasks(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(home / "website"))
    punch("add", "Before")
    own = punch("list", "all", "--json").json["conversations"][0]["conversation"]
    lines = punch("init", "site").lines
    assert lines[1] == f"earlier tasks stay in {own}: punch list -c {own}"
    assert lines[-1].endswith("punch init --commit")


def test_commit_contains_only_project_file(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    website = repository(home / "website")
    git(website, "config", "user.name", "Ann")
    git(website, "config", "user.email", "ann@example.org")
    (website / "staged").touch()
    git(website, "add", "staged")
    monkeypatch.chdir(website)
    hint = "to use the same list in clones and other branches: punch init --commit"
    assert run("init").lines[-1] == hint
    assert run("init", "--commit").lines[-1] == "committed: clones and worktrees use the same list"
    assert git(website, "show", "--name-only", "--format=", "HEAD").split() == [".punchlist.toml"]
    assert git(website, "status", "--short").split() == ["A", "staged"]
    head = git(website, "rev-parse", "HEAD")
    assert run("init", "--commit").code == 0
    assert git(website, "rev-parse", "HEAD") == head
    assert hint not in run("init").lines


def test_failed_commit_is_reported_and_unstaged(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    website = repository(home / "website")
    monkeypatch.chdir(website)
    (website / ".git" / "hooks").mkdir(exist_ok=True)
    hook = website / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho no commits today; exit 1\n")
    hook.chmod(0o755)
    git(website, "config", "user.name", "Ann")
    git(website, "config", "user.email", "ann@example.org")
    outcome = run("init", "--commit")
    assert outcome.code == 1
    assert "no commits today" in outcome.err
    assert git(website, "status", "--short").split() == ["??", ".punchlist.toml"]
    hook.unlink()
    (website / ".git" / "info" / "exclude").write_text(".punchlist.toml\n")
    assert "ignored" in run("init", "--commit").err


def test_commit_outside_repository_is_usage_error(run: Any) -> None:
    assert run("init", "--commit").code == 2
    assert not Path(project_file.NAME).exists()


def test_trust_needs_project_file(run: Any) -> None:
    assert run("init", "--trust").code == 2
    assert run("init", "--trust", "name").code == 2


def test_planted_link_is_rejected(run: Any, home: Path) -> None:
    Path(project_file.NAME).symlink_to(home / "elsewhere")
    outcome = run("init", "site")
    assert outcome.code == 78
    assert not (home / "elsewhere").exists()
