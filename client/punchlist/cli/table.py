"""Every command as data: what the parser, the help, the completions and the dispatch are made from."""

from typing import Any, NamedTuple

from punchlist.cli.duration import milliseconds, positive
from punchlist.cli.formats.detect import FORMATS
from punchlist_schemas.things import PRIORITIES, STATUSES


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


def _flag(*flags: str, text: str) -> Argument:
    return Argument(flags, text, {"action": "store_true"})


def _value(*flags: str, text: str, metavar: str = "TEXT", **options: Any) -> Argument:
    return Argument(flags, text, {"metavar": metavar, **options})


def _choice(*flags: str, text: str, choices: tuple[str, ...], **options: Any) -> Argument:
    return Argument(flags, text, {"choices": choices, **options}, "choices")


_TASK = Argument(("task",), "the task: 3 or #3", {"metavar": "ID"})
_TASKS = Argument(("tasks",), "one or more tasks: 3 or #3", {"metavar": "ID", "nargs": "+"})
_YES = _flag("-y", "--yes", text="do not ask")
_FILE: dict[str, Any] = {"metavar": "FILE"}

COMMON = (
    _value("-c", "--conversation", text="the list (PUNCHLIST_CONVERSATION, else: default)", metavar="ID"),
    _flag("--json", text="print JSON for programs"),
    _value("--actor", text="who does this, as recorded in the log; for undo: whose calls", metavar="NAME"),
    Argument(("--socket",), "the daemon's socket (PUNCHLIST_SOCKET)", {"metavar": "PATH"}, "file"),
    Argument(("--data-dir",), "the data directory (PUNCHLIST_DATA_DIR)", {"metavar": "PATH"}, "file"),
    _flag("--no-autostart", text="fail instead of starting a daemon (PUNCHLIST_AUTOSTART=0)"),
)
"""What every command accepts, before or after its name."""

_MEMBERS = (
    _value("-d", "--description", text="longer text"),
    _choice("-p", "--priority", text="how urgent it is", choices=PRIORITIES),
    _value("-o", "--owner", text="who does it", metavar="NAME"),
    _value("--active-form", text='what to show while it is in progress: "Writing the lexer"'),
    _value("--parent", text="the task it is a part of", metavar="ID"),
    _value("--meta", text="metadata, repeatable; the value is JSON or a word", metavar="KEY=VALUE", action="append"),
)
_PLACES = (
    _value("--before", text="in front of this task", metavar="ID"),
    _value("--after", text="behind this task", metavar="ID"),
)
_OWNER = _value("-o", "--owner", text="who takes it (PUNCHLIST_OWNER, else: the user)", metavar="NAME")
_CLAIMS = (
    _OWNER,
    _value("--lease", text="for how long, at most 24h (1h)", metavar="TIME", type=milliseconds),
    _value("--wait", text="wait so long for one: 30s, 10m", metavar="TIME", type=milliseconds),
)

_HOSTS = ("claude-code", "codex", "cursor", "vscode", "gemini")

COMMANDS = (
    Command(
        "add",
        "tasks",
        "Add a task.",
        (
            Argument(("title",), "what is to be done", {"nargs": "+"}),
            *_MEMBERS,
            _value("-b", "--blocked-by", text="tasks to be done before it", metavar="ID", action="append"),
            _value("--blocks", text="tasks that wait for it", metavar="ID", action="append"),
            _choice("--status", text="its status (pending)", choices=STATUSES),
            *_PLACES,
        ),
        ("punch add Write the lexer", 'punch add "Ship it" --priority high --blocked-by 1 --blocked-by 2'),
    ),
    Command(
        "list",
        "reading",
        "Show the list.",
        (
            _flag("-a", "--all", text="also old finished tasks of a long list"),
            _choice("-s", "--status", text="only this status, repeatable", choices=STATUSES, action="append"),
            _value("-o", "--owner", text="only tasks of this owner", metavar="NAME"),
            _flag("--ready", text="only tasks that could be started now"),
            _value("-n", "--limit", text="at most so many", metavar="N", type=int),
            _value("--at", text="as it was right after this version", metavar="VERSION", type=int),
        ),
        ("punch list", "punch list --ready", "punch list --at 12", "punch list -c website --json"),
        ("ls",),
    ),
    Command("show", "reading", "Show everything about a task.", (_TASK,), ("punch show 3",)),
    Command(
        "edit",
        "tasks",
        "Change members of a task; an empty value clears.",
        (
            _TASK,
            _value("-t", "--title", text="what is to be done"),
            *_MEMBERS,
            _value("-b", "--blocked-by", text="wait for this task too", metavar="ID", action="append"),
            _value("--unblock-from", text="no longer wait for this task", metavar="ID", action="append"),
        ),
        ('punch edit 3 --title "Write the parser" --owner ""', "punch edit 3 --blocked-by 2 --meta pr=117"),
    ),
    Command("start", "status", "Begin tasks.", (_TASKS,), ("punch start 3",)),
    Command(
        "done",
        "status",
        "Complete tasks.",
        (_TASKS, _value("-r", "--result", text="what came out of it")),
        ("punch done 1 2 3", 'punch done 3 --result "in docs/copy.md"'),
    ),
    Command(
        "fail",
        "status",
        "Give tasks up as failed.",
        (_TASKS, _value("-r", "--reason", text="why it failed")),
        ('punch fail 3 --reason "no credentials"',),
    ),
    Command("pause", "status", "Put tasks aside.", (_TASKS,), ("punch pause 3",)),
    Command("resume", "status", "Go on with paused tasks.", (_TASKS,), ("punch resume 3",)),
    Command("reopen", "status", "Make tasks pending again.", (_TASKS,), ("punch reopen 3",)),
    Command(
        "move",
        "tasks",
        "Change a task's place in the list.",
        (_TASK, *_PLACES, _flag("--to-end", text="to the end")),
        ("punch move 5 --before 2", "punch move 5 --to-end"),
    ),
    Command(
        "rm", "tasks", "Delete tasks (undo brings them back).", (_TASKS, _YES), ("punch rm 3", "punch rm 4 5 --yes")
    ),
    Command("clear", "tasks", "Remove all tasks; numbering restarts at 1.", (_YES,), ("punch clear --yes",)),
    Command(
        "undo",
        "tasks",
        "Take back the last calls; nothing is erased from the log.",
        (
            _value("-n", "--count", text="how many calls (1; with --actor all of theirs)", metavar="N", type=int),
            _flag("--preview", text="only tell what would happen"),
        ),
        ("punch undo --preview", "punch undo -n 3", "punch undo --actor claude"),
    ),
    Command(
        "log",
        "history",
        "Show what happened.",
        (
            _flag("-f", "--follow", text="go on with what happens from now"),
            _value("-n", "--limit", text="only the last N events", metavar="N", type=int),
            _flag("--all-conversations", text="of all lists"),
        ),
        ("punch log -n 20", "punch log --follow --all-conversations"),
    ),
    Command(
        "watch",
        "live",
        "Show the list live; in a pipe print each event as a line of JSON.",
        (_flag("--all-conversations", text="events of all lists (in a pipe)"),),
        ("punch watch", "punch watch -c website | jq .event.type"),
    ),
    Command(
        "claim",
        "claim",
        "Take the next ready task, or named ones; nobody else gets them.",
        (
            Argument(("tasks",), "these tasks: 3 or #3", {"metavar": "ID", "nargs": "*"}),
            *_CLAIMS,
            _value("-n", "--count", text="up to so many of the next ready ones", metavar="N", type=int),
        ),
        ("punch claim --owner ann", "punch claim 3 --lease 2h", "punch claim --wait 10m"),
    ),
    Command(
        "release",
        "claim",
        "Give claimed tasks back.",
        (_TASKS, _OWNER, _value("--fence", text="only if the claim has this number", metavar="N", type=int)),
        ("punch release 3 --owner ann",),
    ),
    Command(
        "next",
        "claim",
        "Complete what you have in progress, and take the next task.",
        (
            *_CLAIMS,
            _value("--done", text="which one is completed, if you have several", metavar="ID"),
            _value("-r", "--result", text="what came out of it"),
        ),
        ('punch next --owner ann --result "in docs/copy.md"',),
    ),
    Command("why", "why", "Tell why a task is not ready, as a short tree.", (_TASK,), ("punch why 3",)),
    Command(
        "run",
        "run",
        "Run a command for each task: one after the other, or several at a time.",
        (
            Argument(
                ("argv",),
                "the command; {title}, {description} and {id} are filled in, the task is JSON on its standard input",
                {"metavar": "COMMAND", "nargs": "+"},
                "command",
            ),
            _value("-j", "--jobs", text="so many at a time (1)", metavar="N", type=positive, default=1),
            _flag("-k", "--keep-going", text="go on after a failure, also where the list stops"),
            _value("--timeout", text="stop a command after so long: 90s, 10m", metavar="TIME", type=milliseconds),
            _flag("-f", "--follow", text="wait for new tasks"),
            _OWNER,
            Argument(("--log-dir",), "where the output of each task is kept", {"metavar": "DIR"}, "file"),
        ),
        (
            "punch run -- make {title}",
            "punch run --timeout 10m -- claude -p {description}",
            "punch run -j 4 -- ./do.sh",
        ),
    ),
    Command(
        "wait",
        "live",
        "Wait until tasks, or all tasks, are finished.",
        (
            Argument(("tasks",), "wait for these alone", {"metavar": "ID", "nargs": "*"}),
            _flag("--any-change", text="wait for whatever happens next"),
            _value("--timeout", text="give up after so long: 90s, 10m", metavar="TIME", type=milliseconds),
        ),
        ("punch wait 3 && make deploy", "punch wait --timeout 10m"),
    ),
    Command(
        "conversations",
        "reading",
        "Show all lists, newest first.",
        (
            _value("-q", "--query", text="only those whose id or title holds this"),
            _flag("--active", text="only those with unfinished tasks"),
            _value("-n", "--limit", text="at most so many (100)", metavar="N", type=int),
        ),
        ("punch conversations --active",),
    ),
    Command(
        "status",
        "reading",
        "Show how the daemon is.",
        (_flag("--line", text="one line for shell prompts, from the status file"),),
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
        (Argument(("file",), "a log or backup nobody has open (the log in use)", {**_FILE, "nargs": "?"}, "file"),),
        ("punch verify", "punch verify /media/stick/punchlist.db"),
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
            _flag("--list", text="list the methods"),
        ),
        ("punch call task.get task=3", "punch call daemon.status", "punch call --list"),
    ),
    Command(
        "import",
        "files",
        "Add the tasks of a file in one step.",
        (
            Argument(("file",), "file, folder, or - for standard input", _FILE, "file"),
            _choice("--format", text="how to read it (detected)", choices=FORMATS),
            _flag("--replace", text="make the list be these tasks (unfinished others stay)"),
            _flag("--dry-run", text="only show what would be added"),
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
            _choice("--format", text="json, markdown, or jsonl for events", choices=("json", "markdown", "jsonl")),
            _flag("--force", text="replace a file that is there"),
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
            _choice("action", text="install, status or uninstall", choices=("install", "status", "uninstall")),
            _flag("--now", text="start, or stop, it at once"),
            _flag("--hardened", text="install: hide everything from the daemon but its own data"),
            _flag("--print", text="install: print the units, change nothing"),
        ),
        ("punch service install --now", "punch service install --print", "punch service status"),
    ),
    Command(
        "tools",
        "tools",
        "Print what a model needs to work on a list: tool definitions and prompts.",
        (
            Argument(("dialect",), "native, claude, checklist, queue or todo", {"metavar": "DIALECT", "nargs": "?"}),
            _choice(
                "--format",
                text="for which API (mcp)",
                choices=("mcp", "openai", "responses", "anthropic", "python"),
                default="mcp",
            ),
            _flag("--prompt", text="the section for the model's prompt instead"),
        ),
        ("punch tools", "punch tools native --format anthropic", "punch tools queue --prompt"),
    ),
    Command(
        "mcp",
        "mcp",
        "Serve the tools to an agent's host over the Model Context Protocol.",
        (
            _value("--dialect", text="which tools, repeatable (native)", metavar="DIALECT", action="append"),
            _value("--user", text="only this user's lists", metavar="NAME"),
            _flag("--http", text="over HTTP on this machine instead of standard input and output"),
            _value("--port", text="for --http: the port (8321)", metavar="PORT", type=int, default=8321),
            Argument(
                ("--token-file",), "for --http: where the token is (made if missing)", {"metavar": "FILE"}, "file"
            ),
        ),
        ("punch mcp --dialect claude -c website", "punch mcp --http --port 8321"),
    ),
    Command(
        "completion",
        "shells",
        "Print the completion script of a shell.",
        (_choice("shell", text="bash, zsh or fish", choices=("bash", "zsh", "fish")),),
        ("punch completion bash > ~/.local/share/bash-completion/completions/punch",),
    ),
    Command(
        "demo",
        "demo",
        "Watch a recorded session with a private daemon, and a kill -9 in the middle.",
        (_flag("--fast", text="plain output, in seconds"),),
        ("punch demo", "punch demo --fast"),
    ),
    Command(
        "attach",
        "attach",
        "Let the id of a host's session or thread find this list.",
        (Argument(("session",), "the outside id", {"metavar": "SESSION"}),),
        ("punch attach 7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66 -c website",),
    ),
    Command(
        "detach",
        "attach",
        "Undo an attach.",
        (Argument(("session",), "the outside id", {"metavar": "SESSION"}),),
        ("punch detach 7f3c2d10-5a41-4a7e-9f57-0c2f4e7d1b66",),
    ),
    Command(
        "init",
        "init",
        "Write the project file .punchlist.toml, which names this directory's list.",
        (Argument(("name",), "the list (a fresh one)", {"metavar": "NAME", "nargs": "?"}),),
        ("punch init", "punch init website"),
    ),
    Command(
        "prime",
        "prime",
        "Print open tasks and what changed since a session last looked, for its model's context.",
        (
            _value("--session", text="whose looks are remembered; an attached one's list is taken", metavar="ID"),
            _flag("--hook", text="read a hook's event from standard input, never fail"),
        ),
        ("punch prime", "punch prime --session 7f3c2d10"),
    ),
    Command(
        "setup",
        "setup",
        "Tell an agent's host of punchlist: its MCP server, and for Claude Code hooks.",
        (
            _choice("host", text="which host", choices=_HOSTS),
            _choice("--scope", text="this user, or this directory", choices=("user", "project"), default="user"),
            _flag("--print", text="only show the difference"),
            _flag("--remove", text="take it back"),
        ),
        ("punch setup claude-code", "punch setup vscode --scope project", "punch setup codex --remove"),
    ),
    Command(
        "mirror",
        "mirror",
        "Keep lists as JSON files, both ways, for programs that know nothing else.",
        (
            _choice("action", text="add, list, remove or run", choices=("add", "list", "remove", "run")),
            Argument(("directory",), "where the files are", {"metavar": "DIRECTORY", "nargs": "?"}, "file"),
            _flag("--all", text="all lists there are and will be"),
            _choice("--format", text="one file for each list, or one for each task", choices=("checklist", "claude")),
        ),
        ("punch mirror add . -c website", "punch mirror add ~/tasks --all", "punch mirror run", "punch mirror list"),
    ),
)
