import pytest

from punchlist.mcp.catalog import catalog, instructions
from punchlist.tools import Problem, names


def test_one_dialect_keeps_its_names() -> None:
    assert list(catalog(["native"])) == ["plan", "next", "update", "tasks", "wait"]


def test_names_that_two_dialects_use_get_the_dialect_before_them() -> None:
    offers = catalog(["queue", "todo"])
    assert offers["queue_add_task"].dialect == "queue"
    assert offers["todo_add_task"].dialect == "todo"
    assert "add_task" not in offers
    assert offers["fail_task"].dialect == "queue"


def test_all_dialects_together_lose_no_tool() -> None:
    assert len(catalog(names())) == 5 + 8 + 5 + 8 + 11
    assert len(catalog(["native", "native"])) == 5


def test_an_unknown_dialect_is_a_problem() -> None:
    with pytest.raises(Problem):
        catalog(["klingon"])


def test_the_instructions_hold_the_prompt_of_each_dialect() -> None:
    assert instructions(["native", "queue"]).count("# Task") == 2
