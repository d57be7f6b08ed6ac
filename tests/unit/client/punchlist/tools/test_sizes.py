"""Token costs of each dialect, and their table in docs/hosts.md (PUNCHLIST_WRITE=1 writes it)."""

import os
from pathlib import Path
from typing import Any

from punchlist import Client, tools
from punchlist.tools import Toolbox, ToolCaller
from punchlist.tools.budget import MAX_TOKENS, count_tokens, to_json

PAGE = Path(__file__).resolve().parents[5] / "docs" / "hosts.md"
MARKS = ("<!-- sizes -->\n", "<!-- /sizes -->")
LENGTHS = (7, 50, 1_000)

LIST = {
    "native": "tasks",
    "claude": "TaskList",
    "checklist": "ListTasks",
    "queue": "list_tasks",
    "todo": "list_todo_tasks",
    "todo-v1": "list_tasks",
}
FINISH: dict[str, tuple[str, dict[str, Any]]] = {
    "native": ("next", {"result": "Written, in docs/copy.md"}),
    "claude": ("TaskUpdate", {"taskId": "1", "status": "completed"}),
    "checklist": ("CompleteTask", {"taskId": "1"}),
    "queue": ("complete_task", {"task_id": "1", "result_summary": "Written, in docs/copy.md"}),
    "todo": ("complete_todo_task", {"task_id": 1}),
    "todo-v1": ("complete_task", {"user_id": "ann", "task_id": 1}),
}


def fill_list(client: Client, name: str, count: int) -> Toolbox:
    """Fill a typical list: short titles, one-sentence descriptions, a third of the tasks completed by another agent."""
    box = Toolbox(client, ToolCaller(f"{name}-{count}", "ann"))
    steps = [
        {"title": f"Write part {number} of the guide", "description": "Short sentences, an example for each rule."}
        for number in range(1, count + 1)
    ]
    box.call("native", "plan", {"tasks": steps})
    box.call("native", "next")
    for number in range(2, count // 3):
        client.conversation(f"{name}-{count}", actor="bob").complete(str(number))
    return box


def sizes(client: Client, name: str) -> list[int]:
    listed: list[int] = []
    for count in LENGTHS:
        reply = fill_list(client, name, count).call(name, LIST[name], {"user_id": "ann"} if name == "todo-v1" else None)
        assert not reply.refused
        listed.append(count_tokens(reply.text))
    finished = fill_list(client, f"{name}-end", 7).call(name, *FINISH[name])
    assert not finished.refused
    return [count_tokens(to_json(tools.definitions(name, "anthropic"))), count_tokens(finished.text), *listed]


def test_cost_table_is_measured(client: Client) -> None:
    lengths = " | ".join(f"list of {count:,}" for count in LENGTHS)
    lines = [f"| dialect | definitions | finish one | {lengths} |", "|---|---|---|---|---|---|"]
    measured = {name: sizes(client, name) for name in tools.names()}
    lines += [f"| `{name}` | {' | '.join(f'{one:,}' for one in row)} |" for name, row in measured.items()]
    table = "\n".join(lines) + "\n"
    text = PAGE.read_text("utf-8")
    head, _, rest = text.partition(MARKS[0])
    _, _, tail = rest.partition(MARKS[1])
    wanted = f"{head}{MARKS[0]}{table}{MARKS[1]}{tail}"
    if os.environ.get("PUNCHLIST_WRITE"):
        PAGE.write_text(wanted, "utf-8")
    assert text == wanted, "PUNCHLIST_WRITE=1 pytest tests/unit/client/punchlist/tools/test_sizes.py"
    assert max(one for row in measured.values() for one in row) <= MAX_TOKENS
    assert measured["native"][0] <= 1_000
    assert measured["native"][1] <= 120
