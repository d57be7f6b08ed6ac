"""Invalid input and full disks: a clear error, nothing lost, nothing done twice."""

import resource
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import AsyncClient
from punchlist.errors import StorageFull
from punchlist_apps.chat.live import Live, Publish
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import Talk
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.scripted_model import honest, serving
from punchlist_testing.web import served

PATIENCE_S = 20
MEGABYTE = "x" * 1_000_000
CHATS = "/api/v1/chats"


@contextmanager
def full_disk(daemon: Spawned) -> Generator[None]:
    """Make all writes of the daemon fail, as on a full disk."""
    assert daemon.process is not None
    pid, (_, most) = daemon.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


class At(Live):
    """Runs a function once, when a turn reaches a given point."""

    def __init__(self, point: str, act: Callable[[], object]) -> None:
        super().__init__()
        self._point = point
        self._acts = [act]

    def start(self, turn: str) -> Publish:
        forward = super().start(turn)

        def publish(name: str, data: dict[str, Any]) -> None:
            forward(name, data)
            if name == self._point and self._acts:
                self._acts.pop()()

        return publish


@pytest.fixture
def spawned(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture(params=["rules", "model"])
async def full(request: pytest.FixtureRequest, spawned: Spawned) -> AsyncIterator[Talk]:
    """A thread of a daemon whose disk can become full, answered by rules and by a model."""
    with serving(honest) as script:
        model = Completions("scripted", script.url) if request.param == "model" else None
        async with AsyncClient(socket=spawned.socket, autostart=False, name="test") as client:
            yield Talk(await Thread.open(client, "plan"), Worker(model))


async def test_turn_finishes_once_after_full_disk(full: Talk, spawned: Spawned) -> None:
    await full.say("add milk")
    turn = await full.thread.send("add bread")
    with anyio.fail_after(PATIENCE_S):
        with full_disk(spawned):
            for _ in range(2):
                with pytest.raises(StorageFull):
                    await full.worker.answer(full.thread, turn)
            with pytest.raises(StorageFull):
                await full.thread.send("add eggs")
            assert await full.open() == ["milk"], "reads continue"
        answer = await full.worker.answer(full.thread, turn)
    assert (answer["text"], await full.open()) == ("Created task: bread", ["milk", "bread"])
    await full.check(turn)


async def follow_turn(worker: Worker, place: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, data) async for _, name, data in worker.live.follow(place)]


@pytest.mark.parametrize("point", ["turn.started", "step", "tool.started", "tool", "tool.completed", "answer"])
async def test_full_disk_during_turn_repeats_nothing(full: Talk, spawned: Spawned, point: str) -> None:
    turn = await full.thread.send("add milk; bread")
    with ExitStack() as disk, anyio.fail_after(PATIENCE_S):
        worker = Worker(full.worker.model, At(point, lambda: disk.enter_context(full_disk(spawned))))
        with pytest.raises(StorageFull):
            await worker.answer(full.thread, turn)
        *_, failed, end = await follow_turn(worker, full.thread.turn_path(turn))
        assert (failed[0], end[0]) == ("failed", "end") and "disk is full" in failed[1]["text"]
        disk.close()
        answer = await worker.answer(full.thread, turn)
        *_, last, end = await follow_turn(worker, full.thread.turn_path(turn))
    assert (last, end) == (("message", answer), ("end", {}))
    assert answer["text"] == "Created task: milk\nCreated task: bread" and await full.open() == ["milk", "bread"]
    await full.check(turn)


async def test_panel_reports_full_disk_and_resumes(tmp_path: Path, spawned: Spawned) -> None:
    async with served(tmp_path, daemon=spawned) as web:
        thread = f"{CHATS}/{(await web.ask('POST', CHATS, {'list': 'plan'})).value['thread']}"
        with full_disk(spawned):
            refused = await web.ask("POST", thread, {"text": "add milk"})
            assert refused.status == 507 and "disk is full" in refused.value["detail"]
        async with AsyncClient(socket=spawned.socket, autostart=False, name="test") as client:
            turn = await Thread(client, thread.rpartition("/")[2], "plan").send("add milk")
        with full_disk(spawned):
            stream = await web.stream(f"{thread}/turns/{turn}")
            failed, end = await stream.next(), await stream.next()
            assert (failed.event, end.event) == ("failed", "end") and "disk is full" in failed.data["text"]
        stream = await web.stream(f"{thread}/turns/{turn}")
        while (event := await stream.next()).event != "message":
            pass
        assert event.data["text"] == "Created task: milk"
        tasks = (await web.ask("GET", "/api/v1/conversations/plan/tasks")).value["tasks"]
        assert [task["title"] for task in tasks] == ["milk"]


async def test_huge_message_is_rejected_with_limit(talk: Talk, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"1,000,000 characters; the limit is 100,000"):
        await talk.thread.send(MEGABYTE)
    page = await talk.thread.queue.messages()
    assert page.messages == () and len(await talk.thread.queue.list()) == 0


async def test_rules_replace_huge_model_answer(client: AsyncClient) -> None:
    with serving(lambda _messages: MEGABYTE) as script:
        script.piece = 50_000
        talk = Talk(await Thread.open(client, "plan"), Worker(Completions("scripted", script.url)))
        answer = await talk.say("add milk")
    assert (answer["text"], answer["notes"]) == (
        "Created task: milk",
        ["the model was away (malformed: its answer is too long)"],
    )


async def test_lone_surrogates_are_replaced(client: AsyncClient) -> None:
    with serving(lambda _messages: "Well \ud800 then.") as script:
        talk = Talk(await Thread.open(client, "plan"), Worker(Completions("scripted", script.url)))
        assert await talk.told("add \ud800milk") == "Well ? then."
    talk = Talk(talk.thread, Worker())
    assert await talk.told("add \ud800milk") == "Created task: \ufffdmilk"
    assert await talk.open() == ["\ufffdmilk"]
