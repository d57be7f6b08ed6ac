"""The tools of a dialect as Python callables, for loops that take functions."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from punchlist.tools.catalog import offered
from punchlist.tools.model import Dialect, Tool
from punchlist.tools.schema import parameters
from punchlist.tools.toolbox import Toolbox

_KINDS: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def functions(
    name: str | Dialect | Iterable[str], box: Toolbox, tools: Iterable[str] | None = None
) -> list[Callable[..., str]]:
    """A callable for each tool of the dialect, with its name, documentation and signature; it returns the text.

    Raises:
        Problem: There is no such dialect, or no such tool.
    """
    return [_function(chosen, tool, box) for chosen in offered(name, tools) for tool in chosen.tools]


def _function(chosen: Dialect, tool: Tool, box: Toolbox) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        return box.call(chosen, tool.name, arguments).text

    schema = parameters(tool.arguments)
    members: dict[str, Any] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    call.__name__ = call.__qualname__ = tool.name
    notes = [f"    {key}: {one['description']}" for key, one in members.items() if "description" in one]
    call.__doc__ = "\n".join([tool.text, *(["", "Args:", *notes] if notes else [])])
    signature = [_parameter(key, members[key], is_required=key in required) for key in members]
    call.__signature__ = inspect.Signature(signature, return_annotation=str)
    call.__annotations__ = {one.name: one.annotation for one in signature} | {"return": str}
    return call


def _parameter(name: str, schema: dict[str, Any], *, is_required: bool) -> inspect.Parameter:
    kind = _KINDS.get(str(schema.get("type")), str)
    default = inspect.Parameter.empty if is_required else None
    annotation = kind if is_required else kind | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
