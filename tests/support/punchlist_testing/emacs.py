"""A real Emacs without a screen, driven by forms on its standard input."""

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from punchlist.connection.readable import is_readable

PLUGIN = Path(__file__).resolve().parents[3] / "editors" / "emacs"
ANSWER_S = 45.0
"""How long an answer may take before a test gives up, in seconds."""

COMPILED = Path(__file__).resolve().parents[3] / "build" / "emacs"
"""Where an Emacs that compiles to machine code keeps what it made of the driver's advice: each new home would else cost
it a second of a processor, as often as a test begins."""

SHARE_COMPILED = '(when (boundp \'native-comp-eln-load-path) (push (getenv "COMPILED") native-comp-eln-load-path))'


class Editor:
    """One Emacs with the plugin, and no other configuration.

    Args:
        socket: Where the daemon listens, or will.
        directory: The working directory.
        load: What is loaded before the driver.
        home: The home directory; by default a new one without anything in it.
    """

    def __init__(self, socket: str, directory: Path, load: tuple[str, ...] = (), home: Path | None = None) -> None:
        home = home or directory / "home"
        home.mkdir(parents=True, exist_ok=True)
        variables = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "PUNCHLIST_SOCKET": socket,
            "PUNCHLIST_AUTOSTART": "0",
            "USER": "ann",
            "COMPILED": f"{COMPILED}/",
        }
        loaded = load or ("-L", str(PLUGIN), "-l", "punchlist")
        driver = Path(__file__).with_suffix(".el")
        command = ["emacs", "--batch", "-Q", "--eval", SHARE_COMPILED, *loaded, "-l", str(driver), "-f", "drive"]
        # Without a screen Emacs leaves SIGPIPE as it finds it; with one it ignores the signal, as here.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=directory,
            env=variables,
            restore_signals=False,
        )
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def eval(self, form: str, *given: Any) -> Any:
        """What a form gives, as JSON has it; `given` holds the further arguments.

        Raises:
            AssertionError: Emacs signals an error, or says nothing in time.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([form, list(given)]).encode() + b"\n")
        self._process.stdin.flush()
        while b"\n" not in self._unread:
            ready = is_readable(self._process.stdout.fileno(), ANSWER_S)
            data = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
            assert data, "Emacs says nothing any more"
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        is_fine, result = json.loads(line)
        assert is_fine, result
        return result

    def until(self, form: str, *given: Any) -> None:
        """Let Emacs work until a form holds."""
        if not self.eval(f"(until (lambda () {form}))", *given):
            raise AssertionError(f"{form} {given}: {self.lines()}, {self.header()}, said {self.said()}")

    def lines(self) -> list[str]:
        """The lines of the current buffer."""
        return self.eval("(lines)") or []

    def header(self) -> str | None:
        """What stands in the window's first line."""
        return self.eval("header-line-format")

    def said(self) -> list[str]:
        """What a person was told so far."""
        return self.eval("(reverse said)") or []

    def shows(self, lines: list[str]) -> None:
        """Wait until the buffer holds exactly these lines."""
        self.until("(equal (lines) (car given))", lines)

    def at(self, task: str, command: str, *answers: Any) -> None:
        """Go to the line of a task and call a command, whose questions are answered so."""
        form = "(progn (punchlist--go-to-line (gethash (car given) punchlist--places)) (setq answers (cadr given))"
        self.eval(
            f"{form} (setq answers (mapcar (lambda (a) (if (eq a :false) nil a)) answers)) ({command}) nil)",
            task,
            answers,
        )
