"""The commands that read and change a list, and those that work through it."""

from punchlist.cli.duration import lease, milliseconds, positive, whole
from punchlist.cli.table.shape import Argument, Command, choice, flag, value
from punchlist_schemas.things import PRIORITIES, STATUSES

_TASK = Argument(("task",), "the task: 3 or #3", {"metavar": "ID"})
_TASKS = Argument(("tasks",), "one or more tasks: 3 or #3", {"metavar": "ID", "nargs": "+"})
_FORCE = flag("--force", text="also what somebody else has claimed")
_YES = flag("-y", "--yes", text="do not ask")
_MEMBERS = (
    value("-d", "--description", text="longer text"),
    choice("-p", "--priority", text="how urgent it is", choices=PRIORITIES),
    value("-o", "--owner", text="who does it", metavar="NAME"),
    value("--active-form", text='what to show while it is in progress: "Writing the lexer"'),
    value("--parent", text="the task it is a part of", metavar="ID"),
    value("--meta", text="metadata, repeatable; the value is JSON or a word", metavar="KEY=VALUE", action="append"),
)
_PLACES = (
    value("--before", text="in front of this task", metavar="ID"),
    value("--after", text="behind this task", metavar="ID"),
)
_HOLDER = value("-o", "--owner", text="who has it (PUNCHLIST_OWNER, else: the user)", metavar="NAME")
_OWNER = value("-o", "--owner", text="who takes it (PUNCHLIST_OWNER, else: the user)", metavar="NAME")
_CLAIMS = (
    _OWNER,
    value("--lease", text="for how long, at most 24h (1h)", metavar="TIME", type=lease),
    value("--wait", text="wait so long for one: 30s, 10m", metavar="TIME", type=milliseconds),
)

COMMANDS = (
    Command(
        "add",
        "tasks",
        "Add a task.",
        (
            Argument(("title",), "what is to be done", {"nargs": "+"}),
            *_MEMBERS,
            value("-b", "--blocked-by", text="tasks to be done before it", metavar="ID", action="append"),
            value("--blocks", text="tasks that wait for it", metavar="ID", action="append"),
            choice("--status", text="its status (pending)", choices=STATUSES),
            *_PLACES,
        ),
        ("punch add Write the lexer", 'punch add "Ship it" --priority high --blocked-by 1 --blocked-by 2'),
    ),
    Command(
        "list",
        "reading",
        "Show the list.",
        (
            flag("-a", "--all", text="also old finished tasks of a long list"),
            choice("-s", "--status", text="only this status, repeatable", choices=STATUSES, action="append"),
            value("-o", "--owner", text="only tasks of this owner", metavar="NAME"),
            flag("--ready", text="only tasks that could be started now"),
            value("-n", "--limit", text="at most so many", metavar="N", type=positive),
            value("--at", text="as it was right after this version", metavar="VERSION", type=whole),
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
            value("-t", "--title", text="what is to be done"),
            *_MEMBERS,
            value("-b", "--blocked-by", text="wait for this task too", metavar="ID", action="append"),
            value("--unblock-from", text="no longer wait for this task", metavar="ID", action="append"),
        ),
        ('punch edit 3 --title "Write the parser" --owner ""', "punch edit 3 --blocked-by 2 --meta pr=117"),
    ),
    Command("start", "status", "Begin tasks.", (_TASKS,), ("punch start 3",)),
    Command(
        "done",
        "status",
        "Complete tasks.",
        (_TASKS, value("-r", "--result", text="what came out of it"), _FORCE),
        ("punch done 1 2 3", 'punch done 3 --result "in docs/copy.md"'),
    ),
    Command(
        "fail",
        "status",
        "Give tasks up as failed.",
        (_TASKS, value("-r", "--reason", text="why it failed"), _FORCE),
        ('punch fail 3 --reason "no credentials"',),
    ),
    Command("pause", "status", "Put tasks aside.", (_TASKS,), ("punch pause 3",)),
    Command("resume", "status", "Go on with paused tasks.", (_TASKS,), ("punch resume 3",)),
    Command("reopen", "status", "Make tasks pending again.", (_TASKS,), ("punch reopen 3",)),
    Command(
        "move",
        "tasks",
        "Change a task's place in the list.",
        (_TASK, *_PLACES, flag("--to-end", text="to the end")),
        ("punch move 5 --before 2", "punch move 5 --to-end"),
    ),
    Command(
        "rm", "tasks", "Delete tasks (undo brings them back).", (_TASKS, _YES), ("punch rm 3", "punch rm 4 5 --yes")
    ),
    Command(
        "confirm",
        "confirm",
        "Answer a tool's question with yes: show what its token would do, and do it.",
        (Argument(("token",), "the token of the question", {"metavar": "TOKEN"}), _YES),
        ("punch confirm 4f0c…",),
    ),
    Command("clear", "tasks", "Remove all tasks; numbering restarts at 1.", (_YES,), ("punch clear --yes",)),
    Command(
        "undo",
        "tasks",
        "Take back the last calls; nothing is erased from the log.",
        (
            value("-n", "--count", text="how many calls (1; with --of all of theirs)", metavar="N", type=positive),
            value("--of", text="take back the calls of this actor alone", metavar="NAME"),
            flag("--preview", text="only tell what would happen"),
        ),
        ("punch undo --preview", "punch undo -n 3", "punch undo --of claude"),
    ),
    Command(
        "log",
        "history",
        "Show what happened.",
        (
            flag("-f", "--follow", text="go on with what happens from now"),
            value("-n", "--limit", text="only the last N events", metavar="N", type=whole),
            flag("--all-conversations", text="of all lists"),
        ),
        ("punch log -n 20", "punch log --follow --all-conversations"),
    ),
    Command(
        "watch",
        "live",
        "Show the list live; in a pipe print each event as a line of JSON.",
        (flag("--all-conversations", text="events of all lists (in a pipe)"),),
        ("punch watch", "punch watch -c website | jq .event.type"),
    ),
    Command(
        "claim",
        "claim",
        "Take the next ready task, or named ones; nobody else gets them.",
        (
            Argument(("tasks",), "these tasks: 3 or #3", {"metavar": "ID", "nargs": "*"}),
            *_CLAIMS,
            value("-n", "--count", text="up to so many of the next ready ones", metavar="N", type=positive),
        ),
        ("punch claim --owner ann", "punch claim 3 --lease 2h", "punch claim --wait 10m"),
    ),
    Command(
        "release",
        "claim",
        "Give claimed tasks back.",
        (_TASKS, _HOLDER, value("--fence", text="only if the claim has this number", metavar="N", type=whole)),
        ("punch release 3 --owner ann",),
    ),
    Command(
        "next",
        "claim",
        "Complete what you have in progress, and take the next task.",
        (
            *_CLAIMS,
            value("--done", text="which one is completed, if you have several", metavar="ID"),
            value("-r", "--result", text="what came out of it"),
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
                "the command; it reads the task as JSON from its standard input and its text from PUNCHLIST_TITLE and "
                "PUNCHLIST_DESCRIPTION; {title}, {description}, {prompt} (both) and {id} are filled into its words",
                {"metavar": "COMMAND", "nargs": "+"},
                "command",
            ),
            value(
                "-j", "--jobs", text="number of commands at a time (default: 1)", metavar="N", type=positive, default=1
            ),
            flag("-k", "--keep-going", text="go on after a failure, also where the list stops"),
            value("--timeout", text="stop a command after so long: 90s, 10m", metavar="TIME", type=milliseconds),
            flag("-f", "--follow", text="wait for new tasks"),
            value("-o", "--owner", text="who takes the tasks (PUNCHLIST_OWNER, else: punch-run-PID)", metavar="NAME"),
            Argument(("--log-dir",), "where the output of each task is kept", {"metavar": "DIR"}, "file"),
        ),
        (
            "punch run -- ./do.sh",
            'punch run --timeout 10m -- claude -p "Do the task that standard input describes"',
            "punch run -j 4 --follow -- ./do.sh",
        ),
    ),
    Command(
        "wait",
        "live",
        "Wait until tasks, or all tasks, are finished.",
        (
            Argument(("tasks",), "wait for these alone", {"metavar": "ID", "nargs": "*"}),
            flag("--any-change", text="wait for whatever happens next"),
            value("--timeout", text="give up after so long: 90s, 10m", metavar="TIME", type=milliseconds),
        ),
        ("punch wait 3 && make deploy", "punch wait --timeout 10m"),
    ),
)
