"""A daemon for the editors, another client of it, and a separate list for each test."""

import os
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from punchlist import Client, connect
from punchlist_testing.daemon import Running, running_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with (
        start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(running_daemon(tmp_path_factory.mktemp("daemon"))) as daemon,
    ):
        yield daemon


@pytest.fixture
def client(daemon: Running) -> Iterator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="agent") as client:
        yield client


@pytest.fixture
def plan(request: pytest.FixtureRequest, client: Client) -> Any:
    name = re.sub(r"[^a-z]+", "-", request.node.name)[:100].strip("-")
    return client.conversation(f"{name}-{os.urandom(3).hex()}")


@pytest.fixture
def odd_texts() -> list[str]:
    """Random texts of letters, emoji, and characters that are shown as escapes."""
    print("seed", seed := int(os.environ.get("SEED") or random.randrange(1 << 32)))
    chance = random.Random(seed)
    signs = "aZ9é \t\x1b\x9b\u00ad\u00a0\u0301\u200c\u200d\u200b\u202e\u2028\u3000\ufe0f\ufe01\ufeff\ue000"
    signs += "👩👧می漢\U000e0101\U000e0041"
    return ["".join(chance.choices(signs, k=chance.randrange(12))) for _ in range(1000)]
