from pathlib import Path

import pytest

import punchlist
from punchlist import Client, connect, connect_async
from punchlist.connection.options import Options
from punchlist.tools import AsyncToolbox, Toolbox, ToolCaller
from punchlist_testing.daemon import Running, Spawned, running_daemon
from punchlist_testing.repositories import repository, worktree


def test_checklist_uses_the_environments_list(client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    reply = Toolbox(client).call("checklist", "AddTask", {"title": "One"})
    assert reply.text == "Error: Task list is not available (no conversation context)."
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "elsewhere")
    reply = Toolbox(client).call("checklist", "AddTask", {"title": "One"})
    assert reply.text == '{"id":"1","title":"One","description":"","done":false}'
    assert len(client.conversation("elsewhere").list()) == 1


@pytest.mark.parametrize(
    ("dialect", "tool", "text"),
    [
        ("claude", "TaskList", "No tasks found.\n(conversation: around)"),
        ("queue", "list_tasks", '{"tasks":[],"conversation":"around"}'),
        ("todo", "list_todo_tasks", "[]"),
        ("native", "tasks", "No tasks, version 0\n(conversation: around)"),
    ],
)
def test_fallback_list_is_named(
    dialect: str, tool: str, text: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUNCHLIST_CONVERSATION", "around")
    assert Toolbox(client).call(dialect, tool).text == text


def test_missing_list_comes_with_advice(client: Client) -> None:
    reply = Toolbox(client).call("claude", "TaskList")
    assert reply.refused
    assert "PUNCHLIST_CONVERSATION" in reply.text


def test_outside_a_project_advice_is_one_sentence(client: Client) -> None:
    client.conversation("default").add("Private")
    reply = Toolbox(client).call("native", "tasks")
    assert reply.refused
    assert reply.text.count("punch init") == 1
    assert "Private" not in reply.text


def test_worktrees_share_the_repositorys_list(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    website, other = repository(tmp_path / "website"), repository(tmp_path / "other")
    linked = worktree(website, tmp_path / "fix")
    made = Toolbox(client, ToolCaller(directory=str(website))).call(
        "claude", "TaskCreate", {"subject": "A", "description": "d"}
    )
    assert "(conversation: website)" in made.text
    monkeypatch.chdir(linked)
    assert "#1: A" in Toolbox(client).call("claude", "TaskList").text
    assert "No tasks found." in Toolbox(client, ToolCaller(directory=str(other))).call("claude", "TaskList").text
    gone = Toolbox(client, ToolCaller(directory=str(website / "gone"))).call("claude", "TaskList")
    assert gone.refused and f"The project's directory {website / 'gone'} is gone" in gone.text


def test_users_in_one_repository_have_own_lists(daemon: Running, tmp_path: Path) -> None:
    place = str(repository(tmp_path / "website"))
    made: list[str] = []
    for user in (None, "alice", "bob"):
        options: Options = {"socket": daemon.socket, "autostart": False}
        if user:
            options["user"] = user
        with connect(**options) as client:
            box = Toolbox(client, ToolCaller(user=user, directory=place))
            reply = box.call("claude", "TaskCreate", {"subject": f"For {user}", "description": "d"})
            assert not reply.refused, reply.text
            assert "Task #1 created" in reply.text, "users' lists don't conflict"
            assert box.call("claude", "TaskList").text.count("For ") == 1
            made.append(reply.text.rpartition("conversation: ")[2].rstrip(")"))
    assert made[0] == "website"
    assert made[1] == made[2]
    assert made[1].startswith("my:website-")


def test_replies_name_the_list_when_it_changes(client: Client, tmp_path: Path) -> None:
    website, other = (str(repository(tmp_path / name)) for name in ("website", "other"))
    box = Toolbox(client, ToolCaller(directory=website, actor="claude-code/7f3c1a"))
    told = [box.call("native", "tasks").text.splitlines()[-1] for _ in range(2)]
    box.caller = box.caller._replace(directory=other)
    told += [box.call("native", "tasks").text.splitlines()[-1] for _ in range(2)]
    assert [line.startswith("(conversation: ") for line in told] == [True, False, True, False]
    assert told[0] == "(conversation: website)"


def test_outside_a_project_users_have_default_list(daemon: Running) -> None:
    with connect(socket=daemon.socket, autostart=False, user="alice") as client:
        Toolbox(client, ToolCaller(user="alice")).call("checklist", "AddTask", {"title": "Mine"})
        with punchlist.conversation("scoped"):
            Toolbox(client, ToolCaller(user="alice")).call("checklist", "AddTask", {"title": "There"})
        found = {one.conversation for one in client.conversations().conversations}
        assert found == {"of:alice:default", "of:alice:scoped"}


def test_project_file_naming_own_list_needs_permission(daemon: Running, tmp_path: Path) -> None:
    (tmp_path / ".punchlist.toml").write_text('conversation = "taxes"')
    for user, refused in (("bob", False), ("alice", True), ("bob", False)):
        with connect(socket=daemon.socket, autostart=False, user=user) as client:
            if refused:
                client.conversation("my:taxes").add("Secret")
            reply = Toolbox(client, ToolCaller(user=user)).call("native", "tasks")
            assert (reply.refused, "Secret" in reply.text) == (refused, False), "bob's permission isn't alice's"


def test_project_file_naming_existing_list_needs_permission(client: Client, tmp_path: Path) -> None:
    client.conversation("private").add("Secret")
    (tmp_path / ".punchlist.toml").write_text('conversation = "private"')
    for _ in range(2):
        refused = Toolbox(client).call("native", "tasks")
        assert refused.refused
        assert "Secret" not in refused.text
        assert "punch init --trust" in refused.text
    (tmp_path / ".punchlist.toml").write_text('conversation = "default"')
    assert Toolbox(client).call("native", "tasks").refused, "no project can use the list default"


def test_project_file_naming_new_list_needs_no_permission(client: Client, tmp_path: Path) -> None:
    (tmp_path / ".punchlist.toml").write_text('conversation = "website"')
    box = Toolbox(client)
    assert not box.call("claude", "TaskCreate", {"subject": "One", "description": "d"}).refused
    assert "#1: One" in box.call("claude", "TaskList").text


def test_scope_names_the_list(client: Client) -> None:
    with punchlist.conversation("scoped"):
        Toolbox(client).call("checklist", "AddTask", {"title": "Here"})
    assert [task.title for task in client.conversation("scoped").list()] == ["Here"]


def test_unknown_tool_or_dialect_gets_reply(box: Toolbox) -> None:
    assert "available: TaskCreate, TaskUpdate" in box.call("claude", "TaskDestroy").text
    assert "available: native, checklist" in box.call("klingon", "x").text


def test_changes_are_recorded_for_the_agent(client: Client, box: Toolbox) -> None:
    box.call("checklist", "AddTask", {"title": "Mine"})
    assert {change.actor for change in client.read(0)} == {"ann"}


def test_toolbox_survives_a_killed_daemon(process: Spawned) -> None:
    with connect(socket=process.socket, autostart=False, timeout_s=0.3) as client:
        box = Toolbox(client, ToolCaller("work", "ann"))
        assert not box.call("claude", "TaskCreate", {"subject": "One", "description": "d"}).refused
        process.kill()
        down = box.call("claude", "TaskList")
        assert down.refused
        assert "nothing is lost" in down.text
        process.start()
        assert box.call("claude", "TaskList").text == "☐ #1: One [pending]"


def test_confirmation_token_works_in_each_dialect(daemon: Running) -> None:
    with connect(socket=daemon.socket, autostart=False, confirm=True) as client:
        box = Toolbox(client, ToolCaller("work", "ann"))
        deleters: list[tuple[str, str, dict[str, str]]] = [
            ("claude", "TaskUpdate", {"taskId": "1", "status": "deleted"}),
            ("checklist", "ClearTasks", {}),
            ("queue", "delete_task", {"task_id": "1"}),
            ("native", "update", {"id": "1", "status": "deleted"}),
        ]
        for dialect, tool, arguments in deleters:
            client.conversation("work").add("Doomed")
            ids = [task.id for task in client.conversation("work").list()]
            given = {name: ids[0] if value == "1" else value for name, value in arguments.items()}
            asked = box.call(dialect, tool, given)
            assert asked.refused
            token = asked.text.split("confirm=")[1].split('"')[0].strip()
            assert not box.call(dialect, tool, {**given, "confirm": token}).refused, asked.text
            assert client.conversation("work").list() == []


async def test_async_toolbox_runs_the_same_tools(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon, connect_async(socket=daemon.socket, autostart=False) as client:
        box = AsyncToolbox(client, ToolCaller("work", "ann"))
        assert (await box.call("claude", "TaskGet", {"id": 9})).text == "task 9 not found"
        assert (await box.call("claude", "TaskList")).text == "No tasks found."
        elsewhere = await box.call("claude", "TaskList", caller=ToolCaller("elsewhere"))
        assert elsewhere.text == "No tasks found."
