"""The endpoints under `/api/agent`, with the exact response formats of the older design."""

from pathlib import Path

from punchlist_testing.web import Web, served

TASKS = "/api/agent/tasks"
MEMBERS = ["id", "description", "status", "sequence", "createdAt", "updatedAt", "resultSummary", "failReason"]


async def test_tasks_are_an_array_in_list_order(web: Web) -> None:
    assert (await web.ask("GET", TASKS)).value == []
    assert (await web.ask("GET", f"{TASKS}?conversation=unused")).value == []
    tasks = [{"title": "one"}, {"title": "two", "description": "long"}, {"title": "three", "status": "paused"}]
    await web.ask("POST", "/api/v1/conversations/default/tasks", {"tasks": tasks})
    await web.ask("POST", "/api/v1/conversations/default/tasks/1/status", {"status": "failed", "fail_reason": "no"})
    await web.ask("POST", "/api/v1/conversations/default/tasks/3/move", {"before": "1"})
    tasks = (await web.ask("GET", TASKS)).value
    assert [list(task) for task in tasks] == [MEMBERS] * 3
    assert [(task["id"], task["sequence"], task["description"], task["status"]) for task in tasks] == [
        ("3", 1, "three", "pending"),
        ("1", 2, "one", "failed"),
        ("2", 3, "two\nlong", "pending"),
    ]
    assert (tasks[1]["failReason"], tasks[0]["failReason"], tasks[0]["resultSummary"]) == ("no", None, None)
    assert tasks[1]["updatedAt"] >= tasks[1]["createdAt"] > 1_700_000_000_000


async def test_completion_in_serial_list_starts_next_task(tmp_path: Path) -> None:
    async with served(tmp_path, conversation="plan") as web:
        await web.ask("PUT", "/api/v1/conversations/plan", {"settings": {"execution": "serial"}})
        await web.ask("POST", "/api/v1/conversations/plan/tasks", {"tasks": [{"title": "one"}, {"title": "two"}]})
        done = (await web.ask("POST", f"{TASKS}/1/complete", {"resultSummary": "yes"})).value
        assert list(done) == ["success", "task", "nextTaskId"]
        assert (done["success"], done["nextTaskId"], list(done["task"])) == (True, "2", MEMBERS)
        assert (done["task"]["status"], done["task"]["resultSummary"], done["task"]["sequence"]) == (
            "completed",
            "yes",
            1,
        )
        assert [task["status"] for task in (await web.ask("GET", TASKS)).value] == ["completed", "in_progress"]
        last = (await web.ask("POST", f"{TASKS}/2/complete")).value
        assert (last["nextTaskId"], last["task"]["resultSummary"]) == (None, None)


async def test_task_is_deleted_and_missing_one_rejected(web: Web) -> None:
    await web.ask("POST", "/api/v1/conversations/default/tasks", {"title": "one"})
    assert (await web.ask("DELETE", f"{TASKS}/1")).value == {"success": True}
    assert (await web.ask("GET", TASKS)).value == []
    guid = "0f9619ff-8b86-d011-b42d-00c04fc964ff"
    for verb, path in (
        ("DELETE", "/1"),
        ("POST", "/1/complete"),
        ("DELETE", f"/{guid}"),
        ("POST", f"/{guid}/complete"),
    ):
        assert (await web.ask(verb, TASKS + path)).status == 404
    for query in ("?x=1", "?conversation=a&conversation=b"):
        assert (await web.ask("GET", TASKS + query)).status == 422
    for body in ({"resultSummary": 1}, {"result": "x"}):
        assert (await web.ask("POST", f"{TASKS}/1/complete", body)).status == 422


async def test_list_token_defaults_to_its_list(web: Web) -> None:
    await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": "of the plan"})
    token = f"Bearer {web.session(list='plan')}"
    assert [task["description"] for task in (await web.ask("GET", TASKS, Authorization=token)).value] == ["of the plan"]
    assert (await web.ask("GET", f"{TASKS}?conversation=default", Authorization=token)).status == 403


async def test_named_link_completes_under_its_name(web: Web) -> None:
    await web.ask("POST", "/api/v1/conversations/plan/tasks", {"title": "one"})
    ann = f"Bearer {web.session(list='plan', name='ann')}"
    assert (await web.ask("POST", f"{TASKS}/1/complete", {}, Authorization=ann)).status == 200
    events = (await web.ask("GET", "/api/v1/conversations/plan/events?after=0")).value["events"]
    assert events[-1]["actor"] == "ann"


async def test_second_completion_keeps_the_first_result(web: Web) -> None:
    await web.ask("POST", "/api/v1/conversations/default/tasks", {"title": "one"})
    assert (await web.ask("POST", f"{TASKS}/1/complete", {"resultSummary": "first"})).status == 200
    second = await web.ask("POST", f"{TASKS}/1/complete", {"resultSummary": "second"})
    assert (second.status, second.value["resultSummary"], "first" in second.value["detail"]) == (409, "first", True)
    for body in ({"resultSummary": "first"}, None):
        again = await web.ask("POST", f"{TASKS}/1/complete", body)
        assert (again.status, again.value["task"]["resultSummary"]) == (200, "first")


async def test_gated_completion_reports_its_gate(web: Web) -> None:
    task = {"title": "Deploy", "gate": {"yes": True}}
    await web.ask("POST", "/api/v1/conversations/default/tasks", task)
    done = (await web.ask("POST", f"{TASKS}/1/complete", {"resultSummary": "deployed"})).value
    assert (done["success"], done["task"]["status"], done["task"]["waitsFor"]) == (True, "pending", "yes")
    assert done["note"] == "recorded; it counts as completed once a person says yes"
    assert (await web.ask("GET", TASKS)).value[0]["waitsFor"] == "yes"
    again = await web.ask("POST", f"{TASKS}/1/complete", {"resultSummary": "again"})
    assert again.status == 409
    assert "Task #1 is already handed in and waits for a person's yes" in again.value["detail"]
