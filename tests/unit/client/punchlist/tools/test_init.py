from pathlib import Path

import pytest

from punchlist import tools
from punchlist_testing.daemon import Running
from punchlist_testing.repositories import repository


def test_single_calls_need_no_toolbox(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_SOCKET", daemon.socket)
    first = tools.call("todo", "create_todo_task", {"title": "Milk"}, conversation="c", user="ann")
    asked = tools.call("todo", "delete_todo_task", {"task_id": 1}, conversation="c", user="ann")
    assert first.data["id"] == 1
    assert asked.question
    done = tools.call(
        "todo", "delete_todo_task", {"id": 1, "confirm": asked.question.token}, conversation="c", user="ann"
    )
    assert done.data["status"] == "deleted"


def test_missing_daemon_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_SOCKET", str(tmp_path / "none.sock"))
    monkeypatch.setenv("PUNCHLIST_AUTOSTART", "0")
    reply = tools.call("claude", "TaskList", conversation="c")
    assert reply.refused
    assert "can't be reached" in reply.text


def test_definitions_of_several_dialects_make_one_list() -> None:
    names = [one["name"] for one in tools.definitions(["native", "checklist"])]
    assert names[:2] == ["plan", "next"]
    assert names[-1] == "ClearTasks"
    assert [one["name"] for one in tools.definitions(["native", "checklist"], tools=["AddTask"])] == ["AddTask"]
    assert "AddTask" in tools.prompt("checklist", tools=["AddTask"])
    assert "CompleteTask" not in tools.prompt("checklist", tools=["AddTask"])


def test_user_id_limits_the_call(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_SOCKET", daemon.socket)
    for user in ("ann", "bob"):
        made = tools.call("todo-v1", "add_task", {"user_id": user, "title": user}, conversation="todos")
        assert made.data["task_id"] == 1
    listed = tools.call("todo-v1", "list_tasks", {"user_id": "bob"}, conversation="todos")
    assert [row["title"] for row in listed.data] == ["bob"]
    assert tools.call("todo-v1", "list_tasks", {"user_id": "bob"}, conversation="of:ann:todos").refused


def test_memory_of_a_list_is_per_user(daemon: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Actor, list name and process are the same, but each user's list stays separate."""
    monkeypatch.setenv("PUNCHLIST_SOCKET", daemon.socket)
    early = {"tasks": ["early", "next"]}
    tools.call("native", "plan", early, conversation="my:todos", user="bob", actor="zed")
    tools.call("native", "plan", {"tasks": ["one", "two"]}, conversation="my:todos", user="ann")
    assert "Now #1: one" in tools.call("native", "next", conversation="my:todos", user="ann").text
    looked = tools.call("native", "tasks", {"since": "last"}, conversation="my:todos", user="bob")
    assert [task["title"] for task in looked.data["tasks"]] == ["early", "next"], "bob hasn't read the list yet"
    assert "Now #1: early" in tools.call("native", "next", conversation="my:todos", user="bob").text
    for user, done in (("ann", "Now #2: two"), ("bob", "Now #2: next")):
        assert done in tools.call("native", "next", {"result": "x"}, conversation="my:todos", user=user).text


def test_user_has_own_list_in_a_repository(daemon: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PUNCHLIST_SOCKET", daemon.socket)
    monkeypatch.chdir(repository(tmp_path / "website"))
    assert not tools.call("claude", "TaskCreate", {"subject": "Team's", "description": "d"}, user="team").refused
    for user in ("ann", "bob"):
        made = tools.call("todo-v1", "add_task", {"user_id": user, "title": user})
        assert made.data["task_id"] == 1, made.text
