"""Lists on several machines over PostgreSQL, end to end: real daemons, a real server, the public client."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import errors
from punchlist.clients.aio import AsyncClient, connect_async
from punchlist_testing.postgres_server import DATABASE, Members, PostgresServer, needs_postgres, running_postgres
from punchlist_testing.shared_lists import PATIENCE_S, Machines, client, follows

pytestmark = needs_postgres
ROLES = {"ann": "member", "bob": "keeper", "eve": "member", "dash": "reader"}


@pytest.fixture(scope="module")
def server() -> Generator[PostgresServer]:
    with running_postgres() as running:
        yield running


class Team(Machines):
    """Machines in one space."""

    def __init__(self, directory: Path, server: PostgresServer) -> None:
        super().__init__(directory)
        self.members = Members(directory / "creds", server, f"s{os.urandom(4).hex()}", **ROLES)
        self.space = self.members.space

    async def add(self, client: AsyncClient, name: str) -> Any:
        return await client.add_space(self.space, [self.members.url(name)], creds=self.members.creds(name))


@pytest.fixture
def team(tmp_path: Path, server: PostgresServer) -> Generator[Team]:
    with Team(tmp_path, server).ending() as made:
        yield made


async def test_three_machines_share_a_list(team: Team) -> None:
    async with (
        client(team.start("ann")) as ann,
        client(team.start("bob")) as bob,
        client(team.start("dash")) as dash,
    ):
        added = await team.add(ann, "ann")
        assert not added.made and added.space.server == team.members.url("ann")
        await ann.conversation("release").add_many(["one", "two"])
        assert (await ann.conversation("release").share(team.space)).posts == 1
        for machine, name in ((bob, "bob"), (dash, "dash")):
            await team.add(machine, name)
            assert (await machine.conversation("release").join(team.space)).version == 3
        await bob.conversation("release").add("three")
        for machine in (ann, dash):
            await follows(machine, "release", "one", "two", "three")
        async with ann.conversation("release").claim("ann") as mine:
            assert mine is not None and mine.id == "1"
            with pytest.raises(errors.LeaseHeld):
                async with bob.conversation("release").claim("bob", "1"):
                    pass
        with pytest.raises(errors.Forbidden):
            await dash.conversation("release").add("four")
        (view,) = await bob.spaces()
        assert (view.state, view.unchecked, view.server_version[:2]) == ("up", (), view.server_version[:2])
        left = await bob.conversation("release").leave(keep_as="copy")
        assert left.kept_as == "copy"
        await ann.conversation("release").add("four")
        await bob.conversation("release").join(team.space)
        await follows(bob, "release", "one", "two", "three", "four")


async def test_min_version_holds_on_another_machine(team: Team) -> None:
    async with client(team.start("ann")) as ann, client(team.start("bob")) as bob:
        for machine, name in ((ann, "ann"), (bob, "bob")):
            await team.add(machine, name)
        await ann.conversation("release").add("one")
        await ann.conversation("release").share(team.space)
        await bob.conversation("release").join(team.space)
        for number in range(20):
            task = await ann.conversation("release").add(f"task {number}")
            version = (await ann.conversation("release").list()).version
            assert (await bob.conversation("release").get(task.id, min_version=version)).title == task.title


async def test_list_survives_restart_of_daemon_and_server(tmp_path: Path) -> None:
    with running_postgres() as server:
        team = Team(tmp_path, server)
        daemon = team.start("ann")
        try:
            async with client(daemon) as ann, client(team.start("bob")) as bob:
                for machine, name in ((ann, "ann"), (bob, "bob")):
                    await team.add(machine, name)
                await ann.conversation("release").add("one")
                await ann.conversation("release").share(team.space)
                await bob.conversation("release").join(team.space)
                server.kill()
                with pytest.raises((errors.TimedOut, errors.Unreachable, errors.OutcomeUnknown)):
                    await (
                        connect_async(socket=daemon.socket, autostart=False, timeout_s=1)
                        .conversation("release")
                        .add("x")
                    )
                assert [task.title for task in await bob.conversation("release").list()][:1] == ["one"]
                server.start()
                await bob.conversation("release").add("two")
            daemon.restart()
            async with client(daemon) as ann, client(team.running[1]) as bob:
                titles = [task.title for task in await bob.conversation("release").list()]
                await follows(ann, "release", *titles)
                await ann.conversation("release").add("last")
                await follows(bob, "release", *titles, "last")
        finally:
            for each in team.running:
                each.stop()


async def test_changes_lost_by_a_restored_database_are_restored(team: Team) -> None:
    async with client(team.start("ann")) as ann, client(team.start("bob")) as bob:
        for machine, name in ((ann, "ann"), (bob, "bob")):
            await team.add(machine, name)
        await ann.conversation("release").add("one")
        await ann.conversation("release").share(team.space)
        await bob.conversation("release").join(team.space)
        for title in ("two", "three"):
            await ann.conversation("release").add(title)
        await follows(bob, "release", "one", "two", "three")
        server, table = team.members.server, f'"punch-{team.space}".post'
        server.sql(f"DELETE FROM {table} WHERE n > 1")
        for machine in (ann, bob):
            with anyio.fail_after(PATIENCE_S):
                while (await machine.spaces())[0].lists[0].state != "diverged":  # noqa: ASYNC110 - a push may be lost
                    await anyio.sleep(0.1)
        with pytest.raises(errors.Diverged, match="punch share release --repair"):
            await bob.conversation("release").add("nobody sees this")
        assert (await ann.conversation("release").share(team.space, repair=True)).posts == 2
        with anyio.fail_after(PATIENCE_S):
            while (await bob.spaces())[0].lists[0].state != "current":  # noqa: ASYNC110 - as above
                await anyio.sleep(0.1)
        await bob.conversation("release").add("four")
        await follows(ann, "release", "one", "two", "three", "four")


async def test_deleted_list_is_erased_everywhere(team: Team) -> None:
    async with client(team.start("ann")) as ann, client(team.start("bob")) as bob:
        for machine, name in ((ann, "ann"), (bob, "bob")):
            await team.add(machine, name)
        await ann.conversation("release").add("a secret")
        await ann.conversation("release").share(team.space)
        await bob.conversation("release").join(team.space)
        await follows(bob, "release", "a secret")
        with pytest.raises(errors.ConfirmationRequired) as asked:
            await ann.conversation("release").erase()
        await ann.conversation("release").erase(confirm=asked.value.token)
        with anyio.fail_after(PATIENCE_S):
            question = f"""SELECT count(*) FROM "punch-{team.space}".post WHERE body LIKE '%a secret%'"""
            while team.members.server.sql(question) != "0":  # noqa: ASYNC110 - the server sends no such event
                await anyio.sleep(0.1)


async def test_list_can_be_shared_after_a_deletion(team: Team) -> None:
    async with client(team.start("ann")) as ann, client(team.start("bob")) as bob:
        for machine, name in ((ann, "ann"), (bob, "bob")):
            await team.add(machine, name)
        await ann.conversation("release").add("old")
        with pytest.raises(errors.ConfirmationRequired) as asked:
            await ann.conversation("release").erase()
        await ann.conversation("release").erase(confirm=asked.value.token)
        await ann.conversation("release").add("one")
        assert (await ann.conversation("release").share(team.space)).version == 5
        assert (await bob.conversation("release").join(team.space)).version == 5
        await bob.conversation("release").add("two")
        await follows(ann, "release", "one", "two")


async def test_password_in_a_variable_is_rejected_unprinted(team: Team) -> None:
    env = {
        "PUNCHLIST_SPACE": f"{team.members.url('eve')}/{team.space}",
        "PUNCHLIST_SPACE_CREDS": team.members.creds("eve"),
        "PUNCHLIST_SPACE_LISTS": "release",
    }
    async with client(team.start("ann")) as ann, client(team.start("eve", **env)) as eve:
        await team.add(ann, "ann")
        await ann.conversation("release").add("one")
        await ann.conversation("release").share(team.space)
        await follows(eve, "release", "one")
        (view,) = await eve.spaces()
        assert view.source == "environment" and view.urls == (team.members.url("eve"),)
        secret = f"postgres://eve:s3cret@127.0.0.1/{DATABASE}"
        with pytest.raises(errors.PunchlistError, match="password in a file") as refused:
            await ann.add_space("other", [secret])
        assert "s3cret" not in str(refused.value)
        with pytest.raises(errors.PunchlistError, match="not on both"):
            await ann.add_space("other", ["tls://a.example.org", "postgres://ann@b.example.org/punchlist"])
