"""Long descriptions can be read in full with the calls that replies name."""

import re
from typing import Any

import pytest

from punchlist import Client, tools
from punchlist.tools import Toolbox

WHOLE = "\n".join(f"line {number} of a specification" for number in range(2_200))[:65_000]
READERS: list[tuple[str, str, dict[str, Any]]] = [
    ("native", "tasks", {"ids": ["1"]}),
    ("claude", "TaskGet", {"taskId": "1"}),
    ("checklist", "ListTasks", {}),
    ("queue", "list_tasks", {}),
    ("todo", "get_todo_task", {"task_id": 1}),
]
_REST = re.compile(r"… \[\d+ characters left out: (\w+) (\w+)=(\d+) offset=(\d+)\]")


@pytest.mark.parametrize(("dialect", "tool", "arguments"), READERS)
def test_long_description_can_be_read_whole(
    dialect: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox
) -> None:
    client.conversation("work").add("Title", description=WHOLE)
    read = ""
    for _ in range(40):
        reply = box.call(dialect, tool, arguments)
        data: Any = reply.data
        row = data["task"] if "task" in data else data["tasks"][0] if "tasks" in data else data
        if (rest := _REST.search(reply.text)) is None:
            assert (read + row["description"]).removeprefix("Title\n") == WHOLE
            return
        read += row["description"].split("… [")[0]
        tool, arguments = rest[1], {rest[2]: rest[3], "offset": int(rest[4])}
    raise AssertionError("the description has no end")


def test_advice_names_only_offered_tools(client: Client, box: Toolbox) -> None:
    client.conversation("work").add("Title", description=WHOLE)
    (two,) = tools.offered("checklist", ["AddTask", "CompleteTask"])
    assert "characters left out]" in box.call(two, "CompleteTask", {"taskId": "1"}).text
