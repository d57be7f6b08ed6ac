"""What is wrong with a file. Imports nothing: whoever shows errors knows this one."""


class FormatError(Exception):
    """A file that can't be read as tasks. `line` counts from 1, 0 when the file as a whole is meant."""

    def __init__(self, message: str, name: str, line: int = 0) -> None:
        super().__init__(f"{name}:{line}: {message}" if line else f"{name}: {message}")
        self.name = name
        self.line = line
