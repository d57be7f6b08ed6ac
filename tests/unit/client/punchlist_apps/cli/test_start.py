import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist.connection.waiting import Waiting
from punchlist_apps.cli.calling.context import default_actor
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.common import wire
from punchlist_testing.terminal import environment


def imported(*words: str) -> set[str]:
    """Modules that a fresh interpreter loads for a command, beyond those of a bare one."""
    code = "import sys; before = set(sys.modules); from punchlist_apps.cli import main; main(sys.argv[1:])"
    code += "; print(*(set(sys.modules) - before), file=sys.stderr)"
    # -S: what site and its .pth files load is the installation's matter.
    words = (sys.executable, "-S", "-c", code, *words)
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True, env=environment())
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "line",
    ["list", "add b -p high", "start 1", "done 1 -r text", "next", "agent prime -c default --session s", "undo"],
)
def test_a_command_that_only_calls_loads_neither_the_library_nor_an_event_loop(punch: Any, line: str) -> None:
    for title in ("a", "b"):
        punch("add", title)
    loaded = imported(*line.split())
    heavy = set("asyncio anyio msgspec inspect dataclasses subprocess difflib traceback shutil".split())
    assert loaded.isdisjoint(heavy), loaded & heavy
    commands = {name for name in loaded if name.startswith("punchlist_apps.cli.commands.")}
    assert len(commands) == 1


def test_starting_again_what_one_has_begun_is_no_error_and_what_another_has_is_refused(
    punch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    punch("add", "a")
    first = punch("start", "1")
    assert punch("start", "1").out == first.out
    monkeypatch.setenv("PUNCHLIST_OWNER", "eve")
    refused = punch("start", "1")
    assert refused.code == REFUSED and f"is held by {default_actor(os.environ)}" in refused.err


@pytest.mark.parametrize("line", ["\x1b]52;c;eA==\x07 open, 0 in progress", "1 open, 0 in progress; rm", "1 open"])
def test_a_status_line_that_somebody_else_has_written_is_not_shown(punch: Any, home: Path, line: str) -> None:
    punch("add", "a")
    (home / "run" / "status").write_text(line + "\n")
    assert punch("daemon", "status", "--line").out == "1 open, 0 in progress\n"


def test_a_line_for_a_prompt_goes_with_no_filter(punch: Any) -> None:
    assert punch("list", "--line").out == ""
    punch("add", "a")
    assert punch("list", "--line").out == "default  0/1\n"
    for option in ("--json", "--all", "--ready"):
        assert punch("list", "--line", option).code == 2


def test_a_change_whose_answer_was_lost_happens_once(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon has done it, and the command never learns: it repeats it with the same key."""
    exchange = wire._exchange  # pyright: ignore[reportPrivateUsage]

    def lost(sock: Any, number: int, method: str, params: dict[str, Any], waiting: Waiting) -> Any:
        answer = exchange(sock, number, method, params, waiting)
        if method == "task.add":
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(wire, "_exchange", lost)
    assert punch("add", "once").code == 0
    assert [task["title"] for task in punch("list", "--json").json["tasks"]] == ["once"]
