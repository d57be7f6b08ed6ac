"""What the table of commands is made of."""

from typing import Any, NamedTuple


class Argument(NamedTuple):
    """One positional argument (its name without a dash) or option.

    `complete` tells shells what to offer: `file`, `choices`, `method`, `command` or nothing.
    """

    flags: tuple[str, ...]
    help: str
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    complete: str = ""

    @property
    def positional(self) -> bool:
        """Whether it is given by position."""
        return not self.flags[0].startswith("-")

    @property
    def takes_value(self) -> bool:
        """Whether a value follows it."""
        return not str(self.options.get("action", "")).startswith("store_")


class Command(NamedTuple):
    """One command; `module` holds a function `run_NAME` (dashes as underscores) that does it."""

    name: str
    module: str
    summary: str
    arguments: tuple[Argument, ...] = ()
    examples: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def flag(*flags: str, text: str) -> Argument:
    """An option that is given or not."""
    return Argument(flags, text, {"action": "store_true"})


def value(*flags: str, text: str, metavar: str = "TEXT", **options: Any) -> Argument:
    """An option with a value."""
    return Argument(flags, text, {"metavar": metavar, **options})


def choice(*flags: str, text: str, choices: tuple[str, ...], **options: Any) -> Argument:
    """One of several words, by position or as an option."""
    return Argument(flags, text, {"choices": choices, **options}, "choices")


def names(text: str) -> tuple[str, ...]:
    """Names as people write them after one option: `one,two`."""
    return tuple(name for part in text.split(",") if (name := part.strip()))
