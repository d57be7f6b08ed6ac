"""A limit on the changes that each actor makes per minute."""

from typing import Any

import pytest

from punchlist_schemas import params as p
from punchlist_schemas.things import Settings
from punchlist_testing.engine import Engine
from punchlistd.domain.commands import EndReservations, Wake
from punchlistd.domain.state import State, initial_state
from punchlistd.engine.writing.rates import MAX_BUCKETS, Rates

C: dict[str, Any] = {"conversation": "c"}
ADD = p.TaskAdd(**C, title="a")


def limited(most: int) -> State:
    state = initial_state("c")
    state.settings = Settings(rate_limit=most)
    return state


def test_each_actor_has_its_own_refilling_limit() -> None:
    now = [0.0]
    rates, state = Rates(lambda: now[0]), limited(6)
    assert [rates.check(state, ADD, "bot") is None for _ in range(7)] == [True] * 6 + [False]
    refused = rates.check(state, ADD, "bot")
    assert refused is not None
    assert refused.kind == "rate_limited"
    assert refused.data == {"actor": "bot", "maximum": 6, "retry_after_ms": 10_000}
    assert "wait for 10.0 seconds" in refused.message
    assert rates.check(state, ADD, "ann") is None
    now[0] = 9.9
    assert rates.check(state, ADD, "bot") is not None
    now[0] = 10.1
    assert rates.check(state, ADD, "bot") is None
    assert rates.check(state, ADD, "bot") is not None


@pytest.mark.parametrize(
    "free",
    [
        p.TaskRenew(**C, task="1", owner="bot"),
        p.TaskRelease(**C, task="1", owner="bot"),
        p.ConversationConfigure(**C),
        EndReservations(**C, owners=("bot",)),
        Wake(**C),
    ],
)
def test_renewals_releases_and_settings_are_not_limited(free: p.Mutation) -> None:
    rates, state = Rates(lambda: 0.0), limited(1)
    assert rates.check(state, ADD, "bot") is None
    assert rates.check(state, free, "bot") is None
    assert rates.check(state, ADD, "bot") is not None


def test_number_of_buckets_is_limited() -> None:
    rates, state = Rates(lambda: 0.0), limited(1)
    for number in range(MAX_BUCKETS + 1):
        assert rates.check(state, ADD, f"bot{number}") is None
    assert rates.check(state, ADD, "bot1") is not None
    assert rates.check(state, ADD, "bot0") is None


async def test_rate_limit_rejects_one_actor_only(running: Engine) -> None:
    peer = await running.connect()
    await peer.result("conversation.configure", **C, settings={"rate_limit": 2})
    for title in "ab":
        await peer.result("task.add", **C, title=title, actor="bot", key=title)
    refused = await peer.refusal("task.add", **C, title="c", actor="bot")
    assert (refused["kind"], refused["actor"], refused["maximum"]) == ("rate_limited", "bot", 2)
    assert 0 < refused["retry_after_ms"] <= 30_000
    await peer.result("task.add", **C, title="b", actor="bot", key="b")  # repeats the first response
    await peer.result("task.add", **C, title="c", actor="ann")
    await peer.result("conversation.configure", **C, settings={"rate_limit": 0}, actor="bot")
    await peer.result("task.add", **C, title="d", actor="bot")
    assert len((await peer.result("task.list", **C))["tasks"]) == 4
