"""All commands by name, grouped and ordered as in `punch --help`. The modules of the commands declare their arguments.

The name of a command in a group has two words, such as `daemon stop`. `list` is both a command and a group.
"""

from importlib import import_module
from typing import NamedTuple

from punchlist_apps.cli.parsing.arguments import Usage


class Entry(NamedTuple):
    """A command. `punchlist_apps.cli.commands.MODULE` contains its entry in `COMMANDS` and its function `run_WORD`.

    Attributes:
        aliases: Other names of the command.
        former: Names in the previous version, which still work but print a hint.
    """

    name: str
    module: str
    summary: str
    aliases: tuple[str, ...] = ()
    former: tuple[str, ...] = ()

    @property
    def word(self) -> str:
        return self.name.rpartition(" ")[2]

    @property
    def usage(self) -> Usage:
        """The arguments and examples of the command. Loads its module."""
        usage: Usage = import_module(f"punchlist_apps.cli.commands.{self.module}").COMMANDS[self.word]
        return usage


SECTIONS = {
    "every day": (
        Entry("add", "tasks", "Add a task"),
        Entry("list", "show", "Show the list", ("ls",)),
        Entry("find", "find", "Find tasks by words, in this list or in all"),
        Entry("next", "next", "Show the next task; --take takes it, --done and --result complete yours first"),
        Entry("start", "status", "Start tasks and claim them"),
        Entry("done", "status", "Complete tasks"),
        Entry("log", "log", "Show what happened"),
        Entry("who", "who", "Show connected agents and people, and their tasks"),
        Entry("undo", "undo", "Undo your newest call, or any other one; the log keeps all events"),
    ),
    "tasks": (
        Entry("show", "show", "Show everything about a task"),
        Entry("why", "why", "Show why a task is not ready"),
        Entry("edit", "tasks", "Change a task; an empty value clears a field"),
        Entry("assign", "tasks", "Reserve tasks for an agent or a person"),
        Entry("note", "tasks", "Add a note to a task; notes are never overwritten"),
        Entry("move", "tasks", "Move a task in the list"),
        Entry("fail", "status", "Mark tasks as failed"),
        Entry("pause", "status", "Pause tasks"),
        Entry("resume", "status", "Resume paused tasks"),
        Entry("reopen", "status", "Make tasks pending again"),
        Entry("rm", "tasks", "Delete tasks (undo brings them back)"),
    ),
    "the past": (
        Entry("redo", "undo", "Redo undone changes"),
        Entry("revert", "undo", "Restore the list as it was at a version or a time, with new events"),
    ),
    "live": (
        Entry("ui", "ui", "Show and edit all lists live, on the full screen"),
        Entry("chat", "chat", "Change the list with plain sentences; answers are checked against the log"),
        Entry("watch", "watch", "Show the list live; in a pipe print each event as a line of JSON"),
        Entry("web", "web", "Serve all lists to browsers and scripts on this machine, live"),
        Entry("wait", "watch", "Wait until tasks, or all tasks, are finished"),
    ),
    "programs": (
        Entry("run", "run", "Run a command for each task, one by one or several at a time"),
        Entry("approve", "gates", "Approve or reject tasks that wait for a person's yes"),
        Entry("gate", "gates", "Run a command that approves or rejects tasks that wait for a check"),
        Entry("confirm", "confirm", "Confirm a tool's question: show the change, then apply it"),
    ),
    "several machines": (
        Entry("share", "space", "Share a list with other machines, in a space"),
        Entry("join", "space", "Follow a list that another machine shares"),
        Entry("leave", "space", "Stop following a shared list"),
    ),
    "files and settings": (
        Entry("init", "init", "Write the project file .punchlist.toml, which names this directory's list"),
        Entry("import", "import_files", "Add the tasks of a file in one step"),
        Entry("export", "export", "Write the list, or its events, to a file"),
        Entry("mirror", "mirror", "Mirror lists to files and back, for programs that use only files"),
        Entry(
            *("setup", "setup", "Add punchlist to an agent's host: the MCP server, and hooks for Claude Code"),
            aliases=("agent setup",),
        ),
        Entry("doctor", "doctor", "Check the installation and advise on problems"),
        Entry("completion", "completion", "Print the completion script of a shell"),
        Entry("shell", "shell", "Print completion, prompt and aliases for eval in a shell's start file"),
    ),
}
"""Title of a section → its commands."""

GROUPS = {
    "list": (
        "all lists, or this one as a whole",
        (
            Entry("list all", "show", "Show all lists, newest first", ("lists",), ("conversations",)),
            Entry("list set", "settings", "Show the settings of the list, or change some of them", ("set",)),
            Entry("list clear", "tasks", "Remove all tasks; numbering restarts at 1", (), ("clear",)),
            Entry("list rm", "lists", "Erase a list and its history permanently"),
        ),
    ),
    "queue": (
        "how workers claim tasks",
        (
            Entry(
                *("queue claim", "claim", "Claim the next ready task, or the named ones"),
                former=("claim",),
            ),
            Entry("queue renew", "claim", "Renew claims"),
            Entry("queue release", "claim", "Release claimed tasks", (), ("release",)),
        ),
    ),
    "space": (
        "where machines share lists",
        (
            Entry("space add", "space", "Add a space, after testing its servers"),
            Entry("space list", "space", "List the spaces and their shared lists"),
            Entry("space status", "space", "Show the spaces in detail"),
            Entry("space remove", "space", "Remove a space without shared lists"),
            Entry("space repair", "space_repair", "Remove posts that no machine can follow, as a keeper of the space"),
            Entry("space server", "space", "Write the configuration of a space's server, and creds for its members"),
        ),
    ),
    "agent": (
        "commands for agents and their hosts",
        (
            Entry(
                *("agent mcp", "mcp", "Serve the tools to an agent's host over the Model Context Protocol"),
                former=("mcp",),
            ),
            Entry(
                *("agent tools", "tools", "Print tool definitions and prompts for models"),
                former=("tools",),
            ),
            Entry(
                *("agent prime", "prime"),
                "Print open tasks and a session's unseen changes, for the context of its model",
                former=("prime",),
            ),
            Entry(
                "agent statusline", "statusline", "Print one line about a session's list, for Claude Code's status line"
            ),
            Entry("agent attach", "attach", "Attach a host's session or thread to this list", (), ("attach",)),
            Entry("agent detach", "attach", "Detach a host's session or thread", (), ("detach",)),
        ),
    ),
    "daemon": (
        "the daemon and its data",
        (
            Entry("daemon status", "show", "Show daemon status", (), ("status",)),
            Entry("daemon start", "stop", "Start the daemon if none runs, even after punch daemon stop"),
            Entry(
                "daemon stop",
                "stop",
                "Stop the daemon after its accepted calls; the next command starts it again",
                ("stop",),
            ),
            Entry(
                *("daemon service", "service", "Let systemd, or launchd on macOS, start and supervise the daemon"),
                former=("service",),
            ),
            Entry(
                *("daemon backup", "backup", "Copy the log while it is in use, and check the copy"),
                former=("backup",),
            ),
            Entry(
                *("daemon verify", "backup"),
                "Check the log or a backup for damage (exit code 1 and the position if there is any)",
                former=("verify",),
            ),
            Entry(
                *(
                    "daemon restore",
                    "backup",
                    "Replace the log with a backup; keeps the old log and restarts the daemon",
                ),
                former=("restore",),
            ),
            Entry("daemon call", "call", "Call any method of the daemon", (), ("call",)),
            Entry(
                *("daemon rpc", "rpc", "Connect standard input and output to the daemon, for editors and ssh"),
                former=("rpc",),
            ),
        ),
    ),
}
"""First word of a group's commands → the group's subject and commands."""


COMMANDS = {
    entry.name: entry
    for entries in (*SECTIONS.values(), *(entries for _, entries in GROUPS.values()))
    for entry in entries
}
ALIASES = {alias: entry.name for entry in COMMANDS.values() for alias in entry.aliases}
FORMER = {former: entry.name for entry in COMMANDS.values() for former in entry.former}

OWN_PROCESS = frozenset({"agent mcp", "chat", "daemon rpc", "gate", "mirror", "run", "ui", "watch", "web"})
"""Commands that no worker of the warm process runs.

They own the terminal, serve a client, or run the user's programs.
"""

REPEATABLE = frozenset(
    (
        *(
            "add",
            "agent attach",
            "agent detach",
            "agent prime",
            "agent statusline",
            "assign",
            "complete",
            "daemon status",
            "done",
            "edit",
        ),
        *("export", "fail", "find", "list", "list all", "log", "move", "next", "note", "pause"),
        *("queue release", "queue renew", "redo", "reopen", "resume", "rm", "show", "start", "undo", "who", "why"),
    )
)
"""Commands that only make short calls and print. A worker can run another command after them."""

WAITING_OPTIONS = ("follow", "wait")
"""Options with which a command of `REPEATABLE` takes long."""

SUGGESTIONS = {
    **dict.fromkeys(("create", "new", "insert", "plan"), "add"),
    **dict.fromkeys(("delete", "remove", "del", "drop"), "rm"),
    **dict.fromkeys(("complete", "finish", "close", "check", "tick", "resolve"), "done"),
    **dict.fromkeys(("begin", "take", "work"), "start"),
    **dict.fromkeys(("update", "modify", "rename", "change", "label", "priority", "block"), "edit"),
    "tag": "edit ID --label",
    "depend": "edit ID --blocked-by",
    "defer": "edit ID --after-date",
    "due": "list --due",
    **dict.fromkeys(("comment", "annotate", "append"), "note"),
    **dict.fromkeys(("tasks", "todo", "todos", "print", "cat"), "list"),
    "ready": "list --ready",
    **dict.fromkeys(("search", "grep", "filter"), "find"),
    **dict.fromkeys(("projects", "conversation"), "list all"),
    **dict.fromkeys(("config", "settings", "configure"), "list set"),
    **dict.fromkeys(("history", "events", "timeline"), "log"),
    **dict.fromkeys(("info", "get", "view", "describe", "detail"), "show"),
    **dict.fromkeys(("rollback", "checkout", "reset"), "revert"),
    **dict.fromkeys(("agents", "sessions", "whoami", "ps"), "who"),
    **dict.fromkeys(("cancel", "abandon"), "fail"),
    **dict.fromkeys(("unstart", "unblock", "unclaim"), "queue release"),
    **dict.fromkeys(("renew", "extend", "heartbeat"), "queue renew"),
    **dict.fromkeys(("tui", "board", "top", "kanban"), "ui"),
    **dict.fromkeys(("shutdown", "kill", "quit", "exit"), "daemon stop"),
    **dict.fromkeys(("systemd",), "daemon service"),
    **dict.fromkeys(("version",), "--version"),
    **dict.fromkeys(("install", "login"), "setup"),
    **dict.fromkeys(("follow", "live", "tail"), "watch"),
    **dict.fromkeys(("sync",), "mirror"),
    **dict.fromkeys(("load", "restore-list"), "import"),
    **dict.fromkeys(("dump", "save"), "export"),
    **dict.fromkeys(("check-install", "health"), "doctor"),
}
"""Command name from another program → the command to suggest instead."""
