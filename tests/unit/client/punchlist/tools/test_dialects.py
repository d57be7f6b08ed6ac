"""The transcript of each dialect, compared byte for byte, and rules for all dialects."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, Gate, NewTask, SettingsPatch, connect, tools
from punchlist.tools import Toolbox, ToolCaller
from punchlist.tools.budget import MAX_TOKENS, count_tokens, to_json
from punchlist_testing.daemon import Running

GOLDEN = Path(__file__).resolve().parents[4] / "golden" / "dialects"
USERS = {"todo-v1": {"user_id": "ann"}}
"""Required arguments of a dialect's listing tool."""
LISTERS = {
    "native": "tasks",
    "claude": "TaskList",
    "checklist": "ListTasks",
    "queue": "list_tasks",
    "todo": "list_todo_tasks",
    "todo-v1": "list_tasks",
}


def fill_token(value: Any, token: str) -> Any:
    return json.loads(json.dumps(value).replace("<token>", token))


TRANSCRIPTS = {name: (name,) for name in tools.names() if name != "todo-v1"} | {"todo": ("todo-v1", "todo")}
"""Transcript → its dialects."""


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_dialect_matches_its_transcript(name: str, daemon: Running) -> None:
    spoken = {tool.name: dialect for dialect in tools.offered(TRANSCRIPTS[name]) for tool in dialect.tools}
    steps = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    token = ""
    with connect(socket=daemon.socket, autostart=False, name="ann", user="ann") as client:
        box = Toolbox(client, ToolCaller("golden", "ann", "ann"))
        for step in steps:
            reply = box.call(spoken[step["tool"]], step["tool"], fill_token(step["arguments"], token))
            text, data = reply.text, json.loads(to_json(reply.data))
            if reply.question is not None:
                token = reply.question.token
                text = text.replace(token, "<token>").replace(str(reply.question.expires_at), "0")
                data |= {"confirm": "<token>", "expires_at": 0}
            told = (step["tool"], text, reply.refused)
            assert told == (step["tool"], step["text"], step.get("refused", False))
            if "data" in step:
                assert data == step["data"]


@pytest.mark.parametrize("name", tools.names())
def test_long_list_names_the_call_for_the_rest(name: str, client: Client) -> None:
    plan = client.conversation("long")
    plan.add_many([f"Task number {number} of a list that is far too long for one reply" for number in range(3_000)])
    box = Toolbox(client, ToolCaller("long", "ann"))
    reply = box.call(name, LISTERS[name], USERS.get(name))
    assert count_tokens(reply.text) <= MAX_TOKENS
    assert count_tokens(to_json(reply.data)) <= MAX_TOKENS
    assert "more" in reply.text
    assert "offset=" in reply.text
    offset = int(reply.text.split("offset=")[1].split(" ")[0].split('"')[0])
    rest = box.call(name, LISTERS[name], {**USERS.get(name, {}), "offset": offset})
    assert f"number {offset - 1} " in reply.text
    assert f"number {offset} " in rest.text


@pytest.mark.parametrize("name", tools.names())
def test_longest_texts_stay_within_the_budget(name: str, client: Client) -> None:
    plan = client.conversation("wide")
    ids = [plan.add("W" * 500, description="d" * 65_000).id for _ in range(6)]
    box = Toolbox(client, ToolCaller("wide", "ann"))
    readers = {"native": ("tasks", {"ids": ids}), "claude": ("TaskGet", {"taskId": "1"})}
    readers |= {"todo": ("get_todo_task", {"task_id": 1})}
    listed = (LISTERS[name], USERS.get(name, {}))
    for tool, arguments in [listed, readers.get(name, listed)]:
        reply = box.call(name, tool, arguments)
        assert not reply.refused
        assert count_tokens(reply.text) <= MAX_TOKENS
        assert count_tokens(to_json(reply.data)) <= MAX_TOKENS


@pytest.mark.parametrize("name", tools.names())
@pytest.mark.parametrize("hostile", ["\0", "\ud800", "\u202e", "'; DROP TABLE log; --", "𝔘" * 300, "</tool>", "{}"])
def test_hostile_text_is_kept_or_rejected(name: str, hostile: str, box: Toolbox) -> None:
    adders: dict[str, tuple[str, dict[str, Any]]] = {
        "native": ("plan", {"tasks": [{"title": hostile}]}),
        "claude": ("TaskCreate", {"subject": hostile, "description": hostile}),
        "checklist": ("AddTask", {"title": hostile}),
        "queue": ("add_task", {"description": hostile}),
        "todo": ("create_todo_task", {"title": hostile}),
        "todo-v1": ("add_task", {"user_id": "ann", "title": hostile}),
    }
    reply = box.call(name, *adders[name])
    assert reply.text
    assert "Traceback" not in reply.text


@pytest.mark.parametrize("name", tools.names())
def test_huge_description_is_not_repeated_in_error(name: str, box: Toolbox) -> None:
    huge = "x" * (1 << 20)
    adders: dict[str, tuple[str, dict[str, Any]]] = {
        "native": ("plan", {"tasks": [{"title": "t", "description": huge}]}),
        "claude": ("TaskCreate", {"subject": "t", "description": huge}),
        "checklist": ("AddTask", {"title": "t", "description": huge}),
        "queue": ("add_task", {"description": huge}),
        "todo": ("create_todo_task", {"title": huge}),
        "todo-v1": ("add_task", {"user_id": "ann", "title": "t", "description": huge}),
    }
    reply = box.call(name, *adders[name])
    assert reply.refused
    assert count_tokens(reply.text) < 300
    assert not box.call(name, LISTERS[name], USERS.get(name)).refused


def test_pending_and_completed_todos_add_up(box: Toolbox, client: Client) -> None:
    plan = client.conversation("work")
    plan.add_many(["a", "b", "c", "d", "e"])
    plan.complete("1")
    plan.fail("2", "no key")
    plan.start("3")
    plan.pause("4")
    rows = {
        status: box.call("todo-v1", "list_tasks", {"user_id": "ann", "status": status}).data
        for status in ("all", "pending", "completed")
    }
    assert len(rows["all"]) == len(rows["pending"]) + len(rows["completed"]) == 5
    assert [row["id"] for row in rows["pending"] if row.get("status") == "failed"] == [2]
    assert box.call("todo", "get_todo_task", {"task_id": 2}).data["reason"] == "no key"


@pytest.mark.parametrize(("name", "tool"), [("todo", "list_todo_tasks"), ("todo-v1", "list_tasks")])
def test_omission_row_has_the_usual_form(name: str, tool: str, box: Toolbox, client: Client) -> None:
    client.conversation("work").add_many([f"{'long ' * 90}{number}" for number in range(200)])
    rows = box.call(name, tool, USERS.get(name)).data
    assert rows[-1]["omitted"] == 200 - (len(rows) - 1)
    assert all(set(rows[0]) <= set(row) for row in rows)
    assert box.call("todo", "get_todo_task", {"task_id": rows[-1]["id"]}).refused


def test_all_dialects_work_on_one_list(box: Toolbox) -> None:
    box.call("claude", "TaskCreate", {"subject": "One", "description": "first"})
    box.call("checklist", "AddTask", {"title": "Two"})
    box.call("todo", "create_todo_task", {"title": "Three"})
    box.call("native", "plan", {"tasks": ["Four"]})
    box.call("checklist", "CompleteTask", {"taskId": "2"})
    assert box.call("claude", "TaskList").text.splitlines() == [
        "☐ #1: One [pending]",
        "✓ #2: Two [completed]",
        "☐ #3: Three [pending]",
        "☐ #4: Four [pending]",
    ]


@pytest.fixture
def headings(client: Client) -> None:
    """Two headings, each with a task of the same title. The second heading is finished."""
    plan = client.conversation("work")
    for parent, title in (("1", "Backend"), ("3", "Docs")):
        plan.add(title, metadata={"heading": 2})
        plan.add("tests", parent=parent)
    plan.complete("4")


def test_claude_lists_paths_and_marks_headings(box: Toolbox, headings: None) -> None:
    reply = box.call("claude", "TaskList")
    assert reply.text.splitlines() == [
        "#1: Backend [heading]",
        "☐ #2: Backend › tests [pending]",
        "✓ #3: Docs [completed]",
        "✓ #4: Docs › tests [completed]",
    ]
    assert [(row["subject"], row.get("path")) for row in reply.data["tasks"]] == [
        ("Backend", None),
        ("tests", "Backend › tests"),
        ("Docs", None),
        ("tests", "Docs › tests"),
    ]
    assert [row.get("heading") for row in reply.data["tasks"]] == [True, None, None, None]
    assert box.call("claude", "TaskList", {"offset": 3}).text == "✓ #4: Docs › tests [completed]"


@pytest.mark.parametrize(
    ("dialect", "tool", "member"),
    [
        ("checklist", "ListTasks", "title"),
        ("queue", "list_tasks", "description"),
        ("todo", "list_todo_tasks", "title"),
        ("todo-v1", "list_tasks", "title"),
    ],
)
def test_json_lists_give_paths_and_mark_headings(
    dialect: str, tool: str, member: str, box: Toolbox, headings: None
) -> None:
    data: Any = box.call(dialect, tool, USERS.get(dialect)).data
    rows: list[dict[str, Any]] = data["tasks"] if "tasks" in data else data
    shown = [(row[member], row.get("path"), row.get("heading", False)) for row in rows]
    assert shown[:2] == [("Backend", None, True), ("tests", "Backend › tests", False)]
    assert shown[2:] in ([], [("Docs", None, False), ("tests", "Docs › tests", False)])


def test_checklist_gives_the_path_of_each_task(client: Client, box: Toolbox, headings: None) -> None:
    client.conversation("work").add("more tests", parent="1")
    one = box.call("checklist", "ListTasks", {"taskId": "2"}).data["tasks"][0]
    assert one["path"] == "Backend › tests"
    assert box.call("checklist", "CompleteTasks", {"taskIds": ["2"]}).data["nextTask"]["path"] == "Backend › more tests"


def test_native_marks_headings(box: Toolbox, headings: None) -> None:
    assert box.call("native", "tasks").text.splitlines()[1:] == ["#1 [heading] Backend", "  #2 tests"]


def test_queue_tools_keep_an_existing_list_parallel(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add("before")
    box.call("queue", "add_task", {"description": "after"})
    assert plan.info().settings.execution == "manual"


def test_two_agents_never_get_the_same_task(client: Client, box: Toolbox) -> None:
    other = Toolbox(client, ToolCaller("work", "bob"))
    box.call("native", "plan", {"tasks": ["One", "Two"]})
    first, second = box.call("native", "next"), other.call("native", "next")
    assert {first.data["next"]["id"], second.data["next"]["id"]} == {"1", "2"}


def test_a_reply_of_next_stays_within_120_tokens(client: Client, box: Toolbox) -> None:
    long = [{"title": f"{number}{'t' * 480}", "description": "d" * 9_000, "priority": "urgent"} for number in range(9)]
    box.call("native", "plan", {"tasks": [{"title": "root", "ref": "root"}, *long]})
    for number in range(2, 11):
        client.conversation("work").edit(str(number), add_blocked_by=["1"])
    box.call("native", "update", {"id": "1", "status": "in_progress"})
    Toolbox(client, ToolCaller("work", "bob")).call("claude", "TaskUpdate", {"taskId": "3", "subject": "by bob"})
    client.conversation("work", actor="carl").edit("4", description="by carl")
    reply = box.call("native", "next", {"result": "r" * 5_000})
    assert "unblocked" in reply.text
    assert "Others changed" in reply.text
    assert count_tokens(reply.text) <= 120


def test_next_works_through_a_serial_list(box: Toolbox) -> None:
    for title in ("One", "Two", "Three"):
        box.call("queue", "add_task", {"description": title})
    assert "Now #1: One" in box.call("native", "next").text
    assert "Now #2: Two" in box.call("native", "next", {"result": "r"}).text
    assert "Now #3: Three" in box.call("native", "next", {"failed": "f"}).text
    assert "Nothing left" in box.call("native", "next", {"result": "r"}).text


def test_next_continues_task_of_another_dialect(box: Toolbox) -> None:
    box.call("claude", "TaskCreate", {"subject": "One", "description": "d"})
    box.call("claude", "TaskUpdate", {"taskId": "1", "status": "in_progress"})
    assert "Now #1: One" in box.call("native", "next").text
    assert "#1 done" in box.call("native", "next", {"result": "r"}).text


def test_next_never_takes_another_agents_task(client: Client, box: Toolbox) -> None:
    other = Toolbox(client, ToolCaller("work", "bob"))
    box.call("native", "plan", {"tasks": ["One"]})
    box.call("native", "next")
    assert "Nothing ready: 1 in progress" in other.call("native", "next").text
    assert other.call("native", "next", {"result": "not mine"}).refused
    refused = other.call("native", "update", {"id": "1", "status": "in_progress"})
    assert refused.text == "Refused: task 1 is being worked on by ann: take another one"


def test_paused_queue_is_reported_and_resumed(box: Toolbox) -> None:
    for title in ("One", "Two"):
        box.call("queue", "add_task", {"description": title})
    box.call("queue", "pause_task", {"task_id": "1"})
    box.call("queue", "resume_task", {"task_id": "1"})
    assert box.call("queue", "list_tasks").data["tasks"][0]["status"] == "in_progress"


def test_description_keeps_its_text(box: Toolbox) -> None:
    texts = ["One line", "  padded  ", "x" * 81, "First\nsecond", "\n\nlate", "tab\tbed", "ümläut " * 30]
    for text in texts:
        assert not box.call("queue", "add_task", {"description": text}).refused, text
    shown = [task["description"] for task in box.call("queue", "list_tasks").data["tasks"]]
    assert [" ".join(one.split()) for one in shown] == [" ".join(text.split()) for text in texts]


def test_rejected_update_changes_nothing(box: Toolbox) -> None:
    box.call("claude", "TaskCreate", {"subject": "One", "description": "d"})
    box.call("claude", "TaskCreate", {"subject": "Two", "description": "d", "addBlockedBy": ["1"]})
    reply = box.call("claude", "TaskUpdate", {"taskId": "2", "status": "completed", "subject": "x"})
    assert (reply.refused, reply.data["success"], reply.data["updatedFields"]) == (True, False, [])
    assert box.call("claude", "TaskGet", {"taskId": "2"}).text.startswith("Task #2: Two")


def test_partial_update_reports_what_is_missing(box: Toolbox) -> None:
    box.call("claude", "TaskCreate", {"subject": "One", "description": "d"})
    box.call("claude", "TaskCreate", {"subject": "Two", "description": "d", "addBlockedBy": ["1"]})
    arguments = {"taskId": "2", "status": "completed", "subject": "x", "addBlockedBy": ["1"]}
    reply = box.call("claude", "TaskUpdate", arguments)
    assert reply.text.splitlines() == [
        "Updated task #2 (addBlockedBy)",
        "Refused: task 2 is blocked by #1 One: complete that first, or remove the dependency",
        "Not updated: subject",
    ]
    assert (reply.refused, reply.data["success"]) == (True, False)
    long = box.call("claude", "TaskUpdate", {"taskId": "1", "status": "in_progress", "subject": "x" * 501})
    assert (long.refused, long.data["updatedFields"]) == (True, ["status"])
    assert long.text.splitlines()[-2:] == [
        "Refused: subject is wrong: expected at most 500 characters",
        "Not updated: subject",
    ]


def test_update_of_unknown_task_fails(box: Toolbox) -> None:
    reply = box.call("claude", "TaskUpdate", {"taskId": "9", "status": "completed"})
    assert (reply.refused, reply.data["success"], reply.data["error"]) == (True, False, "task 9 not found")


def test_metadata_can_be_read_back(box: Toolbox) -> None:
    given = {"pr": 117, "files": ["a.py"]}
    box.call("claude", "TaskCreate", {"subject": "One", "description": "d", "metadata": given})
    reply = box.call("claude", "TaskGet", {"taskId": "1"})
    assert reply.data["task"]["metadata"] == given
    assert 'Metadata: {"pr":117,"files":["a.py"]}' in reply.text


def test_last_completion_reports_cleared_list(client: Client, box: Toolbox) -> None:
    client.conversation("work").open(settings=SettingsPatch(auto_clear="when_done"))
    box.call("claude", "TaskCreate", {"subject": "One", "description": "d"})
    reply = box.call("claude", "TaskUpdate", {"taskId": "1", "status": "completed", "owner": "ann"})
    assert reply.text == "Updated task #1\nAll tasks are completed: the list has cleared itself."
    assert not reply.refused


@pytest.mark.parametrize(
    ("name", "tool", "arguments"),
    [
        ("checklist", "CompleteTask", {"taskId": "2"}),
        ("queue", "complete_task", {"task_id": "2", "result_summary": "r"}),
        ("todo", "complete_todo_task", {"task_id": 2}),
        ("todo-v1", "complete_task", {"user_id": "ann", "task_id": 2}),
    ],
)
def test_advice_fits_the_dialect(name: str, tool: str, arguments: dict[str, Any], client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add("One")
    plan.add("Two", blocked_by=["1"])
    assert "blocked by #1 One: complete that first" in box.call(name, tool, arguments).text
    assert "dependency" not in box.call(name, tool, arguments).text
    plan.fail("1", "no key")
    told = box.call(name, tool, arguments)
    assert "blocked by #1 One (failed): complete what has failed, or delete it" in told.text
    assert told.refused


def test_checklist_names_next_task_after_failed_completion(client: Client, box: Toolbox) -> None:
    work = client.conversation("work")
    work.add("Whole")
    work.pause("1")
    work.add("Part", parent="1")
    work.add("Other")
    refused = box.call("checklist", "CompleteTasks", {"taskIds": ["9"]}).data
    assert (refused["ok"], refused["nextTask"]["id"]) == (False, "3")


def test_many_completions_are_one_call(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add_many([NewTask(title=f"{number}", ref=f"{number}") for number in range(200)])
    plan.add("last", blocked_by=["1"])
    before = plan.info().version
    reply = box.call("checklist", "CompleteTasks", {"taskIds": ["201", *(str(number) for number in range(1, 201))]})
    assert (reply.data["ok"], reply.data["remaining"], len(reply.data["completed"])) == (True, 0, 201)
    changes = client.conversation("work").undo(preview=True)
    assert len(changes) == plan.info().version - before == 201


def test_rejected_completion_keeps_the_others(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add_many(["done", "free", "blocker", "mine", "bob's"])
    plan.add("behind", blocked_by=["3"])
    plan.add("gated", gate=Gate(yes=True))
    plan.complete("1")
    plan.take("bob", "5", keep=True)
    box.call("claude", "TaskUpdate", {"taskId": "4", "status": "in_progress"})
    reply = box.call("checklist", "CompleteTasks", {"taskIds": ["1", "2", "4", "5", "6", "7", "9"]})
    assert reply.data["completed"] == ["2", "4"]
    assert {one["id"]: one["error"].split(":")[0] for one in reply.data["failed"]} == {
        "1": "Task already done",
        "5": "Task 5 is being worked on by bob",
        "6": "Task 6 is blocked by #3 blocker",
        "7": "recorded; it counts as completed once a person says yes",
        "9": "Task not found",
    }
    assert (reply.data["remaining"], reply.data["nextTask"]["title"]) == (4, "blocker")


def test_blocked_child_is_completed_after_its_blocker(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add("parent")
    plan.add("part", parent="1", blocked_by=["1"])
    reply = box.call("checklist", "CompleteTasks", {"taskIds": ["2", "1"]})
    assert (reply.data["completed"], reply.data["failed"]) == (["2", "1"], [])


def test_owner_and_active_form_can_be_cleared(client: Client, box: Toolbox) -> None:
    box.call("claude", "TaskCreate", {"subject": "one", "description": "d", "activeForm": "doing"})
    box.call("claude", "TaskUpdate", {"taskId": "1", "owner": "reviewer"})
    seen = box.call("claude", "TaskGet", {"taskId": "1"}).data["task"]
    assert (seen["owner"], seen["activeForm"]) == ("reviewer", "doing")
    # Some models send an empty string for each omitted argument. The call must then clear nothing.
    box.call("claude", "TaskUpdate", {"taskId": "1", "description": "new", "owner": "", "activeForm": ""})
    assert client.conversation("work").get("1").owner == "reviewer"
    cleared = box.call("claude", "TaskUpdate", {"taskId": "1", "owner": "", "activeForm": ""})
    assert cleared.data["updatedFields"] == ["activeForm", "owner"]
    task = client.conversation("work").get("1")
    assert (task.owner, task.active_form) == ("", "")


@pytest.mark.parametrize("name", tools.names())
def test_definitions_have_maximum_lengths(name: str, client: Client) -> None:
    limits = set(re.findall(r'"maxLength":(\d+)', to_json(tools.definitions(name))))
    assert limits <= {"500", "8192", "65536"}
    assert limits & {"500", "65536"}
