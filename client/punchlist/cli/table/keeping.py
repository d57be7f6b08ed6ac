"""The commands about all lists, the daemon, its log and files."""

from typing import Any

from punchlist.cli.duration import positive
from punchlist.cli.formats.detect import FORMATS
from punchlist.cli.table.shape import Argument, Command, choice, flag, value

_FILE: dict[str, Any] = {"metavar": "FILE"}

COMMANDS = (
    Command(
        "conversations",
        "reading",
        "Show all lists, newest first.",
        (
            value("-q", "--query", text="only those whose id or title holds this"),
            flag("--active", text="only those with unfinished tasks"),
            value("-n", "--limit", text="at most so many (100)", metavar="N", type=positive),
        ),
        ("punch conversations --active",),
    ),
    Command(
        "set",
        "settings",
        "Show the settings of the list, or change some of them.",
        (Argument(("settings",), "NAME=VALUE; none: show all", {"metavar": "NAME=VALUE", "nargs": "*"}),),
        ("punch set", "punch set execution=serial on_failure=stop", 'punch set auto_clear=idle title="Release 1.0"'),
    ),
    Command(
        "status",
        "reading",
        "Show how the daemon is.",
        (flag("--line", text="one line for shell prompts, from the status file"),),
        ("punch status", "punch status --line"),
    ),
    Command(
        "backup",
        "keep",
        "Copy the log while it is in use, and check the copy.",
        (
            Argument(
                ("file",),
                "where to; nothing may be there (DATA_DIR/backups/punchlist-DATE-TIME.db)",
                {**_FILE, "nargs": "?"},
                "file",
            ),
        ),
        ("punch backup", "punch backup /media/stick/punchlist.db"),
    ),
    Command(
        "verify",
        "keep",
        "Look through the log, or a backup, for damage: exit code 1 and its place if there is any.",
        (
            Argument(("file",), "a log or backup nobody has open (the log in use)", {**_FILE, "nargs": "?"}, "file"),
            flag("--repair", text="repair the log, while no daemon runs: copy it, cut out what is spoiled, say what"),
        ),
        ("punch verify", "punch verify /media/stick/punchlist.db", "punch verify --repair"),
    ),
    Command(
        "restore",
        "keep",
        "Put a backup where there is no log, while no daemon runs.",
        (Argument(("file",), "the backup", _FILE, "file"),),
        ("punch restore /media/stick/punchlist.db",),
    ),
    Command("doctor", "doctor", "Check the installation and say what to change.", (), ("punch doctor",)),
    Command(
        "call",
        "call",
        "Call any method of the daemon.",
        (
            Argument(("method",), "the method's name", {"nargs": "?"}, "method"),
            Argument(("params",), "NAME=VALUE (JSON or a word), or one JSON object", {"nargs": "*"}),
            flag("--list", text="list the methods"),
        ),
        ("punch call task.get task=3", "punch call daemon.status", "punch call --list"),
    ),
    Command(
        "import",
        "files",
        "Add the tasks of a file in one step.",
        (
            Argument(("file",), "file, folder, or - for standard input", _FILE, "file"),
            choice("--format", text="how to read it (detected)", choices=FORMATS),
            flag("--replace", text="make the list be these tasks (unfinished others stay)"),
            flag("--dry-run", text="only show what would be added"),
        ),
        (
            "punch import plan.md",
            "punch import ~/.claude/tasks/SESSION",
            "punch import - < todos.json",
        ),
    ),
    Command(
        "export",
        "files",
        "Write the list, or its events, to a file.",
        (
            Argument(
                ("file",), "file, or - for standard output", {"metavar": "FILE", "nargs": "?", "default": "-"}, "file"
            ),
            choice("--format", text="json, markdown, or jsonl for events", choices=("json", "markdown", "jsonl")),
            flag("--force", text="replace a file that is there"),
        ),
        ("punch export plan.md", "punch export --format jsonl > events.jsonl"),
    ),
    Command(
        "rpc",
        "rpc",
        "Pipe bytes between standard input and output and the daemon: editors, ssh.",
        (Argument(("--stdio",), "over standard input and output", {"action": "store_true", "required": True}),),
        ("ssh host punch rpc --stdio",),
    ),
    Command(
        "service",
        "service",
        "Have systemd's user manager start and watch the daemon.",
        (
            choice("action", text="install, status or uninstall", choices=("install", "status", "uninstall")),
            flag("--now", text="start, or stop, it at once"),
            flag("--hardened", text="install: hide everything from the daemon but its own data"),
            flag("--print", text="install: print the units, change nothing"),
        ),
        ("punch service install --now", "punch service install --print", "punch service status"),
    ),
)
