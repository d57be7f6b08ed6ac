"""The process that a person or program started as the command, even if a worker runs it (`punchlist_apps.cli.warm`)."""

import os

_recorded = 0


def record_pid(pid: int) -> None:
    global _recorded  # noqa: PLW0603 - a worker runs one command at a time
    _recorded = pid


def find_pid() -> int:
    return _recorded or os.getpid()
