"""All commands by name, in the groups and the order of `punch --help`. What each accepts stands in its own module."""

from importlib import import_module

from punchlist.cli.arguments import Usage


class Entry:
    """One command; `punchlist.cli.commands.MODULE` holds its row of `COMMANDS` and its function `run_NAME`."""

    __slots__ = ("aliases", "module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str, aliases: tuple[str, ...] = ()) -> None:
        self.name = name
        self.module = module
        self.summary = summary
        self.aliases = aliases

    @property
    def usage(self) -> Usage:
        """Its arguments and examples: loads its module."""
        usage: Usage = import_module(f"punchlist.cli.commands.{self.module}").COMMANDS[self.name]
        return usage


GROUPS = {
    "tasks": (
        Entry("add", "tasks", "Add a task."),
        Entry("list", "show", "Show the list.", ("ls",)),
        Entry("find", "find", "Find tasks by their words, in this list or in all."),
        Entry("show", "show", "Show everything about a task."),
        Entry("edit", "tasks", "Change a task; an empty value clears a field."),
        Entry("note", "tasks", "Add a note to a task; it is never overwritten."),
        Entry("start", "status", "Begin tasks."),
        Entry("done", "status", "Complete tasks."),
        Entry("fail", "status", "Mark tasks as failed."),
        Entry("pause", "status", "Pause tasks."),
        Entry("resume", "status", "Resume paused tasks."),
        Entry("reopen", "status", "Make tasks pending again."),
        Entry("move", "tasks", "Change a task's place in the list."),
        Entry("rm", "tasks", "Delete tasks (undo brings them back)."),
        Entry("clear", "tasks", "Remove all tasks; numbering restarts at 1."),
        Entry("why", "why", "Tell why a task is not ready, as a short tree."),
    ),
    "working through a list": (
        Entry(
            *("next", "claim"),
            "Show what you have in progress, or take the next task; with --done or --result first complete it.",
        ),
        Entry("claim", "claim", "Take the next ready task, or named ones; nobody else gets them."),
        Entry("release", "claim", "Give claimed tasks back."),
        Entry("run", "run", "Run a command for each task: one after the other, or several at a time."),
        Entry("approve", "gates", "Say yes or no to tasks that need it before they count as completed."),
        Entry("gate", "gates", "Run a check for each task that needs it before it counts as completed."),
        Entry("wait", "watch", "Wait until tasks, or all tasks, are finished."),
        Entry("confirm", "confirm", "Answer a tool's question with yes: show what its token would do, and do it."),
    ),
    "what happens and happened": (
        Entry("ui", "ui", "Show all lists on a full screen, live, and work on them by keys."),
        Entry("chat", "chat", "Talk to the list; what was done is proved by the log."),
        Entry("watch", "watch", "Show the list live; in a pipe print each event as a line of JSON."),
        Entry("web", "web", "Serve all lists to browsers and scripts on this machine, live."),
        Entry("log", "log", "Show what happened."),
        Entry("undo", "tasks", "Take back the last calls; nothing is erased from the log."),
    ),
    "lists": (
        Entry("conversations", "show", "Show all lists, newest first."),
        Entry("set", "settings", "Show the settings of the list, or change some of them."),
        Entry("init", "init", "Write the project file .punchlist.toml, which names this directory's list."),
        Entry("import", "import_export", "Add the tasks of a file in one step."),
        Entry("export", "import_export", "Write the list, or its events, to a file."),
        Entry("mirror", "mirror", "Keep lists as JSON files, both ways, for programs that know nothing else."),
    ),
    "agents": (
        Entry("setup", "setup", "Add punchlist to an agent's host: its MCP server, and for Claude Code hooks."),
        Entry("mcp", "mcp", "Serve the tools to an agent's host over the Model Context Protocol."),
        Entry("tools", "tools", "Print what a model needs to work on a list: tool definitions and prompts."),
        Entry(
            *("prime", "prime"),
            "Print open tasks and what changed since a session last looked, for its model's context.",
        ),
        Entry("attach", "attach", "Attach a host's session or thread to this list."),
        Entry("detach", "attach", "Undo an attach."),
    ),
    "daemon and data": (
        Entry("status", "show", "Show daemon status."),
        Entry("doctor", "doctor", "Check the installation and say what to change."),
        Entry("service", "service", "Let systemd's user manager start and supervise the daemon."),
        Entry("backup", "backup", "Copy the log while it is in use, and check the copy."),
        Entry(
            *("verify", "backup"),
            "Check the log, or a backup, for damage: exit code 1 and the position if there is any.",
        ),
        Entry("restore", "backup", "Put a backup in place of a lost log, while no daemon runs."),
        Entry("call", "call", "Call any method of the daemon."),
        Entry("rpc", "rpc", "Pipe bytes between standard input and output and the daemon: editors, ssh."),
        Entry("completion", "completion", "Print the completion script of a shell."),
    ),
}
"""Title of the group → its commands."""

COMMANDS = {entry.name: entry for group in GROUPS.values() for entry in group}
ALIASES = {alias: entry.name for entry in COMMANDS.values() for alias in entry.aliases}

MEANT = {
    **dict.fromkeys(("create", "new"), "add"),
    **dict.fromkeys(("delete", "remove", "del"), "rm"),
    **dict.fromkeys(("complete", "finish", "close"), "done"),
    **dict.fromkeys(("begin",), "start"),
    **dict.fromkeys(("update", "modify", "rename", "tag"), "edit"),
    **dict.fromkeys(("tasks", "todo", "ready"), "list"),
    **dict.fromkeys(("lists", "projects"), "conversations"),
    **dict.fromkeys(("config", "settings"), "set"),
    **dict.fromkeys(("history", "events"), "log"),
    **dict.fromkeys(("info", "get", "view"), "show"),
    **dict.fromkeys(("revert", "rollback"), "undo"),
    **dict.fromkeys(("tui", "board", "top"), "ui"),
}
"""Words of other programs → the command that does this here: named when somebody types one."""
