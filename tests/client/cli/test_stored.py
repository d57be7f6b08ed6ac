"""The changes that an error names."""

import json
import subprocess

import pytest

from punchlist.cli import stored, wire
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import command, environment

PLACE = {"space": "team", "conversation": "plan"}


def test_a_repair_is_stored_if_it_removed_posts() -> None:
    wire.completed.append(("space.repair", PLACE, {"posts": [], "removed": 0}))
    assert stored.advice() == ""
    wire.completed.append(("space.repair", PLACE, {"posts": [], "removed": 1}))
    assert stored.advice() == "the change is stored (space.repair of plan), so don't repeat it"


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["add a", "list", "status"])
def test_with_its_output_closed_it_writes_to_nobody_and_says_so(words: str) -> None:
    line = f'exec "$@" {words} >&-'
    told = subprocess.run(
        ["sh", "-c", line, "sh", *command()], capture_output=True, env=environment(), timeout=20, check=False
    )
    assert told.returncode == 1
    lines = told.stderr.decode().splitlines()
    assert "error: file: standard output: Bad file descriptor" in lines
    assert ("  the change is stored (#1 of default), so don't repeat it" in lines) == (words == "add a")


CHANGES = {
    "add one": "#1",
    "add two --json": "#2",
    "add three --priority high": "#3",
    "start 1": "#1",
    "pause 1": "#1",
    "resume 1": "#1",
    "done 1": "#1",
    "reopen 1": "#1",
    "edit 1 --title uno": "#1",
    "note 1 noted": "#1",
    "move 3 --before 1": "#3",
    "rm 2 3": "#2, #3",
    "undo": "list.undo",
    "next --take": "#3",
    "queue renew 3": "#3",
    "queue release 3": "#3",
    "set execution=serial": "conversation.configure",
    "daemon call task.add title=four": "#4",
    "list clear --yes": "list.clear",
}


@pytest.mark.usefixtures("home", "daemon")
def test_a_change_whose_output_is_lost_is_stored(daemon: Running) -> None:
    for words, ids in CHANGES.items():
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                command(*words.split()), stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
            )
        message, advice = "standard output: No space left on device", f"the change is stored ({ids} of default)"
        shown = (
            json.dumps({"error": {"kind": "file", "message": message, "advice": f"{advice}, so don't repeat it"}})
            + "\n"
            if "--json" in words
            else f"error: file: {message}\n  {advice}, so don't repeat it\n"
        )
        assert (done.returncode, done.stderr) == (1, shown), words


@pytest.mark.usefixtures("home", "daemon")
@pytest.mark.parametrize("words", ["list", "undo --preview", "show 1 --json", "next", "daemon status", "log", "why 1"])
def test_a_read_whose_output_is_lost_stores_nothing(words: str) -> None:
    assert (
        subprocess.run(command("add", "one"), stdout=subprocess.DEVNULL, env=environment(), check=False).returncode == 0
    )
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command(*words.split()), stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "stored" not in done.stderr


@pytest.mark.usefixtures("home", "daemon")
def test_with_both_outputs_closed_the_exit_code_is_the_same() -> None:
    line = 'exec "$@" list --status foo >&- 2>&-'
    assert (
        subprocess.run(["sh", "-c", line, "sh", *command()], env=environment(), timeout=20, check=False).returncode == 2
    )
