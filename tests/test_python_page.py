"""docs/python.md, word by word: its blocks run in order against a real daemon."""

import re
from pathlib import Path
from typing import Any

import pytest

from punchlist_testing.daemon import spawned_daemon

PAGE = Path(__file__).resolve().parents[1] / "docs" / "python.md"


def test_the_blocks_of_the_python_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text("utf-8")
    with spawned_daemon(tmp_path) as daemon:
        monkeypatch.setenv("PUNCHLIST_SOCKET", daemon.socket)
        monkeypatch.setenv("PUNCHLIST_DATA_DIR", daemon.data_dir)
        monkeypatch.setenv("PUNCHLIST_AUTOSTART", "0")
        names: dict[str, Any] = {}
        try:
            for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
                lines = "\n" * text[: found.start()].count("\n")  # so that a failure names the line of the page
                exec(compile(lines + "\n" + found[1], str(PAGE), "exec"), names)  # noqa: S102 - our own page
        finally:
            names["client"].close()
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        "1 completed Write the copy",
        "2 pending Publish",
        "somebody was faster: it is at 6",
        "task 99",
        "7 TaskAdded",
        "Counts(pending=2, in_progress=0, paused=0, completed=1, failed=0, blocked=0, ready=2)",
        "['python']",
        "working on Publish",
        "working on Tell everybody",
        "3",
    ]
