"""The compared programs: where each comes from, and how it does each operation."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from punchlist_compare import stores
from punchlist_compare.place import Place

OPERATIONS: tuple[str, ...] = ("add", "list", "done", "next")
"""Operations of the command line. `done` completes the task that `add` just made."""


@dataclass(frozen=True)
class Tool:
    """A call of an MCP tool; `{title}` and `{home}` in the arguments are replaced."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def fill(self, place: Place, title: str = "") -> tuple[str, dict[str, Any]]:
        text = json.dumps(self.arguments).replace("{title}", title).replace("{home}", str(place.home))
        return self.name, json.loads(text)


@dataclass(frozen=True)
class Peer:
    """A program.

    Attributes:
        registry: The registry that has the package: `debian`, `npm`, `pypi`, or `checkout` for punchlist itself.
        program: Path of its program in the directory that it is installed in.
        fill: Gives a place its tasks.
        commands: Operation → its words on the command line.
        created: Pattern of the new task's id in the output of `add`.
        mcp: Words that start the MCP server; None without one.
        mcp_program: Path of the server's program, if it isn't `program`.
        tools: `add`, `list` and `next` → the tool that does it.
        reasons: Operation or `mcp` → why the peer doesn't do it.
        note: A footnote to the tokens of a turn.
    """

    name: str
    registry: str
    package: str
    program: str
    fill: Callable[[Place], None]
    commands: Mapping[str, str] = field(default_factory=dict[str, str])
    created: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mcp: str | None = None
    mcp_program: str = ""
    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    note: str = ""


NO_COMMANDS: Mapping[str, str] = {operation: "no command line" for operation in OPERATIONS}
NO_SERVER: Mapping[str, str] = {"mcp": "no MCP server"}
NO_NEXT = "no command for the next task"
READS_LIST = "has no tool for the next task, so the agent reads the list"

PEERS = (
    Peer(
        "punchlist",
        "checkout",
        "punchlist",
        "bin/punch",
        stores.fill_punch,
        {"add": "add {title}", "list": "list", "done": "done {id}", "next": "next"},
        r"#(\d+)",
        mcp="agent mcp",
        tools={
            "add": Tool("plan", {"tasks": [{"title": "{title}"}]}),
            "list": Tool("tasks"),
            "next": Tool("next"),
        },
    ),
    Peer(
        "taskwarrior",
        "debian",
        "taskwarrior",
        "usr/bin/task",
        stores.fill_taskwarrior,
        {"add": "add {title}", "list": "list", "done": "{id} done", "next": "next limit:1"},
        r"Created task ([0-9a-f-]+)",
        {"TASKRC": "{home}/taskrc"},
        reasons=NO_SERVER,
    ),
    Peer(
        "todo.txt-cli",
        "debian",
        "todotxt-cli",
        "usr/bin/todo-txt",
        stores.fill_todo_txt,
        {
            "add": "-d {home}/config -p add {title}",
            "list": "-d {home}/config -p ls",
            "done": "-d {home}/config -p do {id}",
        },
        r"^(\d+)",
        reasons={**NO_SERVER, "next": NO_NEXT},
    ),
    Peer(
        "backlog.md",
        "npm",
        "backlog.md",
        "node_modules/.bin/backlog",
        stores.fill_backlog,
        {
            "add": "task create {title} --plain",
            "list": "task list --plain",
            "done": "task edit {id} --status Done --plain",
        },
        r"TASK-(\d+)",
        mcp="mcp start",
        tools={
            "add": Tool("task_create", {"title": "{title}"}),
            "list": Tool("task_list"),
            "next": Tool("task_list", {"status": "To Do", "limit": 1}),
        },
        reasons={"next": NO_NEXT},
        note="has no tool for the next task, so the agent lists one task",
    ),
    Peer(
        "task-master",
        "npm",
        "task-master-ai",
        "node_modules/.bin/task-master",
        stores.fill_task_master,
        {
            "add": "add-task --title={title} --description={title}",
            "list": "list",
            "done": "set-status --id={id} --status=done",
            "next": "next",
        },
        r"Task #?(\d+)",
        env={"TASK_MASTER_TOOLS": "standard"},
        mcp="",
        mcp_program="node_modules/.bin/task-master-ai",
        tools={
            "add": Tool("add_task", {"projectRoot": "{home}", "title": "{title}", "description": "{title}"}),
            "list": Tool("get_tasks", {"projectRoot": "{home}"}),
            "next": Tool("next_task", {"projectRoot": "{home}"}),
        },
    ),
    Peer(
        "beads",
        "pypi",
        "beads-mcp",
        "bin/beads-mcp",
        stores.fill_nothing,
        mcp="",
        reasons={key: "its program bd is in no package registry" for key in (*OPERATIONS, "tools")},
    ),
    Peer(
        "mcp-taskmanager",
        "npm",
        "@kazuph/mcp-taskmanager",
        "node_modules/.bin/mcp-taskmanager",
        stores.fill_mcp_taskmanager,
        env={"TASK_MANAGER_FILE_PATH": "{home}/tasks.json"},
        mcp="",
        tools={
            "add": Tool(
                "add_tasks_to_request",
                {"requestId": "req-1", "tasks": [{"title": "{title}", "description": "{title}"}]},
            ),
            "list": Tool("get_next_task", {"requestId": "req-1"}),
            "next": Tool("get_next_task", {"requestId": "req-1"}),
        },
        reasons=NO_COMMANDS,
    ),
    Peer(
        "shrimp",
        "npm",
        "mcp-shrimp-task-manager",
        "node_modules/.bin/mcp-shrimp-task-manager",
        stores.fill_shrimp,
        env={"DATA_DIR": "{home}/data", "ENABLE_GUI": "false", "TEMPLATES_USE": "en"},
        mcp="",
        tools={
            "add": Tool(
                "split_tasks",
                {
                    "updateMode": "append",
                    "tasksRaw": '[{"name": "{title}", "description": "{title}", "implementationGuide": "{title}"}]',
                },
            ),
            "list": Tool("list_tasks", {"status": "all"}),
            "next": Tool("list_tasks", {"status": "pending"}),
        },
        reasons=NO_COMMANDS,
        note=READS_LIST,
    ),
    Peer(
        "server-memory",
        "npm",
        "@modelcontextprotocol/server-memory",
        "node_modules/.bin/mcp-server-memory",
        stores.fill_server_memory,
        env={"MEMORY_FILE_PATH": "{home}/memory.jsonl"},
        mcp="",
        tools={
            "add": Tool(
                "create_entities",
                {"entities": [{"name": "{title}", "entityType": "task", "observations": ["pending"]}]},
            ),
            "list": Tool("read_graph"),
            "next": Tool("read_graph"),
        },
        reasons=NO_COMMANDS,
        note=READS_LIST,
    ),
)
