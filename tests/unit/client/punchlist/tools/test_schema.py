import ast
from typing import Any, cast

import pytest

from punchlist import tools
from punchlist.tools.schema import FORMATS, build_parameters, render_python

ALL = [(name, tool) for name in tools.names() for tool in tools.dialect(name).tools]


def walk(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [one for part in cast("list[Any]", schema) for one in walk(part)]
    if not isinstance(schema, dict):
        return []
    node = cast("dict[str, Any]", schema)
    return [node, *(one for part in node.values() for one in walk(part))]


@pytest.mark.parametrize(("name", "tool"), ALL, ids=[f"{name}.{tool.name}" for name, tool in ALL])
def test_schema_has_no_references_or_hidden_arguments(name: str, tool: tools.Tool) -> None:
    schema = build_parameters(tool.arguments)
    assert schema["type"] == "object"
    assert set(schema.get("required", ())) <= set(schema.get("properties", {}))
    assert not [part for part in walk(schema) if {"$ref", "$defs", "x-hidden"} & set(part)]
    assert not {"offset", "confirm"} & set(schema.get("properties", {})) or name in ("todo", "todo-v1")


def test_each_format_has_the_members_of_its_api() -> None:
    shown = {form: tools.definitions("claude", form)[0] for form in FORMATS}
    assert set(shown["openai"]) == {"type", "function"}
    assert set(shown["openai"]["function"]) == {"name", "description", "parameters"}
    assert set(shown["responses"]) == {"type", "name", "description", "parameters", "strict"}
    assert set(shown["anthropic"]) == {"name", "description", "input_schema"}
    assert set(shown["mcp"]) == {"name", "description", "inputSchema", "annotations"}


def test_hints_follow_the_tools_effect() -> None:
    hints = {tool["name"]: tool["annotations"] for tool in tools.definitions("checklist")}
    flags = {name: (one["readOnlyHint"], one["destructiveHint"], one["idempotentHint"]) for name, one in hints.items()}
    assert flags["ListTasks"] == (True, False, True)
    assert flags["AddTask"] == (False, False, False)
    assert flags["CompleteTask"] == (False, False, True)
    assert flags["ClearTasks"] == (False, True, False)


@pytest.mark.parametrize("name", tools.names())
def test_python_source_is_valid(name: str) -> None:
    tree = ast.parse(render_python(tools.dialect(name)))
    assert [one.name for one in tree.body if isinstance(one, ast.FunctionDef)] == [
        tool.name for tool in tools.dialect(name).tools
    ]
