from typing import Any

import pytest

from punchlist import tools


def test_overview_shows_dialects_with_sizes(run: Any) -> None:
    outcome = run("agent", "tools")
    assert [line.split()[0] for line in outcome.lines[:-1]] == list(tools.names())
    assert all(0 < row["tokens"] <= 1_000 for row in run("agent", "tools", "--json").json)


@pytest.mark.parametrize("form", tools.FORMATS)
def test_definitions_are_json(form: tools.Format, run: Any) -> None:
    assert run("agent", "tools", "claude", "--format", form).json == tools.definitions("claude", form)


def test_prompt_and_python_are_text(run: Any) -> None:
    assert run("agent", "tools", "queue", "--prompt").out.strip() == tools.prompt("queue")
    assert run("agent", "tools", "queue", "--format", "python").lines[0].startswith("def add_task(description: str")


def test_only_named_tools_are_printed(run: Any) -> None:
    output = run("agent", "tools", "checklist", "--tools", "ListTasks, AddTask")
    assert [one["name"] for one in output.json] == ["ListTasks", "AddTask"]
    prompt = run("agent", "tools", "checklist", "--tools", "AddTask", "--prompt").out
    assert "AddTask for each step" in prompt
    assert "CompleteTask" not in prompt
    outcome = run("agent", "tools", "checklist", "--tools", "AddTasks")
    assert (outcome.code, "did you mean AddTask?" in outcome.err) == (2, True)


def test_unknown_dialect_is_usage_error(run: Any) -> None:
    outcome = run("agent", "tools", "klingon")
    assert outcome.code == 2
    assert "available: native, checklist" in outcome.err
