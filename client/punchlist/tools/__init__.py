"""The tool surfaces that agents call: dialects over one list, for any agent loop.

```python
from punchlist import tools

definitions = tools.definitions("claude", "anthropic")          # give these to the model
reply = tools.call("claude", "TaskCreate", {"subject": "Write the copy", "description": "…"}, conversation="website")
print(reply.text)                                               # give this back to it
```

`call` never raises for what a model or the daemon can cause: a refusal is a reply with `refused`. `Toolbox` and
`AsyncToolbox` do the same on a client of yours. `punchlist.tools.functions` makes Python callables of the tools,
`punchlist.tools.adapters` what agent frameworks take.
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
from punchlist.tools.refusals import problem_of
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
    """The tool definitions of one or several dialects.

    Args:
        dialect: A dialect, its name, or the names of several; then tools of one name get their dialect's before it.
        form: `openai` (Chat Completions), `responses` (OpenAI's Responses API), `anthropic`, or `mcp`.
        tools: Only the tools of these names.

    Raises:
        Problem: There is no such dialect, or no such tool.
    """
    return [one for chosen in offered(dialect, tools) for one in schema.definitions(chosen, form)]


def prompt(dialect: str | Dialect | Iterable[str], tools: Iterable[str] | None = None) -> str:
    """What to tell a model about the tools that it is offered, as a section of its prompt. See `definitions`."""
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
    """Call one tool on a connection of its own. Loops that make many calls keep a `Toolbox`.

    Args:
        dialect: The dialect's name.
        name: The tool's name.
        arguments: What the model sent: an object, JSON text of one, or nothing.
        conversation: The list; by default the scope's (`punchlist.conversation`) or PUNCHLIST_CONVERSATION.
        actor: The agent's name, recorded with its changes.
        user: Confine the call to this user's conversations. Without it the `user_id` of the arguments does, and the
            list is the user's own one of that name.
    """
    options: Options = {"name": actor}
    if user is None and dialect in registry.names() and (tool := registry.dialect(dialect).tool(name)) is not None:
        user = coercion.user_of(tool, arguments)
        conversation = conversation and own(conversation, user)
    if user is not None:
        options["user"] = user
    try:
        from punchlist.clients.sync import connect  # a thread for the loop, which those who bring a client do without

        with connect(**options) as client:
            return Toolbox(client, ToolCaller(conversation, actor, user), _MEMORY).call(dialect, name, arguments)
    except PunchlistError as error:
        return registry.dialect(dialect).refuse(problem_of(error))
