"""A real editor without a screen, driven over its standard input and output."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from punchlist.connection.readable import is_readable


def environment(socket: str, home: Path, **more: str) -> dict[str, str]:
    """Return the variables of an editor of `ann` in an empty home directory, which is made."""
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
    """One editor, killed at the end of a `with`.

    Args:
        command: What starts it.
        answer_s: Longest time that it may write nothing while a test waits, in seconds.
        options: Further options of `subprocess.Popen`.
    """

    def __init__(self, command: list[str], answer_s: float, **options: Any) -> None:
        self._answer_s = answer_s
        # Without a screen Emacs leaves SIGPIPE as it finds it; with one it ignores the signal, as here.
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
        """Return what it wrote; at least one byte."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        data = os.read(descriptor, 1 << 20) if is_readable(descriptor, self._answer_s) else b""
        assert data, "the editor says nothing any more"
        return data
