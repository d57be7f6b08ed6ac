import json
import os
import random
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from punchlist import AsyncClient, connect_async
from punchlist_schemas import directory
from punchlist_testing.daemon import running_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.repositories import repository

require_package("mcp")
mcp: Any = import_module("mcp")

from punchlist.tools.model import Problem
from punchlist_apps.mcp.users import ALL_USERS, Grant, Users, UsersFile, select_user

ANN, BOB = "a" * 16, "b" * 16


async def rows(session: Any, user: str, **more: Any) -> Any:
    answer = await session.call_tool("list_tasks", {"user_id": user}, **more)
    assert not answer.is_error, answer
    return [row["title"] for row in answer.structured_content["tasks"]]


@pytest.mark.parametrize("conversation", [None, "todos"])
async def test_one_server_separates_users_lists(connect: Any, conversation: str | None) -> None:
    seed = random.randrange(1 << 32)
    chance, users = random.Random(seed), ["alice", "bob", "Bob", "../../bob", "bob carol", "é", "u" * 128]
    made: dict[str, list[str]] = {user: [] for user in users}
    async with connect("todo-v1", conversation=conversation) as host:
        for number in range(70):
            user = chance.choice(users)
            title = f"{users.index(user)}/{number}"
            added = await host.session.call_tool("add_task", {"user_id": user, "title": title})
            made[user].append(title)
            assert added.structured_content["task_id"] == len(made[user]), f"seed {seed}"
        for user in users:
            assert await rows(host.session, user) == made[user], f"seed {seed}"
        done = await host.session.call_tool("complete_task", {"user_id": "carol", "task_id": 1})
        assert done.is_error and "not found" in done.content[0].text
        name = conversation or "default"
        ids = {one.conversation for one in (await host.client.conversations()).conversations}
        assert len(ids) == len([user for user in users if made[user]]) and f"of:bob:{name}" in ids


async def test_concurrent_users_do_not_mix(connect: Any) -> None:
    async with connect("todo-v1", conversation=None) as host:

        async def work(user: str) -> None:
            for number in range(5):
                await host.session.call_tool("add_task", {"user_id": user, "title": f"{user} {number}"})
                assert all(title.startswith(user) for title in await rows(host.session, user))

        async with anyio.create_task_group() as group:
            for user in ("ann", "bob", "carol", "dan"):
                group.start_soon(work, user)
        assert [len(await rows(host.session, user)) for user in ("ann", "bob", "carol", "dan")] == [5] * 4


@pytest.mark.parametrize("user", ["alice", None])
async def test_each_user_has_repository_list(connect: Any, tmp_path: Path, user: str | None) -> None:
    """This holds for a server limited to alice with `--user`, and for calls that name the user."""
    place = repository(tmp_path / "website")
    meant = directory.find_list(str(place))
    assert meant is not None
    async with connect("todo-v1", user=user, conversation=None, directory=str(place)) as host:
        await host.client.as_user("bob").conversation(meant.conversation).add("bob's, under the repository's own id")
        for name in ["alice"] if user else ["alice", "carol"]:
            added = await host.session.call_tool("add_task", {"user_id": name, "title": name})
            assert not added.is_error, added
            assert await rows(host.session, name) == [name]
        ids = {one.conversation for one in (await host.client.conversations()).conversations}
        assert ids >= {meant.conversation, f"of:alice:{meant.conversation}"}
    other = repository(tmp_path / "other")
    async with connect("todo-v1", user=user, conversation=None, directory=str(other)) as host:
        assert await rows(host.session, "alice") == []


@pytest.mark.parametrize("user", ["", "u" * 129, "u" * 10_000, "a\nb", "\x1b[2J", "\u202e", "\ufffd"])
async def test_invalid_user_name_is_rejected(connect: Any, user: str) -> None:
    async with connect("todo-v1", conversation=None) as host:
        refused = await host.session.call_tool("add_task", {"user_id": user, "title": "x"})
        assert refused.is_error
        assert not (await host.client.conversations()).conversations


async def test_tools_without_user_id_use_the_request(connect: Any) -> None:
    async with connect("todo", conversation=None) as host:
        for user in ("ann", "bob"):
            meta = {"punchlist/user": user}
            await host.session.call_tool("create_todo_task", {"title": user}, meta=meta)
            listed = await host.session.call_tool("list_todo_tasks", {}, meta=meta)
            assert [row["title"] for row in listed.structured_content["tasks"]] == [user]
        ids = {one.conversation for one in (await host.client.conversations()).conversations}
        assert ids == {"of:ann:default", "of:bob:default"}


async def test_list_of_another_user_cannot_be_named(connect: Any) -> None:
    async with connect("todo-v1", conversation=None) as host:
        await host.session.call_tool("add_task", {"user_id": "bob", "title": "secret"})
        meta = {"punchlist/conversation": "of:bob:default"}
        for tool, more in (("list_tasks", {}), ("add_task", {"title": "x"}), ("complete_task", {"task_id": 1})):
            refused = await host.session.call_tool(tool, {"user_id": "ann", **more}, meta=meta)
            assert refused.is_error and "secret" not in refused.content[0].text
        both = {"punchlist/user": "bob"}
        assert (await host.session.call_tool("list_tasks", {"user_id": "ann"}, meta=both)).is_error
        assert await rows(host.session, "bob") == ["secret"]


async def test_a_server_of_one_user_serves_no_other(connect: Any) -> None:
    async with connect("todo-v1", user="ann", conversation=None) as host:
        refused = await host.session.call_tool("list_tasks", {"user_id": "bob"})
        assert refused.is_error and "does not allow the user 'bob'" in refused.content[0].text
        assert await rows(host.session, "ann") == []


# grants


def test_token_names_only_its_users() -> None:
    several = Grant(frozenset({"ann", "bob"}))
    assert select_user(ALL_USERS, []) is None
    assert select_user(ALL_USERS, ["eve"]) == select_user(ALL_USERS, ["eve", "eve"]) == "eve"
    assert select_user(several, ["bob"]) == "bob"
    assert select_user(Grant(frozenset({"ann"})), []) == "ann"
    for grant, named in ((several, []), (several, ["eve"]), (ALL_USERS, ["a", "b"]), (ALL_USERS, [5]), (several, [""])):
        with pytest.raises(Problem):
            select_user(grant, named)


@pytest.fixture
def users_file(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(json.dumps({ANN: ["ann"], BOB: "*"}))
    path.chmod(0o600)
    return path


def test_an_unusable_table_is_reported_once(users_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = UsersFile(str(users_file))
    users_file.chmod(0o640)
    assert [table.find_grant(ANN.encode()), table.find_grant(BOB.encode())] == [None, None]
    users_file.unlink()
    assert table.find_grant(ANN.encode()) is None
    exposed, missing = capsys.readouterr().err.splitlines()
    assert exposed.startswith("punch: all clients are rejected: ") and exposed.endswith("chmod 600")
    assert f"{users_file} can't be read (No such file or directory)" in missing


def test_changed_token_table_is_read_again(users_file: Path) -> None:
    table = UsersFile(str(users_file))
    table.check()
    assert table.find_grant(ANN.encode()) == Grant(frozenset({"ann"})) and table.find_grant(BOB.encode()) == ALL_USERS
    assert table.find_grant(b"") is None and table.find_grant(b"c" * 16) is None
    users_file.chmod(0o640)
    assert table.find_grant(ANN.encode()) is None, "another user could read it"
    users_file.chmod(0o600)
    users_file.write_text(json.dumps({ANN: ["eve"]}))
    assert table.find_grant(ANN.encode()) == Grant(frozenset({"eve"})) and table.find_grant(BOB.encode()) is None
    users_file.unlink()
    assert table.find_grant(ANN.encode()) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"short": "*"}', f'{{"{ANN}": []}}', f'{{"{ANN}": "ann"}}', f'{{"{ANN}": ["a\\nb"]}}']
)
def test_invalid_table_rejects_all_tokens(users_file: Path, text: str) -> None:
    users_file.write_text(text)
    table = UsersFile(str(users_file))
    with pytest.raises(ValueError, match=str(users_file)):
        table.check()
    assert table.find_grant(ANN.encode()) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_table_of_another_owner_rejects_all_tokens(users_file: Path) -> None:
    os.chown(users_file, 65_534, -1)
    assert UsersFile(str(users_file)).find_grant(ANN.encode()) is None


# connections


async def test_least_recently_used_connection_is_closed(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon, connect_async(socket=daemon.socket, autostart=False) as client:
        users = Users(client, max_connections=2)
        for user in ("ann", "bob", "carol", "ann"):
            async with users.connect(user) as bound:
                await bound.client.conversation("default").add(user)
            assert len(users) <= 2
        served: list[str] = []

        async def call_as_carol() -> None:
            async with users.connect("carol") as carol:
                served.append("carol" if await can_connect(carol.client) else "")

        async with anyio.create_task_group() as group:
            async with users.connect("ann"):
                async with users.connect("bob"):
                    group.start_soon(call_as_carol)
                    await wait_all_tasks_blocked()
                    assert served == [] and len(users) == 2, "both are in use"
        assert served == ["carol"] and len(users) == 2


async def can_connect(client: AsyncClient) -> bool:
    return bool((await client.open()).epoch)


async def test_idle_connections_are_closed(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon, connect_async(socket=daemon.socket, autostart=False) as client:
        users = Users(client, idle_s=0.02)
        async with anyio.create_task_group() as group:
            group.start_soon(users.run)
            async with users.connect("ann") as bound:
                assert await can_connect(bound.client)
            with anyio.fail_after(30):
                while len(users):  # noqa: ASYNC110 - no event reports this
                    await anyio.sleep(0.01)
            async with users.connect("bob") as bound:
                assert await can_connect(bound.client)
                group.cancel_scope.cancel()
