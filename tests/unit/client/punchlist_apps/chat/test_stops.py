"""Turns stopped without a worker, or while another worker runs them."""

import time
from types import SimpleNamespace

import anyio
import pytest

from punchlist_apps.chat.worker import LEASE_MS
from punchlist_testing.chat import Talk

PATIENCE_S = 30


@pytest.mark.parametrize("is_waited_for", [False, True])
async def test_turn_stopped_before_start_is_answered(talk: Talk, is_waited_for: bool) -> None:
    turn = await talk.thread.send("add buy milk")
    assert await talk.thread.stop(turn) and not await talk.thread.stop("u0")
    with anyio.fail_after(PATIENCE_S):
        if is_waited_for:
            await talk.worker.answer(talk.thread, turn)
        else:
            await talk.worker.settle(talk.thread)
    answer = await talk.thread.find_answer(turn)
    assert answer is not None and (answer["text"], answer["source"]) == ("Stopped.", "stopped")
    assert await talk.open() == [] and await talk.told("add eggs") == "Created task: eggs"


async def test_stopped_turn_waits_for_live_worker(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = await talk.thread.send("add buy milk")
    await talk.thread.queue.take("another worker")
    assert await talk.thread.stop(turn)
    with anyio.fail_after(PATIENCE_S):
        await talk.worker.settle(talk.thread)
        assert await talk.thread.find_answer(turn) is None
        later = SimpleNamespace(time=lambda: time.time() + LEASE_MS / 1000 + 1)
        monkeypatch.setattr("punchlist_apps.chat.worker.time", later)
        assert (await talk.worker.answer(talk.thread, turn))["text"] == "Stopped."
