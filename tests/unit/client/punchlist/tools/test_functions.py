import inspect

import pytest

from punchlist import tools
from punchlist.tools import Toolbox
from punchlist.tools.functions import functions


def test_functions_have_name_signature_and_docstring(box: Toolbox) -> None:
    made = {one.__name__: one for one in functions("claude", box)}
    create = made["TaskCreate"]
    assert create(subject="Copy", description="All of it") == "Task #1 created: Copy"
    assert made["TaskList"]() == "☐ #1: Copy [pending]"
    assert made["TaskUpdate"](taskId="1", status="completed", owner=None) == "Updated task #1"
    signature = inspect.signature(create)
    assert list(signature.parameters) == ["subject", "description", "activeForm", "metadata", "addBlockedBy"]
    assert signature.parameters["subject"].default is inspect.Parameter.empty
    assert signature.parameters["activeForm"].default is None
    assert (create.__doc__ or "").startswith("Create a task in the task list.")


def test_every_tool_becomes_a_function(box: Toolbox) -> None:
    for name in tools.names():
        assert [one.__name__ for one in functions(name, box)] == [tool.name for tool in tools.dialect(name).tools]


def test_only_selected_tools_become_functions(box: Toolbox) -> None:
    made = functions(["queue", "todo-v1"], box, tools=["queue_add_task", "queue_list_tasks"])
    assert [one.__name__ for one in made] == ["queue_add_task", "queue_list_tasks"]
    assert made[0](description="One").startswith('{"success":true,"taskId":"1"')
    with pytest.raises(tools.Problem, match="did you mean TaskGet"):
        functions("claude", box, tools=["TaskGets"])
