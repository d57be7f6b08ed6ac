"""What `punch run` shows: each line of output with its task, and on a terminal how far the list is, below."""

import os
from collections.abc import Callable
from typing import TextIO

from punchlist.base.text import safe
from punchlist_apps.common.terminal.render import count_columns, truncate
from punchlist_apps.common.terminal.style import Style, write
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.things import Counts, Task

MAX_LOG_BYTES = 10 << 20
"""A task's log file ends here."""

_BAR = 20


class LogFile:
    """Everything that one run of a task said, up to a bound. What an earlier run has left is never written over."""

    def __init__(self, directory: str, task: Task) -> None:
        make_directories(directory)
        self.path, descriptor = _fresh(os.path.join(directory, f"{task.id}.{task.attempts}"))
        self._file: TextIO = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
        self._left = MAX_LOG_BYTES

    def line(self, text: str) -> None:
        if self._left <= 0:
            return
        self._left -= len(text) + 1
        self._file.write(text + "\n" if self._left > 0 else "(the log is full)\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _fresh(stem: str) -> tuple[str, int]:
    """Make a file that is not there yet, since attempts count from one again after a reopening; its path, and open."""
    path, again = f"{stem}.log", 1
    while True:
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            again += 1
            path = f"{stem}-{again}.log"


class Show:
    """Prints lines, and keeps one line of progress below them where there is a terminal.

    Attributes:
        lost: Why nothing can be printed any more; the results of commands must not be lost with their output.
        on_lost: Called once when that happens.
    """

    def __init__(self, style: Style) -> None:
        self.lost: OSError | None = None
        self.on_lost: Callable[[], object] = lambda: None
        self._style = style
        self._bar = ""
        self._running: dict[str, Task] = {}
        self._names: dict[str, str] = {}

    @property
    def has_progress(self) -> bool:
        """Whether there is a terminal to keep a line of progress on."""
        return self._style.terminal

    def output(self, task: Task, text: str) -> None:
        self._line(self._style.paint("dim", f"#{safe(task.id)} ") + safe(text, "\t"))

    def started(self, task: Task, name: str = "") -> None:
        """A command was started for a task; `name` is its title with those of its parents, if it has any."""
        self._running[task.id] = task
        self._names[task.id] = name or task.title

    def ended(self, task: Task, status: str, note: str = "") -> None:
        self._running.pop(task.id, None)
        style = self._style
        mark = style.paint(status, style.glyphs.get(status, style.glyphs["dot"]))
        text = f"{mark} #{safe(task.id)} {safe(self._names.pop(task.id, task.title))}"
        self._line(text + (style.paint("dim", f"  {safe(note.splitlines()[0])}") if note else ""))

    def note(self, text: str) -> None:
        self._line(self._style.paint("dim", text))

    def progress(self, counts: Counts) -> None:
        total = counts.pending + counts.in_progress + counts.paused + counts.completed + counts.failed
        done = counts.completed + counts.failed
        filled = _BAR * done // total if total else _BAR
        parts = [f"[{'#' * filled}{'.' * (_BAR - filled)}] {done}/{total}"]
        if counts.failed:
            parts.append(f"{counts.failed} failed")
        parts += [
            f"#{safe(task.id)} {safe(task.active_form or self._names[task.id])}" for task in self._running.values()
        ]
        self._draw("  ".join(parts))

    def close(self) -> None:
        self._draw("")

    def _line(self, text: str) -> None:
        bar = self._bar
        self._draw("")
        self._write(text + "\n")
        self._draw(bar)

    def _write(self, text: str) -> None:
        if self.lost is not None:
            return
        try:
            write(text)
        except OSError as error:
            self.lost = error
            self.on_lost()

    def _draw(self, bar: str) -> None:
        if not self._style.terminal:
            return
        if self._bar:
            self._write("\r\x1b[K")
        self._bar = (
            truncate(bar, max(self._style.width - 1, 1), self._style.glyphs["cut"]) if count_columns(bar) else ""
        )
        if self._bar:
            self._write(self._bar)
