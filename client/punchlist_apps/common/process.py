"""The process that started the command, which isn't the parent of a worker (`punchlist_apps.cli.warm`)."""

import os

_recorded = 0


def record_parent(pid: int) -> None:
    global _recorded  # noqa: PLW0603 - a worker runs one command at a time
    _recorded = pid


def find_parent() -> int:
    return _recorded or os.getppid()
