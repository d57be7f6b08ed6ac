import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.calling.context import default_actor
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_testing.terminal import environment


def find_imports(*words: str) -> set[str]:
    """Return the modules that a command loads in addition to a bare interpreter's."""
    code = "import sys; before = set(sys.modules); from punchlist_apps.cli import main; main(sys.argv[1:])"
    code += "; print(*(set(sys.modules) - before), file=sys.stderr)"
    # -S: modules loaded by site and .pth files depend on the installation.
    words = (sys.executable, "-S", "-c", code, *words)
    outcome = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True, env=environment())
    return set(outcome.stderr.split())


@pytest.mark.parametrize(
    "line",
    [
        *("list", "add b -p high", "start 1", "done 1 -r text", "next", "agent prime -c default --session s", "undo"),
        *("find a", "export", "export --format markdown", "export --format jsonl"),
    ],
)
def test_a_single_call_loads_no_event_loop(punch: Any, line: str) -> None:
    for title in ("a", "b"):
        punch("add", title)
    loaded = find_imports(*line.split())
    heavy = set("asyncio anyio dataclasses subprocess difflib traceback shutil".split())
    assert loaded.isdisjoint(heavy), loaded & heavy
    commands = {name for name in loaded if name.startswith("punchlist_apps.cli.commands.")}
    assert len(commands) == 1


@pytest.mark.parametrize("line", ["find a", "export", "export --format markdown"])
def test_find_and_export_load_little_more_than_list(punch: Any, line: str) -> None:
    punch("add", "a")
    assert len(find_imports(*line.split()) - find_imports("list")) <= 10


def test_only_the_owner_may_start_again(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    punch("add", "a")
    first = punch("start", "1")
    assert punch("start", "1").out == first.out
    monkeypatch.setenv("PUNCHLIST_OWNER", "eve")
    outcome = punch("start", "1")
    assert outcome.code == REFUSED and f"is held by {default_actor(os.environ)}" in outcome.err


@pytest.mark.parametrize("line", ["\x1b]52;c;eA==\x07 open, 0 in progress", "1 open, 0 in progress; rm", "1 open"])
def test_a_foreign_status_line_is_not_shown(punch: Any, home: Path, line: str) -> None:
    punch("add", "a")
    (home / "run" / "status").write_text(line + "\n")
    assert punch("daemon", "status", "--line").out == "1 open, 0 in progress\n"


def test_prompt_lines_reject_filters(punch: Any) -> None:
    assert punch("list", "--line").out == ""
    punch("add", "a")
    assert punch("list", "--line").out == "default  0/1\n"
    for option in ("--json", "--all", "--ready"):
        assert punch("list", "--line", option).code == 2
