"""Builds tool definitions in the formats of hosts and model APIs."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast, get_args

import msgspec

from punchlist.tools.model import CLEARS, HIDDEN, NUMBER, Arguments, Dialect, Tool, order_choices

Format = Literal["openai", "responses", "anthropic", "mcp"]
FORMATS: tuple[Format, ...] = get_args(Format)
"""OpenAI's Chat Completions and Responses APIs, Anthropic's Messages API, and the Model Context Protocol."""

_DROPPED = ("title", "default", NUMBER, CLEARS)
_REF = "#/$defs/"


def build_parameters(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments: one object without references, titles or defaults."""
    _, components = msgspec.json.schema_components([kind], ref_template=_REF + "{name}")
    schema = _inline(components[kind.__name__], components)
    schema.pop("description", None)
    return schema


def build_output(tool: Tool) -> dict[str, Any] | None:
    """Return the JSON Schema of the reply's data, or None if its form is not guaranteed. Refusals conform too."""
    return {"type": "object", "properties": tool.output} if tool.output else None


def definitions(dialect: Dialect, form: Format = "mcp") -> list[dict[str, Any]]:
    """Return the definitions of all tools of a dialect."""
    return [_FORMATTERS[form](tool) for tool in dialect.tools]


def _inline(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, components) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("dict[str, Any]", node)
    if "$ref" in members:
        return _inline(components[members["$ref"].removeprefix(_REF)], components)
    if "anyOf" in members:  # The other alternative is null, which means the same as omitting the argument.
        rest = {name: value for name, value in members.items() if name != "anyOf"}
        members = {**rest, **next(option for option in members["anyOf"] if option != {"type": "null"})}
    if NUMBER in members:
        members = {**members, "type": "integer"}
    if "enum" in members:
        members = {"type": "string", **members, "enum": list(order_choices(members["enum"]))}
    return dict(_inline_members(members, components))


def _inline_members(node: dict[str, Any], components: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        if name == "properties":
            shown = {key: schema for key, schema in value.items() if not schema.get(HIDDEN)}
            yield name, {key: _inline(schema, components) for key, schema in shown.items()}
        elif name == "description" and node.get("type") == "object":
            continue  # The docstring of a struct is not for models.
        elif not (name in _DROPPED or (name == "required" and not value)):
            yield name, _inline(value, components)


def build_annotations(tool: Tool) -> dict[str, bool]:
    """Return the tool's hints for the Model Context Protocol."""
    return {
        "readOnlyHint": tool.effect == "reads",
        "destructiveHint": tool.effect == "destroys",
        "idempotentHint": tool.effect in ("reads", "changes"),
        "openWorldHint": False,
    }


def _format_openai(tool: Tool) -> dict[str, Any]:
    definition = {"name": tool.name, "description": tool.text, "parameters": build_parameters(tool.arguments)}
    return {"type": "function", "function": definition}


def _format_responses(tool: Tool) -> dict[str, Any]:
    definition = {"name": tool.name, "description": tool.text, "parameters": build_parameters(tool.arguments)}
    return {"type": "function", **definition, "strict": False}


def _format_anthropic(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.text, "input_schema": build_parameters(tool.arguments)}


def _format_mcp(tool: Tool) -> dict[str, Any]:
    definition = {"name": tool.name, "description": tool.text, "inputSchema": build_parameters(tool.arguments)}
    output = build_output(tool)
    return definition | ({"outputSchema": output} if output else {}) | {"annotations": build_annotations(tool)}


_FORMATTERS: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "openai": _format_openai,
    "responses": _format_responses,
    "anthropic": _format_anthropic,
    "mcp": _format_mcp,
}


_PYTHON_TYPES = {"string": "str", "integer": "int", "boolean": "bool", "array": "list", "object": "dict"}


def render_python(dialect: Dialect) -> str:
    """Return the tools as Python signatures with docstrings, for people and for models that write code."""
    return "\n\n".join(_render_function(tool) for tool in dialect.tools) + "\n"


def _render_function(tool: Tool) -> str:
    schema = build_parameters(tool.arguments)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    order = sorted(properties, key=lambda name: name not in required)
    arguments = [f"{name}: {_render_type(properties[name])}" + ("" if name in required else " = ...") for name in order]
    notes = [f"    {name}: {value['description']}" for name, value in properties.items() if "description" in value]
    body = "\n".join([tool.text, *(("", *notes) if notes else ())])
    return f'def {tool.name}({", ".join(arguments)}) -> str:\n    """{body}"""'


def _render_type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
    name = _PYTHON_TYPES.get(str(schema.get("type")), "object")
    return f"list[{_render_type(schema['items'])}]" if name == "list" and "items" in schema else name
