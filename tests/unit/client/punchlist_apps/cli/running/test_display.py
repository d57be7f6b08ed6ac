import os
from pathlib import Path

import pytest

from punchlist_apps.cli.running import display
from punchlist_apps.cli.running.display import Display, LogFile
from punchlist_apps.common.terminal.style import Style
from punchlist_schemas.things import Counts, Task

TASK = Task(
    id="7",
    title="A title",
    status="in_progress",
    priority="normal",
    attempts=2,
    created_at=1,
    updated_at=1,
    status_changed_at=1,
    version=1,
)


def test_a_log_is_private_and_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "MAX_LOG_BYTES", 10)
    log = LogFile(str(tmp_path / "logs"), TASK)
    for text in ("12345", "6789012345", "never"):
        log.write(text)
    log.close()
    assert os.path.basename(log.path) == "7.2.log"
    assert Path(log.path).read_text() == "12345\n(the log is full)\n"
    assert os.stat(log.path).st_mode & 0o777 == 0o600


def test_earlier_logs_are_not_overwritten(tmp_path: Path) -> None:
    names: list[str] = []
    for text in ("first", "second", "third"):
        log = LogFile(str(tmp_path), TASK)
        log.write(text)
        log.close()
        names.append(os.path.basename(log.path))
    assert names == ["7.2.log", "7.2-2.log", "7.2-3.log"]
    assert [(tmp_path / name).read_text() for name in names] == ["first\n", "second\n", "third\n"]


def test_the_progress_line_stays_below_the_output(capfd: pytest.CaptureFixture[str]) -> None:
    view = Display(Style(terminal=True, width=60))
    view.show_start(TASK)
    view.show_progress(Counts(pending=1, in_progress=1, completed=1, failed=1))
    view.show_output(TASK, "line\x1b")
    view.show_end(TASK, "failed", "why\nmore")
    view.close()
    bar = "[##########..........] 2/4  1 failed  #7 A title"
    assert capfd.readouterr().out == (f"{bar}\r\x1b[K#7 line\\x1b\n{bar}\r\x1b[K✗ #7 A title  why\n{bar}\r\x1b[K")


def test_a_pipe_gets_no_progress_line(capfd: pytest.CaptureFixture[str]) -> None:
    view = Display(Style())
    assert not view.has_progress
    view.show_start(TASK)
    view.show_end(TASK, "completed")
    view.note("a note")
    view.close()
    assert capfd.readouterr().out == "✓ #7 A title\na note\n"
