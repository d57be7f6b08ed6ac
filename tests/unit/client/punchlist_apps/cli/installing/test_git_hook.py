import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.installing import git_hook, shipped
from punchlist_testing.repositories import git, repository, worktree

OLD = "#!/bin/sh -e\n# deploys; formerly Husky\necho old >>ran\nexit 3\n"


@pytest.fixture
def website(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PUNCHLIST_WARM", "0")
    website = repository(home / "website")
    monkeypatch.chdir(website)
    return website


@pytest.fixture
def hook(website: Path) -> Path:
    path = website / ".git/hooks/post-commit"
    path.parent.mkdir(exist_ok=True)
    return path


def commit(directory: Path, tasks: str, *options: str) -> str:
    trailer = f"\n\nCloses-Task: {tasks}" if tasks else ""
    git(directory, "commit", "--quiet", "--allow-empty", "-m", f"Work{trailer}", *options)
    return git(directory, "rev-parse", "--short", "HEAD").strip()


def add(punch: Any, count: int) -> None:
    for number in range(count):
        punch("add", f"t{number}")


def wait_for(punch: Any, *tasks: str) -> None:
    assert punch("wait", *tasks, "--timeout", "30s").code == 0


def find_completions(punch: Any) -> list[str]:
    events = [json.loads(line)["event"] for line in punch("log", "--json").lines]
    return [event["task"] for event in events if event.get("to") == "completed"]


def test_commit_completes_tasks_of_its_trailers(punch: Any, website: Path) -> None:
    add(punch, 3)
    punch("queue", "claim", "2", "-o", "claude-code/7f3c1a")
    assert punch("init", "--git").code == 0
    commit(website, "")
    short = commit(website, "#1, 2\nCloses-Task: #3")
    wait_for(punch, "1", "2", "3")
    assert {task["result_summary"] for task in punch("list", "--json").json["tasks"]} == {f"commit {short}: Work"}


def test_worktree_and_repository_use_their_lists(punch: Any, website: Path, home: Path, monkeypatch: Any) -> None:
    add(punch, 2)
    punch("init", "--git")
    fix = worktree(website, home / "fix")
    other = repository(home / "other")
    monkeypatch.chdir(other)
    add(punch, 2)
    punch("init", "--git")
    commit(fix, "1")
    commit(other, "2")
    wait_for(punch, "2")
    assert find_completions(punch) == ["2"]
    monkeypatch.chdir(website)
    wait_for(punch, "1")
    assert find_completions(punch) == ["1"]


def test_copies_of_commit_complete_nothing_again(punch: Any, website: Path) -> None:
    add(punch, 5)
    punch("init", "--git")
    branch = git(website, "branch", "--show-current").strip()
    git(website, "checkout", "--quiet", "-b", "fix")
    commit(website, "1")
    commit(website, "2")
    wait_for(punch, "1", "2")
    punch("reopen", "1", "2")
    git(website, "checkout", "--quiet", branch)
    commit(website, "")
    git(website, "checkout", "--quiet", "fix")
    git(website, "rebase", "--quiet", branch)
    git(website, "checkout", "--quiet", "--detach", branch)
    git(website, "cherry-pick", "--allow-empty", "fix")
    commit(website, "#2, #3", "--amend")  # a new task in an old commit
    wait_for(punch, "3")
    git(website, "merge", "--quiet", "--no-edit", "fix")
    commit(website, "4")
    wait_for(punch, "4")
    assert punch("done", "--commit", "HEAD").out == "#4 was already completed\n"
    assert "is not one commit" in punch("done", "--commit", f"{branch}..fix").err
    assert punch("done", "--commit", "fix~1").out == (
        "#1 was reopened after this commit had completed it: punch done 1\n"
    )
    assert sorted(find_completions(punch)) == ["1", "2", "3", "4"]


def test_amended_commit_answers_the_rejection(punch: Any, website: Path) -> None:
    punch("add", "Fix", "--gate", "check:ci")
    for number in range(3):
        (website / "parser").write_text(str(number))
        git(website, "add", "parser")
        commit(website, "1", "--amend")
        punch("done", "--commit", "HEAD")
        shown = punch("done", "--commit", "HEAD")
        assert "waits for" in shown.out and "reopened" not in shown.out
        punch("gate", "ci", "--once", "--", "false")
    assert "was reopened after this commit" in punch("done", "--commit", "HEAD").out


def test_force_completes_open_subtasks(punch: Any, website: Path) -> None:
    punch("add", "Site")
    punch("add", "Page", "--parent", "1")
    commit(website, "1")
    assert punch("done", "--commit", "HEAD").code != 0
    assert punch("done", "--commit", "HEAD", "--force").code == 0
    assert find_completions(punch) == ["1"]


def test_commit_waits_only_for_git(run: Any, website: Path, home: Path, monkeypatch: Any) -> None:
    programs = home / "bin"
    programs.mkdir()
    for name in ("called", "go"):
        os.mkfifo(home / name)
    (programs / "punch").write_text(f"#!/bin/sh\nread go <{home}/go\necho $3 >{home}/called\n")
    (programs / "git").write_text(f'#!/bin/sh\necho "$1" >>{home}/words\nexec {shutil.which("git")} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    monkeypatch.setattr(shipped, "find_program", lambda: str(programs / "punch"))
    assert run("init", "--git").code == 0
    git(website, "config", "maintenance.auto", "false")
    command = [f"--exec-path={programs}", "-C", website, "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    command += ["commit", "--quiet", "--allow-empty", "-m", "Work\n\nCloses-Task: 1"]
    subprocess.run(["git", *command], timeout=30, check=True)
    assert (home / "words").read_text().splitlines() == ["-c"], "the hook calls git once"
    (home / "go").write_text("\n")
    assert (home / "called").read_text() == git(website, "rev-parse", "HEAD")


def test_rebase_does_not_start_program(run: Any, website: Path, home: Path, monkeypatch: Any) -> None:
    os.mkfifo(called := home / "called")
    program = home / "a program"
    program.write_text(f"#!/bin/sh\necho $3 >{called}\n")
    program.chmod(0o755)
    fix = worktree(website, home / "fix")
    for number in range(3):
        commit(fix, str(number))
    monkeypatch.setattr(shipped, "find_program", lambda: str(program))
    assert run("init", "--git").code == 0
    git(fix, "rebase", "--quiet", "--force-rebase", "HEAD~3")
    commit(fix, "4")
    assert called.read_text() == git(fix, "rev-parse", "HEAD"), "the first call, for which this waits, is the last"


def test_failure_is_printed_at_next_commit(punch: Any, website: Path) -> None:
    punch("add", "one")
    punch("init", "--git")
    report = website / ".git" / git_hook.REPORT
    os.mkfifo(report)
    commit(website, "#9, 3-2, x, 1")
    text = report.read_text()  # waits for the hook
    id = git(website, "rev-parse", "HEAD").strip()
    assert text.splitlines()[:2] == [f"Closes-Task of commit {id}", "error: There is no task '9'."]
    assert "error: '3-2' is not a range" in text
    assert text.endswith(f"\nTo repeat: punch done --commit {id}\n")
    assert find_completions(punch) == ["1"], "the other tasks are completed"
    report.unlink()
    report.write_text(text)
    command = ["git", "-C", website, "commit", "--quiet", "--allow-empty", "-m", "Next", "--author", "Ann <a@b.c>"]
    env = {**os.environ, "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org"}
    assert subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=30).stderr == text
    assert not report.exists()


def test_commit_stands_without_program(website: Path, run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(shipped, "find_program", lambda: "/gone/punch")
    run("init", "--git")
    os.mkfifo(report := website / ".git" / git_hook.REPORT)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    commit(website, "1")
    assert re.search(": punch: .*not found", report.read_text())


def test_existing_hook_is_kept(run: Any, hook: Path, website: Path) -> None:
    hook.write_text(OLD)
    hook.chmod(0o750)
    for _ in range(2):
        assert run("init", "--git").code == 0
    text = hook.read_text()
    first, _, rest = OLD.partition("\n")
    assert text.startswith(f"{first}\n# >>> punchlist\n")
    assert text.endswith(f"# <<< punchlist\n{rest}")
    assert hook.stat().st_mode & 0o777 == 0o750
    (website / ".git" / git_hook.REPORT / "full").mkdir(parents=True)  # can't be printed or removed
    commit(website, "")
    assert (website / "ran").read_text() == "old\n"
    assert run("init", "--git", "--remove").code == 0
    assert hook.read_text() == OLD
    assert run("init", "--git", "--remove").out == "nothing to remove\n"


def test_remove_deletes_own_hook(run: Any, hook: Path, website: Path, home: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(worktree(website, home / "fix"))
    assert run("init", "--git", "--json").json == {"file": str(hook), "installed": True}
    assert hook.stat().st_mode & 0o777 == 0o755
    assert run("init", "--git", "--remove", "--json").json == {"file": str(hook), "installed": False}
    assert not hook.exists()


@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("#!/bin/sh\ncall_lefthook run post-commit\n", 0o755, "was written by lefthook"),
        ("#!/bin/sh\n# File generated by pre-commit: https://pre-commit.com\n", 0o755, "was written by pre-commit"),
        ("#!/usr/bin/env python3\n", 0o755, "is not a shell script"),
        ("\x7fELF", 0o755, "is not a shell script"),
        (OLD, 0o644, "is not executable"),
        ("#!/bin/sh\n# >>> punchlist\necho cut\n", 0o755, "no '# <<< punchlist'"),
    ],
)
def test_unsuitable_hook_is_refused(run: Any, hook: Path, text: str, mode: int, problem: str) -> None:
    hook.write_text(text)
    hook.chmod(mode)
    outcome = run("init", "--git")
    assert outcome.code == 2
    assert problem in outcome.err
    assert hook.read_text() == text


def test_link_and_moved_hooks_are_refused(run: Any, hook: Path, website: Path, home: Path) -> None:
    (home / "shared").write_text(OLD)
    (home / "shared").chmod(0o755)
    hook.symlink_to(home / "shared")
    assert "is a link; add this line" in run("init", "--git").err
    hook.parent.rename(home / "hooks")
    hook.parent.symlink_to(home / "hooks")
    assert "is a link; add this line" in run("init", "--git").err
    git(website, "config", "core.hooksPath", ".husky/_")
    error = run("init", "--git").err
    assert f"moves the hooks to .husky/_; add this line to .husky/post-commit: {git_hook.LINE}" in error
    assert (home / "shared").read_text() == OLD
    hook.parent.unlink()
    git(website, "config", "core.hooksPath", ".git/hooks")
    assert run("init", "--git").code == 0
    git(website, "config", "core.hooksPath", ".husky/_")
    assert run("init", "--git", "--remove").code == 0
    assert not hook.exists()


def test_line_for_other_hooks_completes_tasks(punch: Any, hook: Path, website: Path) -> None:
    add(punch, 1)
    hook.write_text(f"#!/bin/sh\nPATH={os.path.dirname(shipped.find_program())}:$PATH\n{git_hook.LINE}\n")
    hook.chmod(0o755)
    commit(website, "1")
    commit(website, "")
    wait_for(punch, "1")


@pytest.mark.parametrize("words", [("--git", "name"), ("--remove",), ("--git", "--trust"), ("--git", "--commit")])
def test_git_takes_only_remove(run: Any, website: Path, words: tuple[str, ...]) -> None:
    assert run("init", *words).code == 2


def test_hook_needs_repository(run: Any) -> None:
    assert "needs a git repository" in run("init", "--git").err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "name a task, or a commit"),
        (("3", "--commit", "HEAD"), "leave them out"),
        (("--commit", "--all"), "expected one argument"),
        (("--commit=--all",), "no commit --all: fatal: "),
        (("--commit", "HEAD..HEAD"), "HEAD..HEAD is not one commit"),
        (("--commit", "HEAD"), "has no trailer such as Closes-Task: #3"),
    ],
)
def test_done_needs_tasks_or_commit_with_trailer(run: Any, website: Path, words: Any, problem: str) -> None:
    outcome = run("done", *words)
    assert outcome.code == 2
    assert problem in outcome.err


def test_missing_git_is_reported(run: Any, website: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for words in (("done", "--commit", "HEAD"), ("init", "--git")):
        assert "git can't be run" in run(*words).err
