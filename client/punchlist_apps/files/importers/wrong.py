"""The error of the importers, in a module without imports, since every command that prints errors loads it."""


class FormatError(Exception):
    """A file that can't be read as tasks. `line` starts at 1; 0 for the whole file."""

    def __init__(self, message: str, name: str, line: int = 0) -> None:
        super().__init__(f"{name}:{line}: {message}" if line else f"{name}: {message}")
        self.name = name
        self.line = line
