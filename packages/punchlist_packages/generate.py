"""Generates files from definitions: the dialects of tools, as a page and as JSON, the REST API, and the packages' manifests.

`python -m punchlist_packages.generate` writes the files, and with `--check` only compares them.
"""
# ruff: noqa: E501 - Markdown has one sentence a line

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from punchlist.tools import registry
from punchlist.tools.budget import count_tokens, to_json
from punchlist.tools.catalog import offered
from punchlist.tools.model import Dialect, Tool
from punchlist.tools.schema import build_parameters, definitions
from punchlist_apps.web import openapi
from punchlist_packages import shops

_HEAD = """# Dialects

Give a model tools under the names that it already knows.

```sh
punch agent mcp --dialect claude                  # an MCP server with these tools
punch agent tools claude --format anthropic       # their definitions, for an API
```

`make fmt` generates this page from the definitions.
All dialects work on the same list, and several can be used at the same time.
They have these rules in common:

- Similar argument names are accepted (`id`, `task_id`, `taskID` for `taskId`).
  A list may be an array, JSON text or a single id, and an integer may be text.
  Missing arguments count as `{}`, and an empty string counts as omitted (but `TaskUpdate` with nothing except an empty `owner` or `activeForm` clears them).
- Adding a task with the title and parent of an open task keeps the open one, and the reply mentions it.
- A task is handed out with its notes, and a new note on the agent's task is included in the next reply of any tool.
- A rejection is a result that contains the reason and an alternative that works.
- No reply exceeds 10,000 tokens.
  A truncated list ends with the number of tasks left out; the tool then takes `offset`.
  A truncated description names the call that continues it: `list_tasks task_id=3 offset=20000`.
- A task that waits for a person's yes is shown as waiting, and no tool changes its status, owner, title, description or place in the list. Only a person can answer ([gates](queue.md#gates)).
- When a list is replaced (`TodoWrite`, `SetTaskList`, `plan` with `replace`), a paused or failed task stays so if the new list has it as pending. `SetTaskList` and `plan` have no statuses and also keep the claims of the caller.
- Replacing a list with an empty one (`TodoWrite` with no todos) continues the numbers: the next task gets a new one.
  After `ClearTasks`, `punch clear` or an `auto_clear` the numbers start at 1 again.
- On a connection that requires confirmation, deleting requires `confirm` with the token from the first reply.
- If two offered dialects share a tool name, each of these tools is prefixed with its dialect's name: `queue_add_task`.

MCP has its own tasks (the extension `io.modelcontextprotocol/tasks`): a handle for one deferred request, which ends with that request.
punchlist's tasks are items on a list, independent of requests and without expiry.
`punch agent mcp` never announces that extension.
"""


SETS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("a list to tick off", "checklist", ("ListTasks", "AddTask", "CompleteTask", "UncompleteTask", "DeleteTask")),
    ("a queue", "queue", ("add_task", "list_tasks", "complete_task")),
    ("tasks with dependencies", "claude", ("TaskCreate", "TaskUpdate", "TaskGet", "TaskList")),
    ("to-dos of many users", "todo-v1", ()),
    ("to-dos of one user", "todo", ()),
)
"""Sets of tools for existing programs: purpose, dialect, and names of the tools (empty for all)."""

_ONLY = """## Subsets of tools

`--tools NAME,NAME` of `punch agent mcp` and `punch agent tools` offers exactly these tools, and `tools=` does the same for `tools.definitions`, `tools.prompt`, `functions` and the adapters.
All text for the model then mentions only the offered tools.
"""


def document() -> str:
    return "\n".join([_HEAD, _only(), *(_section(registry.dialect(name)) for name in registry.names())])


def _only() -> str:
    rows = ["| set | command |", "|---|---|"]
    for what, dialect, only in SETS:
        tools = [tool.name for one in offered(dialect, only or None) for tool in one.tools]
        narrowed = f" --tools {','.join(only)}" if only else ""
        rows.append(f"| {what}: {', '.join(tools)} | `punch agent mcp --dialect {dialect}{narrowed}` |")
    return "\n".join([_ONLY, *rows, ""])


def _section(dialect: Dialect) -> str:
    size = count_tokens(to_json(definitions(dialect, "anthropic")))
    parts = [f"## `{dialect.name}`\n\n{dialect.summary} {size} tokens of definitions.\n"]
    rows = ["| tool | parameters (* required) | what it does | effect |", "|---|---|---|---|"]
    rows += [f"| {tool.name} | {_parameters(tool)} | {tool.text} | {tool.effect} |" for tool in dialect.tools]
    quoted = "\n".join(f"> {line}".rstrip() for line in dialect.prompt.splitlines())
    return "\n".join([*parts, *rows, "", "For the model's prompt:", "", quoted, ""])


def _parameters(tool: Tool) -> str:
    schema = build_parameters(tool.arguments)
    required: list[str] = schema.get("required", [])
    members: dict[str, Any] = schema.get("properties", {})
    shown = [f"{name}{'*' if name in required else ''}{_kind(one)}" for name, one in members.items()]
    return ", ".join(shown) or "none"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        words = " \\| ".join(schema["enum"])
        return f" ({words})"
    if schema.get("type") == "array":
        members = schema["items"].get("properties")
        return f" [{', '.join(members)}]" if members else " [ids]"
    return {"boolean": " (true/false)", "integer": " (integer)", "object": " (object)"}.get(str(schema.get("type")), "")


def files() -> dict[str, str]:
    described = {
        name: {"summary": registry.dialect(name).summary, "tools": definitions(registry.dialect(name))}
        for name in registry.names()
    }
    return {
        "docs/dialects.md": document(),
        "schemas/json/dialects.json": json.dumps(described, ensure_ascii=False, indent=2) + "\n",
        "schemas/json/openapi.json": msgspec.json.format(openapi.encode_document(), indent=2).decode() + "\n",
        **shops.files(),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m punchlist_packages.generate")
    parser.add_argument("--check", action="store_true", help="write nothing, name the stale files")
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout (default: the working directory)")
    options = parser.parse_args(arguments)
    stale = 0
    for name, content in files().items():
        path: Path = options.root / name
        if path.exists() and path.read_text("utf-8") == content:
            continue
        if options.check:
            print(f"stale: {path}", file=sys.stderr)
            stale = 1
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, "utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
