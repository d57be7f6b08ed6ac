"""A headless editor, driven over its standard input and output."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from punchlist.connection.readable import is_readable


def environment(socket: str, home: Path, **more: str) -> dict[str, str]:
    """Create a home directory; return the environment of an editor of the user `ann` in it."""
    home.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "PUNCHLIST_SOCKET": socket,
        "PUNCHLIST_AUTOSTART": "0",
        "USER": "ann",
        **more,
    }


class EditorProcess:
    """An editor, killed at the end of a `with` block.

    Args:
        command: Its argument vector.
        answer_s: Timeout for its output while a test waits, in seconds.
        options: Additional options of `subprocess.Popen`.
    """

    def __init__(self, command: list[str], answer_s: float, **options: Any) -> None:
        self._answer_s = answer_s
        # Keep SIGPIPE ignored, as Emacs does itself when it has a screen. A headless Emacs inherits the setting.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, restore_signals=False, **options
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def write_bytes(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def read_bytes(self) -> bytes:
        """Return the editor's next output, at least one byte."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        data = os.read(descriptor, 1 << 20) if is_readable(descriptor, self._answer_s) else b""
        assert data, "the editor wrote nothing"
        return data
