"""Tools for agents: task tools in several dialects, for any agent loop.

```python
from punchlist import tools

definitions = tools.definitions("claude", "anthropic")          # give these to the model
reply = tools.call("claude", "TaskCreate", {"subject": "Write the copy", "description": "…"}, conversation="website")
print(reply.text)                                               # return this to the model
```

`call` never raises for errors that a model or the daemon can cause: it returns a reply with `refused` set. `Toolbox`
and `AsyncToolbox` do the same on an existing client. `punchlist.tools.functions` returns the tools as Python callables,
and `punchlist.tools.adapters` converts them for agent frameworks.
"""

from collections.abc import Iterable
from typing import Any

from punchlist.base.project import own
from punchlist.connection.options import Options
from punchlist.errors import PunchlistError
from punchlist.tools import catalog, coercion, registry, schema
from punchlist.tools.agent_memory import Memory
from punchlist.tools.catalog import offered
from punchlist.tools.model import Dialect, Problem, Question, Reply, Tool
from punchlist.tools.refusals import to_problem
from punchlist.tools.registry import dialect, names
from punchlist.tools.schema import FORMATS, Format
from punchlist.tools.toolbox import AsyncToolbox, Toolbox, ToolCaller

__all__ = [
    "FORMATS",
    "AsyncToolbox",
    "Dialect",
    "Format",
    "Problem",
    "Question",
    "Reply",
    "ToolCaller",
    "Tool",
    "Toolbox",
    "call",
    "definitions",
    "dialect",
    "names",
    "offered",
    "prompt",
]

_MEMORY = Memory()


def definitions(
    dialect: str | Dialect | Iterable[str], form: Format = "mcp", tools: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Return the tool definitions of one or several dialects.

    Args:
        dialect: A dialect, its name, or several names. A tool name used by several dialects gets its dialect's name as
            a prefix.
        form: `openai` (Chat Completions), `responses` (OpenAI's Responses API), `anthropic`, or `mcp`.
        tools: Names of the tools to include. All by default.

    Raises:
        Problem: Unknown dialect or tool.
    """
    return [item for selected in offered(dialect, tools) for item in schema.definitions(selected, form)]


def prompt(dialect: str | Dialect | Iterable[str], tools: Iterable[str] | None = None) -> str:
    """Return instructions for using the tools, as a section of a model's prompt. See `definitions`."""
    return catalog.prompt(offered(dialect, tools))


def call(
    dialect: str,
    name: str,
    arguments: object = None,
    *,
    conversation: str | None = None,
    actor: str = "agent",
    user: str | None = None,
) -> Reply:
    """Call one tool on a new connection. Use a `Toolbox` for many calls.

    Args:
        dialect: The dialect's name.
        name: The tool's name.
        arguments: The model's arguments: an object, its JSON text, or None.
        conversation: The list. Default: that of the scope (`punchlist.conversation`) or PUNCHLIST_CONVERSATION.
        actor: The agent's name, recorded with its changes.
        user: Limit the call to this user's lists. Default: the `user_id` in the arguments; `conversation` is then the
            user's own list with that name.
    """
    options: Options = {"name": actor}
    if user is None and dialect in registry.names() and (tool := registry.dialect(dialect).tool(name)) is not None:
        user = coercion.find_user(tool, arguments)
        conversation = conversation and own(conversation, user)
    if user is not None:
        options["user"] = user
    try:
        # Imported here because it loads the code for the event loop's thread, which callers with their own client don't
        # need.
        from punchlist.clients.sync import connect

        with connect(**options) as client:
            return Toolbox(client, ToolCaller(conversation, actor, user), _MEMORY).call(dialect, name, arguments)
    except PunchlistError as error:
        return registry.dialect(dialect).refuse(to_problem(error))
