"""The tools of a dialect as Python callables, for agent loops that take functions."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from punchlist.tools.catalog import offered
from punchlist.tools.model import Dialect, Tool
from punchlist.tools.schema import build_parameters
from punchlist.tools.toolbox import Toolbox

_TYPES: dict[str, Any] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def functions(
    name: str | Dialect | Iterable[str], box: Toolbox, tools: Iterable[str] | None = None
) -> list[Callable[..., str]]:
    """Return a callable for each tool of the dialect, with the tool's name, description and signature.

    The callables return the reply's text.

    Raises:
        Problem: Unknown dialect or tool.
    """
    return [_build_function(dialect, tool, box) for dialect in offered(name, tools) for tool in dialect.tools]


def _build_function(dialect: Dialect, tool: Tool, box: Toolbox) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        return box.call(dialect, tool.name, arguments).text

    schema = build_parameters(tool.arguments)
    members: dict[str, Any] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    call.__name__ = call.__qualname__ = tool.name
    notes = [f"    {key}: {member['description']}" for key, member in members.items() if "description" in member]
    call.__doc__ = "\n".join([tool.text, *(["", "Args:", *notes] if notes else [])])
    signature = [_build_parameter(key, members[key], is_required=key in required) for key in members]
    call.__signature__ = inspect.Signature(signature, return_annotation=str)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in signature} | {"return": str}
    return call


def _build_parameter(name: str, schema: dict[str, Any], *, is_required: bool) -> inspect.Parameter:
    kind = _TYPES.get(str(schema.get("type")), str)
    default = inspect.Parameter.empty if is_required else None
    annotation = kind if is_required else kind | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
