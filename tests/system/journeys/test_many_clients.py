"""Many agents with one daemon: nothing is lost, duplicated or out of order."""

from pathlib import Path

import anyio
import pytest

from punchlist_testing.daemon import running_daemon
from punchlist_testing.engine import Peer, until

CLIENTS = 64
TASKS = 15
WATCHERS = 8


async def _add(path: str, number: int, conversation: str, acknowledged: list[tuple[str, str, str]]) -> None:
    peer = await Peer.open(path)
    await peer.result("daemon.hello", client={"name": f"agent {number}"})
    for each in range(TASKS):
        title = f"{number}.{each}"
        added = await peer.result("task.add", conversation=conversation, title=title, key=title)
        acknowledged.append((conversation, added["task"]["id"], title))
    peer.close()


async def _watch(path: str, upto: int, seen: list[tuple[int, str, int]]) -> None:
    peer = await Peer.open(path)
    await peer.result("event.subscribe", after=0)
    while not seen or seen[-1][0] < upto:
        for event in (await peer.push())["params"]["events"]:
            seen.append((event["seq"], event["conversation"], event["version"]))
    peer.close()


@pytest.mark.parametrize("lists", [1, CLIENTS])
async def test_responses_to_64_clients_are_ordered_and_unique(tmp_path: Path, lists: int) -> None:
    acknowledged: list[tuple[str, str, str]] = []
    seen: list[list[tuple[int, str, int]]] = [[] for _ in range(WATCHERS)]
    total = CLIENTS * TASKS + lists
    async with running_daemon(tmp_path) as daemon:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for events in seen:
                    group.start_soon(_watch, daemon.socket, total, events)
                for number in range(CLIENTS):
                    group.start_soon(_add, daemon.socket, number, f"list-{number % lists}", acknowledged)
        peer = await Peer.open(daemon.socket)
        found: list[tuple[str, str, str]] = []
        for number in range(lists):
            name = f"list-{number}"
            listed = await peer.result("task.list", conversation=name)
            found += [(name, task["id"], task["title"]) for task in listed["tasks"]]
            assert listed["version"] == len(listed["tasks"]) + 1
        assert sorted(found) == sorted(acknowledged) and len(set(found)) == CLIENTS * TASKS
        status = await peer.result("daemon.status")
        assert status["seq"] == total and status["commits"]["count"] < total / 4, "commits are shared"
        peer.close()
    for events in seen:
        assert [seq for seq, _, _ in events] == list(range(1, total + 1))
        for number in range(lists):
            versions = [version for _, name, version in events if name == f"list-{number}"]
            assert versions == list(range(1, len(versions) + 1))


async def test_prompt_line_follows_the_work(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        line = anyio.Path(Path(daemon.socket).parent / "status")
        peer = await Peer.open(daemon.socket)

        async def shows(text: str) -> None:
            with anyio.fail_after(30):
                while not (await line.exists() and await line.read_text() == f"{text}\n"):  # noqa: ASYNC110
                    await anyio.sleep(0.005)  # nothing notifies the test of a change to the file

        await shows("0 open, 0 in progress")
        await peer.result("task.add_many", conversation="a", tasks=[{"title": "x"}, {"title": "y"}])
        await shows("2 open, 0 in progress")
        await peer.result("task.set_status", conversation="a", task="1", status="in_progress")
        await shows("2 open, 1 in progress")
        await peer.result("task.add", conversation="b", title="z")
        await peer.result("task.set_status", conversation="a", task="1", status="completed")
        await shows("2 open, 0 in progress")
        peer.close()
    assert not await line.exists()


async def test_list_and_watchers_survive_a_restart(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        first = await peer.result("task.add", conversation="a", title="x", key="k")
        epoch = (await peer.result("daemon.hello"))["epoch"]
        await peer.result("event.subscribe", conversation="a")
    await until(peer.reader.at_eof)
    peer.close()
    async with running_daemon(tmp_path) as daemon:
        peer = await Peer.open(daemon.socket)
        assert await peer.result("task.add", conversation="a", title="x", key="k") == first
        subscribed = await peer.result("event.subscribe", conversation="a", after=first["seq"], epoch=epoch)
        assert subscribed["seq"] == first["seq"]
        await peer.result("task.add", conversation="a", title="y")
        assert [event["seq"] for event in await peer.events(1)] == [3]
        peer.close()
