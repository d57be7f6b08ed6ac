import pytest

from punchlist.tools import Problem, catalog, names, offered
from punchlist_packages.generate import SETS


def list_offered(dialects: str | list[str], only: list[str] | None = None) -> list[str]:
    return [tool.name for one in offered(dialects, only) for tool in one.tools]


def test_shared_tool_names_get_their_dialect_as_prefix() -> None:
    both = offered(["queue", "todo-v1"])
    assert both[0].tool("queue_add_task")
    assert both[1].tool("todo-v1_add_task")
    assert not both[0].tool("add_task")
    assert both[0].tool("fail_task")


def test_all_dialects_together_offer_all_tools() -> None:
    found = list_offered(list(names()))
    assert len(found) == len(set(found)) == 5 + 8 + 5 + 8 + 6 + 5
    assert len(list_offered(["native", "native"])) == 5


def test_only_selected_tools_are_offered() -> None:
    assert list_offered("queue", ["complete_task", "add_task"]) == ["add_task", "complete_task"]
    assert list_offered(["queue", "checklist"], ["ListTasks"]) == ["ListTasks"]
    assert list_offered(["queue", "todo-v1"], ["queue_add_task"]) == ["queue_add_task"]


@pytest.mark.parametrize(
    ("dialects", "name", "told"),
    [
        ("checklist", "AddTasks", "did you mean AddTask?"),
        ("checklist", "addtask", "did you mean AddTask?"),
        ("todo", "add_task", "it is a tool of queue and todo-v1"),
        (["queue", "todo-v1"], "add_task", "did you mean queue_add_task or todo-v1_add_task?"),
        ("native", "zzz", "available: plan, next, update, tasks, wait"),
        ("native", "", "available: plan"),
    ],
)
def test_unknown_tool_suggests_the_closest(dialects: str | list[str], name: str, told: str) -> None:
    with pytest.raises(Problem) as refused:
        offered(dialects, [name])
    assert told in refused.value.text


def test_empty_selection_is_rejected() -> None:
    with pytest.raises(Problem, match="name at least one tool"):
        offered("native", [])


def test_unknown_dialect_is_rejected() -> None:
    with pytest.raises(Problem):
        offered(["klingon"])


def test_instructions_use_offered_names() -> None:
    text = catalog.prompt(offered(["queue", "todo-v1"]))
    assert text.count("# ") == 2
    assert "queue_add_task it, tell the user so, and go on" in text
    assert "number up with todo-v1_list_tasks" in text
    assert " add_task" not in text
    assert " list_tasks" not in text


def test_instructions_of_selected_tools_name_no_others() -> None:
    text = catalog.prompt(offered("checklist", [*SETS[0][2]]))
    assert "call AddTask for each step before" in text
    assert "SetTaskList" not in text
    assert "DeleteTask" in text


def test_selected_tools_can_be_selected_again() -> None:
    (narrowed,) = offered("queue", ["add_task", "list_tasks"])
    assert [tool.name for one in offered(narrowed) for tool in one.tools] == ["add_task", "list_tasks"]
