from typing import Any

import pytest

from punchlist import tools


def test_without_a_dialect_all_are_shown_with_their_sizes(run: Any) -> None:
    shown = run("agent", "tools")
    assert [line.split()[0] for line in shown.lines[:-1]] == list(tools.names())
    assert all(0 < row["tokens"] <= 1_000 for row in run("agent", "tools", "--json").json)


@pytest.mark.parametrize("form", tools.FORMATS)
def test_definitions_are_printed_as_json(form: tools.Format, run: Any) -> None:
    assert run("agent", "tools", "claude", "--format", form).json == tools.definitions("claude", form)


def test_the_prompt_and_python_forms_are_text(run: Any) -> None:
    assert run("agent", "tools", "queue", "--prompt").out.strip() == tools.prompt("queue")
    assert run("agent", "tools", "queue", "--format", "python").lines[0].startswith("def add_task(description: str")


def test_only_the_named_tools_are_printed(run: Any) -> None:
    shown = run("agent", "tools", "checklist", "--tools", "ListTasks, AddTask")
    assert [one["name"] for one in shown.json] == ["ListTasks", "AddTask"]
    prompt = run("agent", "tools", "checklist", "--tools", "AddTask", "--prompt").out
    assert "AddTask for each step" in prompt
    assert "CompleteTask" not in prompt
    told = run("agent", "tools", "checklist", "--tools", "AddTasks")
    assert (told.code, "did you mean AddTask?" in told.err) == (2, True)


def test_an_unknown_dialect_is_a_usage_error(run: Any) -> None:
    told = run("agent", "tools", "klingon")
    assert told.code == 2
    assert "available: native, checklist" in told.err
