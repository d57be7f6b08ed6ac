"""Every command as data: what the parser, the help, the completions and the dispatch are made from."""

from punchlist.cli.table import keeping, outside, work
from punchlist.cli.table.shape import Argument, Command, flag, value

__all__ = ["COMMANDS", "COMMON", "Argument", "Command"]

COMMON = (
    value("-c", "--conversation", text="the list (PUNCHLIST_CONVERSATION, else the project's)", metavar="ID"),
    flag("--json", text="print JSON for programs"),
    value("--actor", text="who does this, as recorded in the log (undo without --of: whose calls)", metavar="NAME"),
    Argument(("--socket",), "the daemon's socket (PUNCHLIST_SOCKET)", {"metavar": "PATH"}, "file"),
    Argument(("--data-dir",), "the data directory (PUNCHLIST_DATA_DIR)", {"metavar": "PATH"}, "file"),
    flag("--no-autostart", text="fail instead of starting a daemon (PUNCHLIST_AUTOSTART=0)"),
)
"""What every command accepts, before or after its name."""

COMMANDS = (*work.COMMANDS, *keeping.COMMANDS, *outside.COMMANDS)
"""In the order of the help."""
