"""The `queue` dialect: the current task, interruptions, and results that are never lost."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from punchlist import Client, SettingsPatch, tools
from punchlist.tools import Toolbox, ToolCaller
from punchlist.tools.budget import MAX_TOKENS, count_tokens


def add(box: Toolbox, *descriptions: str) -> list[Any]:
    return [box.call("queue", "add_task", {"description": one}).data for one in descriptions]


def statuses(client: Client) -> dict[str, str]:
    return {task.id: task.status for task in client.conversation("work").list()}


def configure(client: Client, **settings: Any) -> None:
    client.conversation("work").configure(settings=SettingsPatch(**settings))


def complete(box: Toolbox, task: str, text: str = "done") -> Any:
    return box.call("queue", "complete_task", {"task_id": task, "result_summary": text})


def test_list_without_tasks_becomes_a_queue(client: Client) -> None:
    client.conversation("attached").attach("sess-1")
    client.conversation("chat").append_message("user", "hi")
    for name in ("attached", "chat"):
        box = Toolbox(client, ToolCaller(name, "ann"))
        assert add(box, "One")[0]["nextTask"]["status"] == "in_progress"
        assert client.conversation(name).info().settings.execution == "serial"


def test_list_with_tasks_stays_parallel_with_advice(client: Client, box: Toolbox) -> None:
    client.conversation("work").add("By hand")
    (added,) = add(box, "By an agent")
    assert "punch set execution=serial -c work" in added["note"]
    assert "resume_task 1 starts one" in added["note"]
    assert box.call("queue", "list_tasks").data["note"] == added["note"]
    assert client.conversation("work").info().settings.execution == "manual"
    assert box.call("queue", "resume_task", {"task_id": "1"}).data["nextTask"]["id"] == "1"
    configure(client, execution="serial")
    assert complete(box, "1").data["nextTask"]["id"] == "2"


def test_finishing_and_deleting_return_the_next_task(box: Toolbox) -> None:
    add(box, "One", "Two\nwith all that it takes", "Three", "Four")
    assert complete(box, "1").data["nextTask"] == {
        "id": "2",
        "description": "Two\nwith all that it takes",
        "status": "in_progress",
    }
    assert box.call("queue", "fail_task", {"task_id": "2", "reason": "r"}).data["nextTask"]["id"] == "3"
    assert box.call("queue", "delete_task", {"task_id": "3"}).data["nextTask"]["description"] == "Four"
    last = complete(box, "4").data
    assert (last["nextTask"], "note" in last) == (None, False)


def test_adding_to_idle_queue_returns_started_task(client: Client, box: Toolbox) -> None:
    first, second = add(box, "One", "Two")
    assert (first["nextTask"]["id"], "nextTask" in second) == ("1", False)
    plan = client.conversation("work")
    plan.reopen("1")
    (third,) = add(box, "Three")
    assert third["nextTask"]["id"] == "1"


def test_interruption_runs_before_paused_task(client: Client, box: Toolbox) -> None:
    add(box, "one", "two", "three")
    box.call("queue", "pause_task", {"task_id": "1"})
    (urgent,) = add(box, "URGENT from the user")
    assert (urgent["taskId"], urgent["nextTask"]["id"]) == ("4", "4")
    assert statuses(client) == {"1": "paused", "2": "pending", "3": "pending", "4": "in_progress"}
    resumed = box.call("queue", "resume_task", {"task_id": "1"})
    assert "after task 4" in resumed.data["note"]
    assert complete(box, "4").data["nextTask"]["id"] == "1"
    assert complete(box, "1").data["nextTask"]["id"] == "2"


def test_another_session_finds_a_paused_task(client: Client, box: Toolbox) -> None:
    add(box, "one", "two")
    box.call("queue", "pause_task", {"task_id": "1"})
    listed = Toolbox(client, ToolCaller("work", "bob")).call("queue", "list_tasks").data
    assert listed["paused"] == [{"id": "1", "description": "one"}]
    assert listed["note"] == "Nothing is in progress: task 1 is paused; resume_task 1 goes on with it."
    assert box.call("queue", "resume_task", {"task_id": "2"}).data["nextTask"]["id"] == "2"


def test_stopped_queue_names_failed_task_and_reason(client: Client, box: Toolbox) -> None:
    add(box, "one", "two", "three")
    configure(client, on_failure="stop")
    failed = box.call("queue", "fail_task", {"task_id": "1", "reason": "no key"}).data
    listed = box.call("queue", "list_tasks").data
    assert failed["nextTask"] is None
    assert failed["note"] == listed["note"]
    assert listed["note"] == "The queue has stopped: task 1 has failed (no key). Complete or delete it to go on."
    assert listed["failed"] == [{"id": "1", "description": "one", "reason": "no key"}]
    assert complete(box, "1").data["nextTask"]["id"] == "2"


def test_blocked_queue_names_the_failed_task(box: Toolbox) -> None:
    add(box, "one")
    box.call("queue", "add_task", {"description": "two", "after": ["1"]})
    told = box.call("queue", "fail_task", {"task_id": "1", "reason": "no key"}).data
    assert told["note"] == "No task can start: 1 wait: task 1 has failed. Complete or delete it."


@pytest.mark.parametrize("tool", ["complete_task", "fail_task"])
def test_resuming_never_reopens_finished_tasks(tool: str, client: Client, box: Toolbox) -> None:
    add(box, "one")
    text = {"complete_task": "result_summary", "fail_task": "reason"}[tool]
    box.call("queue", tool, {"task_id": "1", text: "FIRST"})
    refused = box.call("queue", "resume_task", {"task_id": "1"})
    assert refused.refused
    assert "(FIRST): add_task what is to be done again" in refused.text
    task = client.conversation("work").get("1")
    assert "FIRST" in (task.result_summary, task.fail_reason)
    assert task.status in ("completed", "failed")


def test_second_completion_keeps_the_first_result(client: Client, box: Toolbox) -> None:
    add(box, "one", "two")
    assert not complete(box, "1", "FIRST").refused
    assert not complete(box, "1", "FIRST").refused
    second = complete(Toolbox(client, ToolCaller("work", "bob")), "1", "SECOND")
    assert second.refused
    assert second.data["error"] == ("task 1 is completed already (ann completed it), and its text stays: FIRST")
    assert client.conversation("work").get("1").result_summary == "FIRST"


def test_missing_task_names_who_ended_it(client: Client, box: Toolbox) -> None:
    add(box, "one", "two")
    bob = client.conversation("work", actor="bob")
    bob.delete("2")
    assert complete(box, "2").data["error"] == "task 2 not found: bob deleted it"
    bob.clear()
    assert complete(box, "1").data["error"] == "task 1 not found: bob cleared the list"
    assert complete(box, "9").data["error"] == "task 9 not found: bob cleared the list"


def test_retried_failure_is_reported(client: Client, box: Toolbox) -> None:
    add(box, "one")
    configure(client, max_attempts=2)
    told = box.call("queue", "fail_task", {"task_id": "1", "reason": "r"}).data
    assert told["message"] == "Task 1 failed and is tried again: it is in_progress."
    assert told["nextTask"]["id"] == "1"
    assert box.call("queue", "fail_task", {"task_id": "1", "reason": "r2"}).data["message"] == "Task 1 marked failed."


def test_list_is_in_execution_order(box: Toolbox) -> None:
    add(box, "one", "two", "three")
    box.call("queue", "add_task", {"description": "four", "priority": "high"})
    box.call("queue", "prioritize_task", {"task_id": "3"})
    shown = box.call("queue", "list_tasks").data["tasks"]
    assert [(task["id"], task.get("priority")) for task in shown] == [
        ("1", None),
        ("3", "urgent"),
        ("4", "high"),
        ("2", None),
    ]
    order: list[str] = []
    current: Any = shown[0]
    while current:
        order.append(current["id"])
        current = complete(box, current["id"]).data["nextTask"]
    assert order == [task["id"] for task in shown]


def test_added_task_keeps_dependencies_context_and_parent(client: Client, box: Toolbox) -> None:
    add(box, "one")
    given = {"description": "two", "after": ["1"], "context": {"pr": 117}, "parent": "1", "priority": "low"}
    assert box.call("queue", "add_task", given).data["taskId"] == "2"
    task = client.conversation("work").get("2")
    assert (task.blocked_by, task.metadata, task.parent, task.priority) == (("1",), {"pr": 117}, "1", "low")
    assert box.call("queue", "list_tasks").data["tasks"][1]["after"] == ("1",)
    assert complete(box, "1").data["nextTask"] == {
        "id": "2",
        "description": "two",
        "status": "in_progress",
        "priority": "low",
        "parent": "1",
        "path": "one › two",
        "context": {"pr": 117},
    }


def test_claimed_task_is_not_given_to_another(client: Client, box: Toolbox) -> None:
    client.conversation("work").add_many(["one", "two", "three"])
    configure(client, execution="serial")
    client.conversation("work").take("bob", "1", keep=True)
    told = complete(box, "3").data
    assert told["nextTask"] is None
    assert "bob works on it" in told["note"]


def session(client: Client, name: str, **caller: Any) -> Toolbox:
    return Toolbox(client, ToolCaller("work", name, **caller))


def list_queue(box: Toolbox) -> Any:
    return box.call("queue", "list_tasks").data


def test_only_one_session_gets_the_task(client: Client, box: Toolbox) -> None:
    bob = session(client, "bob")
    add(box, "one")
    assert "nextTask" not in add(bob, "two")[0]
    shown = list_queue(bob)
    assert shown["tasks"][0] == {"id": "1", "description": "one", "status": "in_progress", "owner": "ann"}
    assert shown["note"] == "Task 1 is current, and ann works on it."
    assert "owner" not in list_queue(box)["tasks"][0]
    assert complete(box, "1").data["nextTask"]["id"] == "2"
    refused = complete(bob, "2")
    assert refused.data["error"] == "task 2 is being worked on by ann: leave it to them"
    assert not complete(box, "2").refused


def test_concurrent_sessions_share_no_task(client: Client) -> None:
    plan = client.conversation("work")
    plan.add_many([f"task {number}" for number in range(12)])
    configure(client, execution="serial")
    boxes = [session(client, name) for name in ("ann", "bob", "eve")]
    done: list[str] = []
    while plan.info().counts.completed < 12:
        current = plan.list(status="in_progress") or plan.list(ready=True)
        if not plan.list(status="in_progress"):
            plan.start(current[0].id)
        with ThreadPoolExecutor(3) as threads:
            shown = list(threads.map(list_queue, boxes))
        own = [at for at, each in enumerate(shown) if "owner" not in each["tasks"][0]]
        assert len(own) == 1, "one session has the current task"
        done.append(shown[own[0]]["tasks"][0]["id"])
        plan.set_status(done[-1], "completed", fence=plan.get(done[-1]).fence)
    assert done == [str(number) for number in range(1, 13)]


def test_released_task_goes_to_another_session(client: Client, box: Toolbox) -> None:
    bob = session(client, "bob")
    add(box, "one")
    assert "owner" in list_queue(bob)["tasks"][0]
    client.conversation("work").release("1", "ann")
    assert "owner" not in list_queue(bob)["tasks"][0]
    assert not complete(bob, "1").refused


def test_persons_task_is_not_given_to_agents(client: Client, box: Toolbox) -> None:
    client.conversation("work").add("one")
    configure(client, execution="serial")
    client.conversation("work", actor="root").take("root", "1", keep=True)
    shown = list_queue(box)
    assert (shown["tasks"][0]["owner"], shown["note"]) == ("root", "Task 1 is current, and root works on it.")
    assert complete(box, "1").data["error"] == "task 1 is being worked on by root: leave it to them"


def test_agents_without_a_name_share_the_current_task(client: Client) -> None:
    several = session(client, "host", is_nameless=True)
    assert add(several, "one", "two")[0]["nextTask"]["id"] == "1"
    assert "owner" not in list_queue(several)["tasks"][0]
    assert complete(several, "1").data["nextTask"]["id"] == "2"


def test_restarted_agent_sees_its_task_unchanged(client: Client, box: Toolbox) -> None:
    add(box, "the whole")
    long = "part\n" + "x" * 15_000
    given = {"description": long, "parent": "1", "context": {"pr": 117}}
    handed = box.call("queue", "add_task", given).data["nextTask"]
    place = {"parent": "1", "path": "the whole › part"}
    assert handed == {"id": "2", "description": long, "status": "in_progress", "context": {"pr": 117}, **place}
    assert list_queue(session(client, "ann"))["tasks"][0] == handed


def test_text_with_json_escapes_is_listed(client: Client, box: Toolbox) -> None:
    box.call("queue", "add_task", {"description": "one\n" + "\x01\n" * 30_000, "context": {"k": "v" * 15_000}})
    reply = box.call("queue", "list_tasks")
    assert reply.data["tasks"][0]["id"] == "1"
    assert count_tokens(reply.text) <= MAX_TOKENS


def test_notes_name_only_offered_tools(client: Client) -> None:
    (three,) = tools.offered("queue", ["add_task", "list_tasks", "complete_task"])
    box = session(client, "ann")
    box.call(three, "add_task", {"description": "one"})
    client.conversation("work").pause("1")
    note = "Nothing is in progress: task 1 is paused; punch start 1, which a person runs, goes on with it."
    assert box.call(three, "list_tasks").data["note"] == note


def test_prompt_says_when_to_add_a_task() -> None:
    for offered in (None, ["add_task", "list_tasks", "complete_task"]):
        told = tools.prompt("queue", offered)
        assert "add_task each step of a request that takes several, and what is to be done later" in told
        assert "add_task it, tell the user so, and go on with the current one" in told
