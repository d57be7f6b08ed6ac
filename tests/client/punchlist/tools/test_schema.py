import ast
from typing import Any, cast

import pytest

from punchlist import tools
from punchlist.tools.budget import compact, tokens
from punchlist.tools.schema import FORMATS, parameters, python_source

ALL = [(name, tool) for name in tools.names() for tool in tools.dialect(name).tools]


def walked(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [one for part in cast("list[Any]", schema) for one in walked(part)]
    if not isinstance(schema, dict):
        return []
    node = cast("dict[str, Any]", schema)
    return [node, *(one for part in node.values() for one in walked(part))]


@pytest.mark.parametrize(("name", "tool"), ALL, ids=[f"{name}.{tool.name}" for name, tool in ALL])
def test_a_schema_is_one_object_without_references_or_hidden_arguments(name: str, tool: tools.Tool) -> None:
    schema = parameters(tool.arguments)
    assert schema["type"] == "object"
    assert set(schema.get("required", ())) <= set(schema.get("properties", {}))
    assert not [part for part in walked(schema) if {"$ref", "$defs", "x-hidden"} & set(part)]
    assert not {"offset", "confirm"} & set(schema.get("properties", {})) or name in ("todo", "todo-v1")


@pytest.mark.parametrize(("name", "tool"), ALL, ids=[f"{name}.{tool.name}" for name, tool in ALL])
def test_every_tool_says_what_it_does_in_a_sentence(name: str, tool: tools.Tool) -> None:
    assert tool.text[0].isupper()
    assert tool.text.endswith(".")


def test_required_arguments_are_those_of_the_dialects() -> None:
    required = {f"{name}.{tool.name}": parameters(tool.arguments).get("required", []) for name, tool in ALL}
    assert {key: names for key, names in required.items() if not key.startswith("native")} == {
        "checklist.ListTasks": [],
        "checklist.AddTask": ["title"],
        "checklist.CompleteTask": ["taskId"],
        "checklist.UncompleteTask": ["taskId"],
        "checklist.DeleteTask": ["taskId"],
        "checklist.CompleteTasks": ["taskIds"],
        "checklist.SetTaskList": ["tasks"],
        "checklist.ClearTasks": [],
        "claude.TaskCreate": ["subject", "description"],
        "claude.TaskUpdate": ["taskId"],
        "claude.TaskGet": ["taskId"],
        "claude.TaskList": [],
        "claude.TodoWrite": ["todos"],
        "queue.add_task": ["description"],
        "queue.list_tasks": [],
        "queue.complete_task": ["task_id", "result_summary"],
        "queue.fail_task": ["task_id", "reason"],
        "queue.pause_task": ["task_id"],
        "queue.resume_task": ["task_id"],
        "queue.prioritize_task": ["task_id"],
        "queue.delete_task": ["task_id"],
        "todo-v1.add_task": ["user_id", "title"],
        "todo-v1.list_tasks": ["user_id"],
        "todo-v1.complete_task": ["user_id", "task_id"],
        "todo-v1.delete_task": ["user_id", "task_id"],
        "todo-v1.update_task": ["user_id", "task_id"],
        "todo.create_todo_task": ["title"],
        "todo.get_todo_task": ["task_id"],
        "todo.list_todo_tasks": [],
        "todo.update_todo_task": ["task_id", "title"],
        "todo.complete_todo_task": ["task_id"],
        "todo.delete_todo_task": ["task_id"],
    }


def test_each_form_has_the_members_that_its_api_takes() -> None:
    shown = {form: tools.definitions("claude", form)[0] for form in FORMATS}
    assert set(shown["openai"]) == {"type", "function"}
    assert set(shown["openai"]["function"]) == {"name", "description", "parameters"}
    assert set(shown["responses"]) == {"type", "name", "description", "parameters", "strict"}
    assert set(shown["anthropic"]) == {"name", "description", "input_schema"}
    assert set(shown["mcp"]) == {"name", "description", "inputSchema", "annotations"}


def test_the_hints_tell_reading_adding_changing_and_destroying_apart() -> None:
    hints = {tool["name"]: tool["annotations"] for tool in tools.definitions("checklist")}
    flags = {name: (one["readOnlyHint"], one["destructiveHint"], one["idempotentHint"]) for name, one in hints.items()}
    assert flags["ListTasks"] == (True, False, True)
    assert flags["AddTask"] == (False, False, False)
    assert flags["CompleteTask"] == (False, False, True)
    assert flags["ClearTasks"] == (False, True, False)


@pytest.mark.parametrize("form", FORMATS)
def test_the_definitions_of_native_stay_below_1000_tokens(form: tools.Format) -> None:
    assert tokens(compact(tools.definitions("native", form))) <= 1_000


@pytest.mark.parametrize("name", tools.names())
def test_the_python_form_is_python(name: str) -> None:
    tree = ast.parse(python_source(tools.dialect(name)))
    assert [one.name for one in tree.body if isinstance(one, ast.FunctionDef)] == [
        tool.name for tool in tools.dialect(name).tools
    ]


@pytest.mark.parametrize("name", tools.names())
def test_a_dialect_ships_its_prompt(name: str) -> None:
    text = tools.prompt(name)
    assert text.startswith("# ")
    assert tokens(text) < 300
