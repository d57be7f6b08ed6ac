"""A headless Emacs, driven by Lisp forms on its standard input."""

import json
from pathlib import Path
from typing import Any

from punchlist_testing.editor_process import EditorProcess, environment

PLUGIN = Path(__file__).resolve().parents[3] / "editors" / "emacs"
ANSWER_S = 45.0
"""Timeout for a response, in seconds."""

COMPILED = Path(__file__).resolve().parents[3] / "build" / "emacs"
"""Shared cache of native-compiled code, because without it Emacs would need a second of processor time in each test's
new home."""

SHARE_COMPILED = '(when (boundp \'native-comp-eln-load-path) (push (getenv "COMPILED") native-comp-eln-load-path))'


class Editor(EditorProcess):
    """Emacs with the plugin and no other configuration.

    Args:
        socket: Path of the daemon's socket, which may not exist yet.
        directory: Working directory.
        load: Options that load files before the driver; by default the plugin.
        home: Home directory; by default a new, empty one.
    """

    def __init__(self, socket: str, directory: Path, load: tuple[str, ...] = (), home: Path | None = None) -> None:
        env = environment(socket, home or directory / "home", COMPILED=f"{COMPILED}/")
        load = load or ("-L", str(PLUGIN), "-l", "punchlist")
        driver = Path(__file__).with_suffix(".el")
        command = ["emacs", "--batch", "-Q", "--eval", SHARE_COMPILED, *load, "-l", str(driver), "-f", "drive"]
        super().__init__(command, ANSWER_S, cwd=directory, env=env)
        self._unread = b""

    def eval(self, form: str, *given: Any) -> Any:
        """Evaluate a form and return its value, decoded from JSON; the form can use the other arguments as `given`."""
        self.write_bytes(json.dumps([form, list(given)]).encode() + b"\n")
        while b"\n" not in self._unread:
            self._unread += self.read_bytes()
        line, _, self._unread = self._unread.partition(b"\n")
        has_succeeded, result = json.loads(line)
        assert has_succeeded, result
        return result

    def until(self, form: str, *given: Any) -> None:
        if not self.eval(f"(until (lambda () {form}))", *given):
            raise AssertionError(f"{form} {given}: {self.lines()}, {self.header()}, said {self.said()}")

    def lines(self) -> list[str]:
        return self.eval("(lines)") or []

    def header(self) -> str | None:
        """Return the window's header line."""
        return self.eval("header-line-format")

    def said(self) -> list[str]:
        return self.eval("(reverse said)") or []

    def shows(self, lines: list[str]) -> None:
        """Wait until the buffer consists of exactly these lines."""
        self.until("(equal (lines) (car given))", lines)

    def at(self, task: str, command: str, *answers: Any) -> None:
        """Move to a task's line and call a command, with these answers to its questions."""
        form = "(progn (punchlist--go-to-line (gethash (car given) punchlist--places)) (setq answers (cadr given))"
        self.eval(
            f"{form} (setq answers (mapcar (lambda (a) (if (eq a :false) nil a)) answers)) ({command}) nil)",
            task,
            answers,
        )
