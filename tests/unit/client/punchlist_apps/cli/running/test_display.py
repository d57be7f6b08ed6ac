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


def test_a_log_is_private_and_ends_at_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "MAX_LOG_BYTES", 10)
    log = LogFile(str(tmp_path / "logs"), TASK)
    for text in ("12345", "6789012345", "never"):
        log.write(text)
    log.close()
    assert os.path.basename(log.path) == "7.2.log"
    assert Path(log.path).read_text() == "12345\n(the log is full)\n"
    assert os.stat(log.path).st_mode & 0o777 == 0o600


def test_the_log_of_an_earlier_run_is_never_written_over(tmp_path: Path) -> None:
    names: list[str] = []
    for text in ("first", "second", "third"):
        log = LogFile(str(tmp_path), TASK)
        log.write(text)
        log.close()
        names.append(os.path.basename(log.path))
    assert names == ["7.2.log", "7.2-2.log", "7.2-3.log"]
    assert [(tmp_path / name).read_text() for name in names] == ["first\n", "second\n", "third\n"]


def test_the_progress_line_stays_below_what_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    shown = Display(Style(terminal=True, width=60))
    shown.show_start(TASK)
    shown.show_progress(Counts(pending=1, in_progress=1, completed=1, failed=1))
    shown.show_output(TASK, "line\x1b")
    shown.show_end(TASK, "failed", "why\nmore")
    shown.close()
    bar = "[##########..........] 2/4  1 failed  #7 A title"
    assert capfd.readouterr().out == (f"{bar}\r\x1b[K#7 line\\x1b\n{bar}\r\x1b[K✗ #7 A title  why\n{bar}\r\x1b[K")


def test_a_pipe_gets_lines_alone(capfd: pytest.CaptureFixture[str]) -> None:
    shown = Display(Style())
    assert not shown.has_progress
    shown.show_start(TASK)
    shown.show_end(TASK, "completed")
    shown.note("a note")
    shown.close()
    assert capfd.readouterr().out == "✓ #7 A title\na note\n"
