"""Lists on several machines, end to end: real daemons, a real NATS server, the public client."""

import os
import sqlite3
import stat
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import errors
from punchlist.calls.cursor import BoardView, Cursor
from punchlist.clients.aio import AsyncClient, AsyncWatch
from punchlist_schemas.results import BoardPush
from punchlist_testing.nats_server import NatsServer, needs_server, running_server
from punchlist_testing.shared_lists import PATIENCE_S, Machines, client, follows
from punchlistd.store.recovery.verify import verify_file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsServer]:
    with running_server(tmp_path_factory.mktemp("nats")) as running:
        yield running


@pytest.fixture
def machines(tmp_path: Path) -> Generator[Machines]:
    with Machines(tmp_path, measured=True).ending() as running:
        yield running


@pytest.fixture
def space() -> str:
    """An unused name for a space."""
    return f"s{os.urandom(4).hex()}"


Members = tuple[AsyncClient, AsyncClient]


@pytest.fixture
async def members(machines: Machines, server: NatsServer, space: str) -> AsyncGenerator[Members]:
    """Two machines in the space."""
    async with client(machines.start("ann")) as ann, client(machines.start("bob")) as bob:
        for one in (ann, bob):
            await one.add_space(space, [server.url])
        yield ann, bob


@pytest.fixture
async def following(members: Members, space: str) -> Members:
    """Two machines in the space, and a list shared by the first one."""
    ann, bob = members
    await ann.conversation("release").add("one")
    await ann.conversation("release").share(space)
    await bob.conversation("release").join(space)
    return members


@needs_server
async def test_two_machines_share_a_list(machines: Machines, server: NatsServer, space: str) -> None:
    async with client(machines.start("ann")) as ann, client(machines.start("bob")) as bob:
        made = await ann.add_space(space, [server.url])
        assert made.made and made.space.server == server.url
        await ann.conversation("release").add_many(["one", "two"])
        shared = await ann.conversation("release").share(space)
        assert (shared.version, shared.posts) == (3, 1)
        assert (await ann.conversation("release").share(space)).posts == 0
        assert not (await bob.add_space(space, [server.url])).made
        assert (await bob.conversation("release").join(space)).version == 3
        await bob.conversation("release").add("three")
        await follows(ann, "release", "one", "two", "three")
        async with ann.conversation("release").claim("ann") as mine:
            assert mine is not None and mine.id == "1"
            with pytest.raises(errors.LeaseHeld):
                async with bob.conversation("release").claim("bob", "1"):
                    pass
        (view,) = await bob.spaces()
        assert (view.state, view.lists[0].conversation, view.unchecked) == ("up", "release", ("sync_interval",))


@needs_server
async def test_min_version_holds_on_another_machine(following: Members) -> None:
    ann, bob = following
    for number in range(20):
        task = await ann.conversation("release").add(f"task {number}")
        version = (await ann.conversation("release").list()).version
        assert (await bob.conversation("release").get(task.id, min_version=version)).title == task.title
        assert (await bob.conversation("release").list(min_version=version)).version >= version


@needs_server
async def test_left_list_is_read_only_until_joined(following: Members, space: str) -> None:
    ann, bob = following
    left = await bob.conversation("release").leave(keep_as="copy")
    assert left.kept_as == "copy"
    with pytest.raises(errors.Forbidden, match="punch join release"):
        await bob.conversation("release").add("nobody sees this")
    await bob.conversation("copy").add("mine")
    await ann.conversation("release").add("two")
    await bob.conversation("release").join(space)
    await follows(bob, "release", "one", "two")
    await follows(bob, "copy", "one", "mine")
    with pytest.raises(errors.Forbidden, match="not empty"):
        await bob.conversation("release").leave(keep_as="copy")
    await erase(bob, "copy")
    with pytest.raises(errors.Forbidden, match="copy was deleted here.*Choose another name"):
        await bob.conversation("release").leave(keep_as="copy")


async def erase(one: AsyncClient, name: str) -> None:
    """Delete a list and confirm it."""
    with pytest.raises(errors.ConfirmationRequired) as asked:
        await one.conversation(name).erase()
    await one.conversation(name).erase(confirm=asked.value.token)


@needs_server
async def test_left_copy_outlives_the_lists_deletion(machines: Machines, server: NatsServer, space: str) -> None:
    second = machines.start("bob")
    async with client(machines.start("ann")) as ann, client(second) as bob:
        for one in (ann, bob):
            await one.add_space(space, [server.url])
        await ann.conversation("release").add("secret")
        await ann.conversation("release").share(space)
        await bob.conversation("release").join(space)
        await bob.conversation("release").leave()
        await erase(ann, "release")
        assert [task.title for task in await bob.conversation("release").list()] == ["secret"]
        with pytest.raises(errors.Forbidden, match="punch join release.* then delete it.*punch list rm release"):
            await bob.conversation("release").add("no")
        await bob.conversation("release").join(space)
        await follows(bob, "release")
    second.stop()
    kept = [await one.read_bytes() async for one in anyio.Path(second.data_dir).glob("log.db*")]
    assert kept and not any(b"secret" in each for each in kept)


@needs_server
async def test_left_copy_is_erased_locally_only(machines: Machines, server: NatsServer, space: str) -> None:
    second = machines.start("bob")
    async with client(machines.start("ann")) as ann, client(second) as bob:
        for one in (ann, bob):
            await one.add_space(space, [server.url])
        await ann.conversation("release").add("classified")
        await ann.conversation("release").share(space)
        for _ in range(2):
            await bob.conversation("release").join(space)
            await ann.conversation("release").add("more")
            await bob.conversation("release").leave()
            with pytest.raises(errors.ConfirmationRequired, match="on this machine only.*other machines keep the list"):
                await bob.conversation("release").erase(confirm="f" * 32)
            await erase(bob, "release")
            assert (await bob.conversations()).conversations == ()
            assert (await bob.spaces())[0].lists == ()
        assert [task.title for task in await ann.conversation("release").list()] == ["classified", "more", "more"]
        await bob.shutdown()
    second.stop()
    kept = [await one.read_bytes() async for one in anyio.Path(second.data_dir).glob("*") if await one.is_file()]
    assert kept and not any(b"classified" in each for each in kept)
    assert (await anyio.to_thread.run_sync(verify_file, f"{second.data_dir}/log.db")).problems == []
    second.start()
    async with client(second) as bob, client(machines.running[1]) as ann:
        joined = await bob.conversation("release").join(space)
        assert joined.version == (await ann.conversation("release").list()).version
        await bob.conversation("release").add("mine")
        await follows(ann, "release", "classified", "more", "more", "mine")
        mine, theirs = [await one.conversation("release").list() for one in (bob, ann)]
        assert (mine.version, [*mine]) == (theirs.version, [*theirs]), "the versions of tasks differ"
    second.stop()
    assert (await anyio.to_thread.run_sync(verify_file, f"{second.data_dir}/log.db")).problems == []


@needs_server
async def test_list_can_be_shared_after_a_deletion(members: Members, space: str) -> None:
    ann, bob = members
    await ann.conversation("release").add("old")
    await erase(ann, "release")
    await ann.conversation("release").add_many(["one", "two"])
    assert (await ann.conversation("release").share(space)).version == 6
    assert (await bob.conversation("release").join(space)).version == 6
    await bob.conversation("release").add("three")
    await follows(ann, "release", "one", "two", "three")
    await ann.conversation("release").leave(keep_as="copy")
    assert (await ann.conversation("copy").list()).version == 7
    await ann.conversation("copy").undo()
    await follows(ann, "copy", "one", "two")
    await erase(ann, "release")
    assert (await ann.conversation("release").join(space)).version == 7
    await erase(ann, "release")
    await follows(bob, "release")
    await bob.conversation("release").add("anew")
    await follows(ann, "release", "anew")
    versions = [(await one.conversation("release").list()).version for one in (ann, bob)]
    assert versions == [10, 10]


@needs_server
async def test_recently_deleted_list_can_be_joined(members: Members, space: str) -> None:
    ann, bob = members
    await ann.conversation("release").add("one")
    await ann.conversation("release").share(space)
    await bob.conversation("release").add("local")
    for _ in range(2):
        await erase(bob, "release")
        await bob.conversation("release").join(space)
        await follows(bob, "release", "one")
        await bob.conversation("release").leave()


@needs_server
async def test_name_is_free_after_erasing_a_left_copy(following: Members, space: str) -> None:
    ann, bob = following
    await bob.conversation("release").leave()
    await erase(bob, "release")
    await bob.conversation("release").add("a list of its own")
    with pytest.raises(errors.Forbidden, match="not empty"):
        await bob.conversation("release").join(space)
    await follows(bob, "release", "a list of its own")
    await follows(ann, "release", "one")


@needs_server
async def test_list_can_be_joined_after_interrupted_deletion(
    machines: Machines, server: NatsServer, space: str
) -> None:
    second = machines.start("bob")
    async with client(machines.start("ann")) as ann, client(second) as bob:
        for one in (ann, bob):
            await one.add_space(space, [server.url])
        await ann.conversation("release").add("one")
        await ann.conversation("release").share(space)
        await bob.conversation("release").join(space)
        await bob.conversation("release").leave()
        before = await anyio.Path(second.data_dir, "spaces.json").read_bytes()
        await erase(bob, "release")
        await bob.spaces()
        second.kill()
        await anyio.Path(second.data_dir, "spaces.json").write_bytes(before)  # as if only the log had stored the change
        second.start()
        async with client(second) as again:
            assert (await again.spaces())[0].lists == ()
            await again.conversation("release").join(space)
            await follows(again, "release", "one")


@needs_server
async def test_removed_space_leaves_local_lists(following: Members, server: NatsServer, space: str) -> None:
    ann, bob = following
    with pytest.raises(errors.Forbidden, match="follows it.*punch leave release"):
        await bob.remove_space(space)
    await bob.conversation("release").leave()
    assert await bob.remove_space(space) == space
    await bob.conversation("release").add("own")
    await bob.add_space(space, [server.url])
    with pytest.raises(errors.Forbidden, match="not empty"):
        await bob.conversation("release").join(space)
    await follows(bob, "release", "one", "own")
    await follows(ann, "release", "one")


@needs_server
async def test_environment_joins_a_locally_deleted_list(machines: Machines, server: NatsServer, space: str) -> None:
    second = machines.start("bob")
    async with client(machines.start("ann")) as ann, client(second) as bob:
        await ann.add_space(space, [server.url])
        await ann.conversation("release").add("one")
        await ann.conversation("release").share(space)
        await bob.conversation("release").add("a list of its own")
        await erase(bob, "release")
    second.stop()
    following = machines.start("bob", PUNCHLIST_SPACE=f"{server.url}/{space}", PUNCHLIST_SPACE_LISTS="release")
    async with client(following) as bob:
        await follows(bob, "release", "one")
    following.stop()
    report = await anyio.to_thread.run_sync(verify_file, f"{following.data_dir}/log.db")
    assert report.problems == []


@needs_server
async def test_session_moves_between_shared_lists_in_two_steps(members: Members, space: str) -> None:
    ann, bob = members
    for name in ("release", "own"):
        await ann.conversation(name).add(f"of {name}")
    await ann.conversation("release").share(space)
    await bob.conversation("release").join(space)
    for old, new in (("own", "release"), ("release", "own")):
        await ann.conversation(old).attach("session-1")
        with pytest.raises(errors.InvalidParams, match=f"attached to {old}: detach it there first"):
            await ann.conversation(new).attach("session-1")
        await ann.conversation(old).detach("session-1")
    await ann.conversation("release").attach("session-1")
    await follows(ann, "session-1", "of release")
    await follows(bob, "session-1", "of release")


@needs_server
async def test_rejections_of_sharing_have_advice(machines: Machines, server: NatsServer, space: str) -> None:
    async with client(machines.start("ann")) as ann, client(machines.start("bob")) as bob:
        assert await ann.spaces() == ()
        with pytest.raises(errors.NotFound, match="punch space add"):
            await ann.conversation("release").share(space)
        with pytest.raises(errors.InvalidParams, match="unencrypted"):
            await ann.add_space(space, ["nats://192.0.2.1"])
        for one in (ann, bob):
            await one.add_space(space, [server.url])
            await one.conversation("release").add("own")
        with pytest.raises(errors.NotFound, match="The list nothing does not exist here"):
            await ann.conversation("nothing").share(space)
        with pytest.raises(errors.NotFound, match="has no list other. It has none yet"):
            await bob.conversation("other").join(space)
        await ann.conversation("release").share(space)
        with pytest.raises(errors.Forbidden, match="has another list release already"):
            await bob.conversation("release").share(space)
        with pytest.raises(errors.Forbidden, match="not empty"):
            await bob.conversation("release").join(space)
        with pytest.raises(errors.Forbidden, match="and this machine follows it. First: punch leave release"):
            await ann.remove_space(space)
        with pytest.raises(errors.NotFound, match="not shared"):
            await bob.conversation("release").leave()
        await bob.conversation("release").add("still mine")
        assert await bob.remove_space(space) == space
        with pytest.raises(errors.NotFound):
            await bob.remove_space(space)


@needs_server
async def test_long_history_is_shared_in_several_posts(members: Members, space: str) -> None:
    ann, bob = members
    wanted = [f"task {number}" for number in range(1, 1301)]
    for start in range(0, len(wanted), 100):
        await ann.conversation("release").add_many(wanted[start : start + 100])
    assert (await ann.conversation("release").share(space)).posts > 1
    await bob.conversation("release").join(space)
    await follows(bob, "release", *wanted)


@needs_server
async def test_killed_daemon_resumes_without_gaps(machines: Machines, server: NatsServer, space: str) -> None:
    first = machines.start("ann")
    async with client(machines.start("bob")) as bob:
        async with client(first) as ann:
            for one in (ann, bob):
                await one.add_space(space, [server.url])
            await ann.conversation("release").add("one")
            await ann.conversation("release").share(space)
            await bob.conversation("release").join(space)
            await ann.conversation("release").add("two")
        first.kill()
        await follows(bob, "release", "one", "two")
        await bob.conversation("release").add("three")
        first.start()
        async with client(first) as ann:
            await follows(ann, "release", "one", "two", "three")
            await ann.conversation("release").add("four")
            await follows(bob, "release", "one", "two", "three", "four")


@needs_server
async def test_damage_of_a_shared_list_stays_local(machines: Machines, server: NatsServer, space: str) -> None:
    first = machines.start("ann")
    async with client(first) as ann:
        await ann.add_space(space, [server.url])
        await ann.conversation("release").add("one")
        await ann.conversation("release").share(space)
    first.stop()
    with closing(sqlite3.connect(f"{first.data_dir}/log.db")) as log, log:
        log.execute("UPDATE log SET body = CAST(replace(CAST(body AS TEXT), 'Opened', 'Op?ned') AS BLOB)")
    first.start()
    async with client(first) as ann:
        with anyio.fail_after(PATIENCE_S):
            while (await ann.spaces())[0].lists[0].state != "damaged":  # noqa: ASYNC110 - there is no such event
                await anyio.sleep(0.05)
        with pytest.raises(errors.Damaged):
            await ann.conversation("release").add("two")
        await ann.conversation("plan").add("goes on")


@needs_server
async def test_shared_lists_are_read_only_while_unreachable(machines: Machines, tmp_path: Path) -> None:
    with running_server(tmp_path / "nats") as server:
        async with client(machines.start("ann")) as ann:
            await ann.add_space("team", [server.url])
            await ann.conversation("release").add("one")
            await ann.conversation("release").share("team")
            server.kill()
            with pytest.raises(errors.Unreachable, match="Nothing was written") as refused:
                await ann.conversation("release").add("two", key="the-second")
            assert refused.value.space == "team"
            assert [task.title for task in await ann.conversation("release").list()] == ["one"]
            await ann.conversation("own").add("goes on")
            server.start()
            with anyio.fail_after(PATIENCE_S):
                while True:
                    try:
                        await ann.conversation("release").add("two", key="the-second")
                        break
                    except errors.Unreachable:
                        continue
            assert [task.title for task in await ann.conversation("release").list()] == ["one", "two"]


class Shown:
    """Subscribers of three views that collect the state of one list.

    Args:
        client: Client of their daemon.
        name: The list.
    """

    def __init__(self, client: AsyncClient, name: str) -> None:
        conversation = client.conversation(name)
        self._ways: dict[str, AsyncWatch[Any]] = {
            "list": conversation.watch(view="list"),
            "rows": conversation.watch(view="rows"),
            "board": client.follow(Cursor(None, BoardView())),
        }
        self._states: dict[str, str] = {}
        self._came = anyio.Event()

    async def follow(self, way: str) -> None:
        async with self._ways[way] as shown:
            async for push in shown:
                shared = getattr(push.card if isinstance(push, BoardPush) else push, "shared", None)
                self._states[way] = "current" if shared is None else shared.state
                self._came.set()
                self._came = anyio.Event()

    async def become(self, state: str) -> None:
        """Wait until all views have reported a state."""
        with anyio.fail_after(PATIENCE_S):
            while self._states != dict.fromkeys(self._ways, state):
                await self._came.wait()

    async def __aenter__(self) -> "Shown":
        self._group = await anyio.create_task_group().__aenter__()
        for way in self._ways:
            self._group.start_soon(self.follow, way)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._group.__aexit__(*error)


@needs_server
async def test_subscribers_see_changes_of_the_link(machines: Machines, tmp_path: Path) -> None:
    with running_server(tmp_path / "nats") as server:
        async with client(machines.start("ann")) as ann:
            await ann.add_space("team", [server.url])
            await ann.conversation("release").add("one")
            await ann.conversation("release").share("team")
            async with Shown(ann, "release") as shown:
                await shown.become("current")
                server.kill()
                await shown.become("offline")
                (card,) = (await ann.conversations()).conversations
                assert card.shared is not None and (card.shared.space, card.shared.state) == ("team", "offline")
                server.start()
                await shown.become("current")
                await ann.conversation("release").leave()
                await shown.become("forbidden")
                await ann.conversation("release").join("team")
                await shown.become("current")


@needs_server
@pytest.mark.parametrize("was_deleted", [False, True])
async def test_longest_copy_restores_an_empty_server(machines: Machines, tmp_path: Path, was_deleted: bool) -> None:
    with running_server(tmp_path / "nats") as server:
        async with client(machines.start("ann")) as ann, client(machines.start("bob")) as bob:
            for one in (ann, bob):
                await one.add_space("team", [server.url])
            if was_deleted:
                await ann.conversation("release").add("old")
                await erase(ann, "release")
            await ann.conversation("release").add_many([f"task {number}" for number in range(3)])
            await ann.conversation("release").share("team")
            await bob.conversation("release").join("team")
            await bob.conversation("release").add("from bob")
            await follows(ann, "release", "task 0", "task 1", "task 2", "from bob")
            server.kill()
            server.forget()
            server.start()
            with pytest.raises(errors.Unreachable):
                await ann.conversation("release").add("nowhere")
            put = await ann.conversation("release").share("team", repair=True)
            assert put.posts == 2
            with anyio.fail_after(PATIENCE_S):
                while True:
                    try:
                        await bob.conversation("release").add("goes on", key="k")
                        break
                    except errors.Diverged:  # bob has not received the restored posts yet
                        continue
            await follows(ann, "release", "task 0", "task 1", "task 2", "from bob", "goes on")
            assert (await bob.conversation("release").share("team", repair=True)).posts == 0


@needs_server
async def test_lost_posts_are_restored_from_the_longer_copy(machines: Machines, tmp_path: Path) -> None:
    with running_server(tmp_path / "nats") as server:
        first, second = machines.start("ann"), machines.start("bob")
        async with client(second) as bob:
            async with client(first) as ann:
                for one in (ann, bob):
                    await one.add_space("team", [server.url])
                await ann.conversation("release").add("one")
                await ann.conversation("release").share("team")
                await bob.conversation("release").join("team")
                await follows(bob, "release", "one")
            first.stop()
            await bob.conversation("release").add("while ann was away")
            server.kill()
            server.forget()
            server.start()
            first.start()
            async with client(first) as ann:
                with pytest.raises(errors.Forbidden, match="bob has release up to version"):
                    await ann.conversation("release").share("team", repair=True)
                await bob.conversation("release").share("team", repair=True)
                await follows(ann, "release", "one", "while ann was away")


@needs_server
async def test_only_a_followed_list_can_be_restored(machines: Machines, server: NatsServer, space: str) -> None:
    async with client(machines.start("ann")) as ann:
        await ann.add_space(space, [server.url])
        plan = ann.conversation("plan")
        await plan.add("one")
        with pytest.raises(errors.NotFound, match="is not shared"):
            await plan.share(space, repair=True)
        with pytest.raises(errors.NotFound, match="This machine has no space"):
            await plan.share("nowhere", repair=True)
        with pytest.raises(errors.NotFound, match="list nothing"):
            await ann.conversation("nothing").share(space)
        await plan.share(space)
        assert (await plan.share(space)).posts == 0
        await plan.leave(keep_as="kept")
        await plan.leave()
        for repair in (False, True):
            with pytest.raises(errors.Forbidden, match="has left"):
                await plan.share(space, repair=repair)


@needs_server
async def test_variables_configure_a_container(machines: Machines, server: NatsServer, space: str) -> None:
    async with client(machines.start("ann")) as ann:
        await ann.add_space(space, [server.url])
        await ann.conversation("release").add("one")
        await ann.conversation("release").share(space)
        env = {"PUNCHLIST_SPACE": f"{server.url}/{space}", "PUNCHLIST_SPACE_LISTS": "release"}
        runner = machines.start("runner", **env)
        async with client(runner) as ci:
            await follows(ci, "release", "one")
            await ci.conversation("release").add("from CI")
            await follows(ann, "release", "one", "from CI")
            with pytest.raises(errors.Forbidden, match="PUNCHLIST_SPACE"):
                await ci.remove_space(space)
        assert not (Path(runner.data_dir) / "spaces.json").exists()


def test_invalid_variable_ends_the_daemon(tmp_path: Path) -> None:
    daemon = Machines(tmp_path, measured=True).create("ann", PUNCHLIST_SPACE="lists.example.org")
    with pytest.raises(RuntimeError, match="names no space: write tls://HOST/NAME"):
        daemon.start()
    assert daemon.process is not None and daemon.process.returncode == 78


@needs_server
async def test_configuration_is_private(machines: Machines, server: NatsServer, space: str) -> None:
    daemon = machines.start("ann")
    async with client(daemon) as ann:
        await ann.add_space(space, [server.url])
    assert stat.S_IMODE((Path(daemon.data_dir) / "spaces.json").stat().st_mode) == 0o600


@needs_server
async def test_user_connection_cannot_manage_sharing(machines: Machines, server: NatsServer, space: str) -> None:
    async with client(machines.start("ann")) as ann:
        confined = ann.as_user("guest")
        async with confined:
            with pytest.raises(errors.Forbidden, match="bound to a user"):
                await confined.add_space(space, [server.url])
            with pytest.raises(errors.Forbidden, match="bound to a user"):
                await confined.spaces()
