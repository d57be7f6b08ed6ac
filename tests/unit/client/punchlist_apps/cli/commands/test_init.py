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


def test_a_project_file_decides_which_list_the_command_line_means(
    punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert punch("init", "website").code == 0
    monkeypatch.chdir(home / "my project" / "src")
    punch("add", "here")
    assert punch("list").lines == ["website  0/1", "  ☐ #1 here"]
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "elsewhere")
    assert punch("list", "--json").json["tasks"] == []


def test_a_project_gets_its_file_before_any_daemon_runs(home: Path) -> None:
    repository(home / "my project")
    done = subprocess.run(command("init", "website"), env=environment(), capture_output=True, check=True, timeout=20)
    assert done.stdout.decode().startswith(f"wrote {home}/my project/.punchlist.toml")


def test_a_fresh_name_tells_of_the_directory_and_is_drawn_once(run: Any, home: Path) -> None:
    first = run("init", "--json").json
    assert first["conversation"].startswith("my-project-")
    assert run("init", "--json").json == first
    assert project_file.read(str(home / "my project" / project_file.NAME)) == first["conversation"]


def test_a_file_that_is_there_is_never_changed(run: Any) -> None:
    run("init", "one")
    assert run("init", "one").code == 0
    refused = run("init", "two")
    assert refused.code == 1
    assert "names one" in refused.err
    assert project_file.read(project_file.NAME) == "one"


def test_a_name_that_no_list_can_have_is_refused(run: Any) -> None:
    assert run("init", "../x").code == 2
    assert find_list() is None


@pytest.mark.parametrize("words", [("list",), ("add", "x"), ("init",)])
def test_a_broken_project_file_stops_a_command_instead_of_another_list_being_taken(
    punch: Any, home: Path, words: tuple[str, ...]
) -> None:
    (home / "my project" / project_file.NAME).write_text("conversation = [")
    refused = punch(*words)
    assert refused.code == 78
    assert ".punchlist.toml" in refused.err
    assert punch("list", "all", "--json").json["conversations"] == []


def test_in_a_repository_the_list_is_the_one_it_has_already(
    punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    website = repository(home / "website")
    monkeypatch.chdir(website)
    punch("add", "Before")
    name = punch("init", "--json").json["conversation"]
    assert name.startswith("website-")
    assert punch("list").lines == ["website  0/1", "  ☐ #1 Before"]
    monkeypatch.chdir(worktree(website, home / "fix"))
    assert punch("list").lines[1:] == ["  ☐ #1 Before"]


def test_below_the_top_of_a_repository_its_own_list_is_named_at_the_top_and_another_one_here(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = repository(home / "website")
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    assert run("init").lines[0].startswith(f"wrote {root / project_file.NAME}: ")
    assert run("init", "part").lines[0] == f"wrote {root / 'sub' / project_file.NAME}: this project's list is part"
    assert run("init").lines[0] == f"{root / 'sub' / project_file.NAME} names part already"


def test_another_name_says_where_the_tasks_so_far_are(punch: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(home / "website"))
    punch("add", "Before")
    own = punch("list", "all", "--json").json["conversations"][0]["conversation"]
    said = punch("init", "site").lines
    assert said[1] == f"the tasks so far stay in {own}: punch list -c {own}"
    assert said[-1].endswith("punch init --commit")


def test_commit_commits_the_file_and_nothing_else(run: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    website = repository(home / "website")
    git(website, "config", "user.name", "Ann")
    git(website, "config", "user.email", "ann@example.org")
    (website / "staged").touch()
    git(website, "add", "staged")
    monkeypatch.chdir(website)
    hint = "commit it if clones and other branches should use the same name: punch init --commit"
    assert run("init").lines[-1] == hint
    assert run("init", "--commit").lines[-1] == "committed: clones and worktrees use the same name"
    assert git(website, "show", "--name-only", "--format=", "HEAD").split() == [".punchlist.toml"]
    assert git(website, "status", "--short").split() == ["A", "staged"]
    head = git(website, "rev-parse", "HEAD")
    assert run("init", "--commit").code == 0
    assert git(website, "rev-parse", "HEAD") == head
    assert hint not in run("init").lines


def test_what_git_refuses_is_told_and_leaves_nothing_staged(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    website = repository(home / "website")
    monkeypatch.chdir(website)
    (website / ".git" / "hooks").mkdir(exist_ok=True)
    hook = website / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho no commits today; exit 1\n")
    hook.chmod(0o755)
    git(website, "config", "user.name", "Ann")
    git(website, "config", "user.email", "ann@example.org")
    refused = run("init", "--commit")
    assert refused.code == 1
    assert "no commits today" in refused.err
    assert git(website, "status", "--short").split() == ["??", ".punchlist.toml"]
    hook.unlink()
    (website / ".git" / "info" / "exclude").write_text(".punchlist.toml\n")
    assert "ignored" in run("init", "--commit").err


def test_commit_outside_of_a_repository_is_a_usage_error(run: Any) -> None:
    assert run("init", "--commit").code == 2
    assert not Path(project_file.NAME).exists()


def test_trust_is_about_a_file_that_is_there(run: Any) -> None:
    assert run("init", "--trust").code == 2
    assert run("init", "--trust", "name").code == 2


def test_a_planted_link_is_refused(run: Any, home: Path) -> None:
    Path(project_file.NAME).symlink_to(home / "elsewhere")
    refused = run("init", "site")
    assert refused.code == 78
    assert not (home / "elsewhere").exists()
