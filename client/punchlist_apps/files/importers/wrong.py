"""The importers' error class. This module has no imports, since every command that prints errors loads it."""


class FormatError(Exception):
    """A file that can't be read as tasks. `line` is counted from 1, and is 0 if the error concerns the whole file."""

    def __init__(self, message: str, name: str, line: int = 0) -> None:
        super().__init__(f"{name}:{line}: {message}" if line else f"{name}: {message}")
        self.name = name
        self.line = line
