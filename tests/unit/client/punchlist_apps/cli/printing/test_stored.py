"""Errors that name the changes made before the failure."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.printing import stored
from punchlist_schemas.methods import METHODS
from punchlist_testing.daemon import Running
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository
from punchlist_testing.terminal import command, environment

PLACE = {"space": "team", "conversation": "plan"}


def run_without_output(words: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose standard output is a full device."""
    with open("/dev/full", "wb") as full:
        return subprocess.run(
            command(*words.split()), stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
        )


def run_with_closed(words: str, streams: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with standard streams closed by shell words such as `>&- 2>&-`."""
    line = f'exec "$@" {words} {streams}'
    return subprocess.run(
        ["sh", "-c", line, "sh", *command()], capture_output=True, env=environment(), timeout=20, check=False
    )


def test_a_repair_counts_if_it_removed_posts() -> None:
    stored.record_call("space.repair", PLACE, {"posts": [], "removed": 0})
    assert stored.advise_stored() == ""
    stored.record_call("space.repair", PLACE, {"posts": [], "removed": 1})
    assert stored.advise_stored() == "the change is stored (the repair of plan), so don't repeat it"


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["add a", "chat add a", "list", "status"])
def test_a_closed_output_is_an_error(words: str) -> None:
    outcome = run_with_closed(words, ">&-")
    assert outcome.returncode == 1
    lines = outcome.stderr.decode().splitlines()
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
def test_a_change_with_lost_output_is_named(daemon: Running) -> None:
    for words, ids in CHANGES.items():
        outcome = run_without_output(words)
        message, advice = "standard output: No space left on device", f"the change is stored ({ids})"
        expected = (
            json.dumps({"error": {"kind": "file", "message": message, "advice": f"{advice}, so don't repeat it"}})
            + "\n"
            if "--json" in words
            else f"error: {message}\n  {advice}, so don't repeat it\n"
        )
        assert (outcome.returncode, outcome.stderr) == (1, expected), words


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


def test_a_file_with_lost_output_is_named(home: Path) -> None:
    (home / "PLAN.md").write_text("- [ ] one\n")
    for words, change in FILES.items():
        outcome = run_without_output(words)
        assert outcome.returncode == 1, outcome.stderr
        assert f"the change is stored ({change.format(home=home)}" in outcome.stderr, words


def test_the_setup_of_a_host_is_named(home: Path) -> None:
    require_package("mcp")
    assert f"the change to {home}/.cursor/mcp.json" in run_without_output("setup cursor").stderr


def test_a_commit_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = repository(home / "project")
    monkeypatch.chdir(place)
    for name, value in {"AUTHOR": "ann", "COMMITTER": "ann"}.items():
        monkeypatch.setenv(f"GIT_{name}_NAME", value)
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "ann@example.org")
    output = run_without_output("init plan --commit").stderr
    assert f"(the file {place}/.punchlist.toml, the commit)" in output


@pytest.mark.usefixtures("daemon")
def test_a_restored_backup_is_named(home: Path) -> None:
    assert f"the backup {home}/copy" in run_without_output(f"daemon backup {home}/copy").stderr
    outcome = run_without_output("daemon restore copy --yes")
    assert f"the change is stored (the restored {home}/data/log.db)" in outcome.stderr
    assert (home / "data" / "log.db").exists()


def test_each_changing_method_has_a_description() -> None:
    place = {"conversation": "plan", "space": "team", "path": "/copy"}
    for method in (*(name for name, row in METHODS.items() if row.kind == "write"), *stored.CHANGING):
        stored.forget()
        stored.record_call(method, place, {"removed": 1})
        assert method.startswith("task.") or method not in stored.advise_stored(), method


def test_a_read_with_lost_output_names_no_change(punch: Any) -> None:
    punch("add", "one")
    for words in ("list", "undo --preview", "daemon status", "log"):
        outcome = run_without_output(words)
        assert outcome.returncode == 1, words
        assert "No space left on device" in outcome.stderr and "stored" not in outcome.stderr, words


@pytest.mark.usefixtures("home", "daemon")
def test_closed_outputs_keep_the_exit_code() -> None:
    assert run_with_closed("list --status foo", ">&- 2>&-").returncode == 2


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["chat", "confirm 1", "import -", "list clear"])
def test_a_closed_input_reads_as_empty(words: str) -> None:
    assert b"Traceback" not in run_with_closed(words, "<&-").stderr
