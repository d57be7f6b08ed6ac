"""Output of `punch run`: the commands' lines with their tasks, and on a terminal a progress line below them."""

import os
from collections.abc import Callable
from typing import TextIO

from punchlist.base.text import safe
from punchlist_apps.common.terminal.render import count_columns, truncate
from punchlist_apps.common.terminal.style import Style, write
from punchlist_schemas.rendezvous import make_directories
from punchlist_schemas.things import Counts, Task

MAX_LOG_BYTES = 10 << 20
"""Maximum size of a task's log file in bytes."""

_BAR = 20


class LogFile:
    """The output of one run of a task, up to `MAX_LOG_BYTES`. Files of earlier runs are never overwritten."""

    def __init__(self, directory: str, task: Task) -> None:
        make_directories(directory)
        self.path, descriptor = _create_log(os.path.join(directory, f"{task.id}.{task.attempts}"))
        self._file: TextIO = os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")
        self._left = MAX_LOG_BYTES

    def write(self, text: str) -> None:
        if self._left <= 0:
            return
        self._left -= len(text) + 1
        self._file.write(text + "\n" if self._left > 0 else "(the log is full)\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _create_log(stem: str) -> tuple[str, int]:
    """Create and open a log file with a new name, and return its path and descriptor."""
    path, number = f"{stem}.log", 1
    while True:
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:  # the attempts of a reopened task are counted from one again
            number += 1
            path = f"{stem}-{number}.log"


class Display:
    """Prints lines, and on a terminal one progress line below them.

    Attributes:
        write_error: The error that ended the output. It isn't raised immediately, so that the results of running
            commands are still recorded.
        on_write_error: Called once, when this error occurs.
    """

    def __init__(self, style: Style) -> None:
        self.write_error: OSError | None = None
        self.on_write_error: Callable[[], object] = lambda: None
        self._style = style
        self._bar = ""
        self._running: dict[str, Task] = {}
        self._names: dict[str, str] = {}

    @property
    def has_progress(self) -> bool:
        return self._style.terminal

    def show_output(self, task: Task, text: str) -> None:
        self._line(self._style.paint("dim", f"#{safe(task.id)} ") + safe(text, "\t"))

    def show_start(self, task: Task, name: str = "") -> None:
        """Record that a command is running for a task. `name` is its title, including the titles of its parents."""
        self._running[task.id] = task
        self._names[task.id] = name or task.title

    def show_end(self, task: Task, status: str, note: str = "") -> None:
        self._running.pop(task.id, None)
        style = self._style
        mark = style.paint(status, style.glyphs.get(status, style.glyphs["dot"]))
        text = f"{mark} #{safe(task.id)} {safe(self._names.pop(task.id, task.title))}"
        self._line(text + (style.paint("dim", f"  {safe(note.splitlines()[0])}") if note else ""))

    def note(self, text: str) -> None:
        self._line(self._style.paint("dim", text))

    def show_progress(self, counts: Counts) -> None:
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
        if self.write_error is not None:
            return
        try:
            write(text)
        except OSError as error:
            self.write_error = error
            self.on_write_error()

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
