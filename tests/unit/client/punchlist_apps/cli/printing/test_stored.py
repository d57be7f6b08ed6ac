"""The changes that an error names."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.printing import stored
from punchlist_apps.common import wire
from punchlist_schemas.methods import METHODS
from punchlist_testing.daemon import Running
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository
from punchlist_testing.terminal import command, environment

PLACE = {"space": "team", "conversation": "plan"}


def run_without_output(words: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose standard output takes nothing."""
    with open("/dev/full", "wb") as full:
        return subprocess.run(
            command(*words.split()), stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
        )


def run_with_closed(words: str, streams: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with these standard streams closed, as a shell writes them: `>&- 2>&-`."""
    line = f'exec "$@" {words} {streams}'
    return subprocess.run(
        ["sh", "-c", line, "sh", *command()], capture_output=True, env=environment(), timeout=20, check=False
    )


def test_a_repair_is_stored_if_it_removed_posts() -> None:
    wire.completed_calls.append(("space.repair", PLACE, {"posts": [], "removed": 0}))
    assert stored.advice() == ""
    wire.completed_calls.append(("space.repair", PLACE, {"posts": [], "removed": 1}))
    assert stored.advice() == "the change is stored (the repair of plan), so don't repeat it"


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["add a", "chat add a", "list", "status"])
def test_with_its_output_closed_it_writes_to_nobody_and_says_so(words: str) -> None:
    told = run_with_closed(words, ">&-")
    assert told.returncode == 1
    lines = told.stderr.decode().splitlines()
    assert "error: standard output: Bad file descriptor" in lines
    assert ("  the change is stored (#1 of default), so don't repeat it" in lines) == ("add a" in words)


CHANGES = {
    "add one": "#1 of default",
    "add two --json": "#2 of default",
    "add three --priority high": "#3 of default",
    "done 1": "#1 of default",
    "edit 1 --title uno": "#1 of default",
    "rm 2 3": "#2, #3 of default",
    "undo": "the undo in default",
    "next --take": "#3 of default",
    "set execution=serial": "the settings of default",
    "daemon call task.add title=four": "#4 of default",
    "agent attach session-1": "the session of default",
    "list clear --yes": "the clearing of default",
    "list rm default --yes": "the deletion of default",
    "chat add milk": "#1 of default",
    "chat --json undo that": "#1 of default",
}


@pytest.mark.usefixtures("home", "daemon")
def test_a_change_whose_output_is_lost_is_stored(daemon: Running) -> None:
    for words, ids in CHANGES.items():
        done = run_without_output(words)
        message, advice = "standard output: No space left on device", f"the change is stored ({ids})"
        shown = (
            json.dumps({"error": {"kind": "file", "message": message, "advice": f"{advice}, so don't repeat it"}})
            + "\n"
            if "--json" in words
            else f"error: {message}\n  {advice}, so don't repeat it\n"
        )
        assert (done.returncode, done.stderr) == (1, shown), words


FILES = {
    "web --revoke": "the new secret in {home}/data/web.token",
    "mirror add .": "the mirror in {home}",
    "mirror remove .": "the end of the mirror in {home}",
    "mirror add PLAN.md": "the mirror in {home}/PLAN.md",
    "mirror remove PLAN.md": "the end of the mirror in {home}/PLAN.md",
    "space server team --host lists.example.org --member ann": "the files in team-server",
    "setup neovim": "the change to {home}",
    "init plan": "the file {home}/.punchlist.toml",
    "init --trust": "the trust in {home}/.punchlist.toml",
}


def test_a_file_whose_report_is_lost_is_named(home: Path) -> None:
    (home / "PLAN.md").write_text("- [ ] one\n")
    for words, change in FILES.items():
        done = run_without_output(words)
        assert done.returncode == 1, done.stderr
        assert f"the change is stored ({change.format(home=home)}" in done.stderr, words


def test_the_setup_of_a_host_is_named(home: Path) -> None:
    require_package("mcp")
    assert f"the change to {home}/.cursor/mcp.json" in run_without_output("setup cursor").stderr


def test_a_commit_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = repository(home / "project")
    monkeypatch.chdir(place)
    for name, value in {"AUTHOR": "ann", "COMMITTER": "ann"}.items():
        monkeypatch.setenv(f"GIT_{name}_NAME", value)
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    told = run_without_output("init plan --commit").stderr
    assert f"(the file {place}/.punchlist.toml, the commit)" in told


@pytest.mark.usefixtures("daemon")
def test_a_restored_backup_is_named(home: Path) -> None:
    assert f"the backup {home}/copy" in run_without_output(f"daemon backup {home}/copy").stderr
    done = run_without_output("daemon restore copy --yes")
    assert f"the change is stored (the restored {home}/data/log.db)" in done.stderr
    assert (home / "data" / "log.db").exists()


def test_each_method_that_changes_a_list_has_words() -> None:
    place = {"conversation": "plan", "space": "team", "path": "/copy"}
    for method in (*(name for name, row in METHODS.items() if row.kind == "write"), *stored.CHANGING):
        wire.completed_calls[:] = [(method, place, {"removed": 1})]
        assert method.startswith("task.") or method not in stored.advice(), method


def test_a_read_whose_output_is_lost_stores_nothing(punch: Any) -> None:
    punch("add", "one")
    for words in ("list", "undo --preview", "daemon status", "log"):
        done = run_without_output(words)
        assert done.returncode == 1, words
        assert "No space left on device" in done.stderr and "stored" not in done.stderr, words


@pytest.mark.usefixtures("home", "daemon")
def test_with_both_outputs_closed_the_exit_code_is_the_same() -> None:
    assert run_with_closed("list --status foo", ">&- 2>&-").returncode == 2


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["chat", "confirm 1", "import -", "list clear"])
def test_with_its_input_closed_it_reads_nothing(words: str) -> None:
    assert b"Traceback" not in run_with_closed(words, "<&-").stderr
