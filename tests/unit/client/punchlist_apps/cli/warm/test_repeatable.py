"""Commands after which a worker runs another one leave no state in the process."""

import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.parsing.index import COMMANDS, OWN_PROCESS, REPEATABLE
from punchlist_apps.cli.warm.worker import forget_command

LINES = {
    "add": "add b -p high --due friday",
    "agent attach": "agent attach abc",
    "agent detach": "agent detach abc",
    "agent prime": "agent prime -c default --session s",
    "agent statusline": "agent statusline -c default",
    "assign": "assign 1 ann",
    "complete": "complete task -- done",
    "daemon status": "daemon status --line",
    "done": "done 1 -r text",
    "edit": "edit 1 --title x",
    "export": "export - --format markdown",
    "fail": "fail 1",
    "find": "find a --json",
    "list": "list --all",
    "list all": "list all",
    "log": "log -n 3",
    "move": "move 1 --to-end",
    "next": "next --take",
    "note": "note 1 text",
    "pause": "pause 1",
    "queue release": "queue release 1",
    "queue renew": "queue renew 1",
    "redo": "redo",
    "reopen": "reopen 1",
    "resume": "resume 1",
    "rm": "rm 1 --yes",
    "show": "show 1",
    "start": "start 1",
    "undo": "undo",
    "who": "who",
    "why": "why 1",
}
"""Repeatable command → a command line. It may be refused."""

PLAIN = (bool, int, str, list, dict, set, tuple, type(None))
CHANGES_AT_EACH_START = {"punchlist_apps.cli.printing.failure._as_json"}


def read_state() -> dict[str, str]:
    """Return the plain values of our modules."""
    state: dict[str, str] = {}
    for module, content in list(sys.modules.items()):
        if module.startswith(("punchlist.", "punchlist_apps.", "punchlist_schemas.")):
            members: dict[str, Any] = {**vars(content)}
            state |= {f"{module}.{name}": repr(value) for name, value in members.items() if type(value) in PLAIN}
    return state


def list_threads() -> set[threading.Thread]:
    """Return the threads, without those of the fixture's daemon."""
    return {thread for thread in threading.enumerate() if thread.name != "AnyIO worker thread"}


def test_each_repeatable_command_has_a_line() -> None:
    assert LINES.keys() == REPEATABLE
    assert REPEATABLE - {"complete"} <= COMMANDS.keys()
    assert {name.split()[0] for name in OWN_PROCESS} <= {name.split()[0] for name in COMMANDS}
    assert REPEATABLE.isdisjoint(OWN_PROCESS)


@pytest.mark.parametrize("name", sorted(LINES))
def test_repeatable_command_leaves_no_state(punch: Any, home: Path, name: str) -> None:
    forget_command()
    before, threads = read_state(), list_threads()
    punch("add", "a")
    for _ in range(2):
        assert punch(*LINES[name].split()).code in (0, 1)
    forget_command()
    after = read_state()
    changed = {name for name in after.keys() & before.keys() if after[name] != before[name]}
    assert changed - CHANGES_AT_EACH_START == set()
    assert list_threads() <= threads  # those of earlier tests may end meanwhile
