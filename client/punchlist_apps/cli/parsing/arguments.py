"""Declarations of arguments.

A command's module has a table `COMMANDS`, which maps the command's name to its `Usage`.
"""

from typing import Any, NamedTuple


class Argument(NamedTuple):
    """A positional argument or an option. Positional names have no dash.

    `complete` is the kind of completions that shells offer for it: `file`, `task`, `list`, `name`, `method`, or empty.
    Choices are completed even if it is empty.
    """

    flags: tuple[str, ...]
    help: str
    options: dict[str, Any] = {}
    complete: str = ""

    @property
    def is_positional(self) -> bool:
        return not self.flags[0].startswith("-")

    @property
    def takes_value(self) -> bool:
        return not str(self.options.get("action", "")).startswith("store_")


class Usage(NamedTuple):
    """The arguments of a command, and examples for its help text."""

    arguments: tuple[Argument, ...] = ()
    examples: tuple[str, ...] = ()


def flag(*flags: str, text: str) -> Argument:
    return Argument(flags, text, {"action": "store_true"})


def value(*flags: str, text: str, metavar: str = "TEXT", complete: str = "", **options: Any) -> Argument:
    return Argument(flags, text, {"metavar": metavar, **options}, complete or ("task" if metavar == "ID" else ""))


def choice(*flags: str, text: str, choices: tuple[str, ...], **options: Any) -> Argument:
    return Argument(flags, text, {"choices": choices, **options})


def owner_option(text: str) -> Argument:
    return value("-o", "--owner", text=text, metavar="NAME", complete="name")


def parse_names(text: str) -> tuple[str, ...]:
    """Split the value of an option into names: `one,two`."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


TASK = Argument(("task",), "the task, as 3 or #3", {"metavar": "ID"}, "task")
TASKS = Argument(("tasks",), "the tasks: 3, #3, 1,2 or 3-7", {"metavar": "ID", "nargs": "+"}, "task")
YES = flag("-y", "--yes", text="do not ask first")

COMMON = (
    value(
        *("-c", "--conversation"),
        text="the list (default: PUNCHLIST_CONVERSATION, else the project's)",
        metavar="ID",
        complete="list",
    ),
    flag("--json", text="print JSON for programs"),
    value(
        "--actor",
        text="the actor to record in the log (default: PUNCHLIST_ACTOR, else the user)",
        metavar="NAME",
        complete="name",
    ),
    value("--socket", text="the daemon's socket (default: PUNCHLIST_SOCKET)", metavar="PATH", complete="file"),
    value("--data-dir", text="the data directory (default: PUNCHLIST_DATA_DIR)", metavar="PATH", complete="file"),
    flag("--no-autostart", text="fail instead of starting a daemon (or set PUNCHLIST_AUTOSTART=0)"),
)
"""Options that every command accepts, before or after its name."""
