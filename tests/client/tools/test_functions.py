import inspect

from punchlist import tools
from punchlist.tools import Toolbox
from punchlist.tools.functions import functions


def test_tools_are_callables_with_name_signature_and_documentation(box: Toolbox) -> None:
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


def test_each_tool_of_each_dialect_becomes_one(box: Toolbox) -> None:
    for name in tools.names():
        assert [one.__name__ for one in functions(name, box)] == [tool.name for tool in tools.dialect(name).tools]
