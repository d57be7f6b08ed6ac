"""A dialect's definitions in the forms that hosts and model APIs take."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal, cast, get_args

import msgspec

from punchlist.tools.model import CLEARS, HIDDEN, NUMBER, Arguments, Dialect, Tool, choices

Format = Literal["openai", "responses", "anthropic", "mcp"]
FORMATS: tuple[Format, ...] = get_args(Format)
"""OpenAI's Chat Completions and Responses APIs, Anthropic's Messages API, and the Model Context Protocol."""

_DROPPED = ("title", "default", NUMBER, CLEARS)
_REF = "#/$defs/"


def parameters(kind: type[Arguments]) -> dict[str, Any]:
    """JSON Schema of a tool's arguments: one object without references, and without what goes without saying."""
    _, components = msgspec.json.schema_components([kind], ref_template=_REF + "{name}")
    schema = _inlined(components[kind.__name__], components)
    schema.pop("description", None)
    return schema


def output(tool: Tool) -> dict[str, Any] | None:
    """JSON Schema of what the tool answers beside its text, where that is promised. Refusals fit it too."""
    return {"type": "object", "properties": tool.output} if tool.output else None


def definitions(dialect: Dialect, form: Format = "mcp") -> list[dict[str, Any]]:
    """The definitions of all tools of a dialect in one form."""
    return [_FORMS[form](tool) for tool in dialect.tools]


def _inlined(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(one, components) for one in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("dict[str, Any]", node)
    if "$ref" in members:
        return _inlined(components[members["$ref"].removeprefix(_REF)], components)
    if "anyOf" in members:  # with null, which is what leaving it out means
        rest = {name: value for name, value in members.items() if name != "anyOf"}
        members = {**rest, **next(one for one in members["anyOf"] if one != {"type": "null"})}
    if NUMBER in members:
        members = {**members, "type": "integer"}
    if "enum" in members:
        members = {"type": "string", **members, "enum": list(choices(members["enum"]))}
    return dict(_members(members, components))


def _members(node: dict[str, Any], components: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        if name == "properties":
            shown = {key: one for key, one in value.items() if not one.get(HIDDEN)}
            yield name, {key: _inlined(one, components) for key, one in shown.items()}
        elif name == "description" and node.get("type") == "object":
            continue  # a struct's own documentation is for us
        elif not (name in _DROPPED or (name == "required" and not value)):
            yield name, _inlined(value, components)


def annotations(tool: Tool) -> dict[str, bool]:
    """The hints of the Model Context Protocol."""
    return {
        "readOnlyHint": tool.effect == "reads",
        "destructiveHint": tool.effect == "destroys",
        "idempotentHint": tool.effect in ("reads", "changes"),
        "openWorldHint": False,
    }


def _openai(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.text, "parameters": parameters(tool.arguments)}
    return {"type": "function", "function": function}


def _responses(tool: Tool) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.text, "parameters": parameters(tool.arguments)}
    return {"type": "function", **described, "strict": False}


def _anthropic(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.text, "input_schema": parameters(tool.arguments)}


def _mcp(tool: Tool) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.text, "inputSchema": parameters(tool.arguments)}
    promised = output(tool)
    return described | ({"outputSchema": promised} if promised else {}) | {"annotations": annotations(tool)}


_FORMS: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "openai": _openai,
    "responses": _responses,
    "anthropic": _anthropic,
    "mcp": _mcp,
}


_PYTHON = {"string": "str", "integer": "int", "boolean": "bool", "array": "list", "object": "dict"}


def python_source(dialect: Dialect) -> str:
    """The tools as Python signatures with their documentation, for reading and for code-writing models."""
    return "\n\n".join(_function(tool) for tool in dialect.tools) + "\n"


def _function(tool: Tool) -> str:
    schema = parameters(tool.arguments)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    order = sorted(properties, key=lambda name: name not in required)
    shown = [f"{name}: {_type(properties[name])}" + ("" if name in required else " = ...") for name in order]
    notes = [f"    {name}: {one['description']}" for name, one in properties.items() if "description" in one]
    body = "\n".join([tool.text, *(("", *notes) if notes else ())])
    return f'def {tool.name}({", ".join(shown)}) -> str:\n    """{body}"""'


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
    name = _PYTHON.get(str(schema.get("type")), "object")
    return f"list[{_type(schema['items'])}]" if name == "list" and "items" in schema else name
