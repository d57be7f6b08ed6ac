"""An engine with a log in memory, and a client connected to it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from punchlist_testing.engine import Engine, Peer, TouchyLog, engine


@pytest.fixture
def log() -> TouchyLog:
    return TouchyLog()


@pytest.fixture
async def running(tmp_path: Path, log: TouchyLog) -> AsyncIterator[Engine]:
    async with engine(tmp_path, log, index_delay_s=3600.0) as made:
        yield made


@pytest.fixture
async def peer(running: Engine) -> Peer:
    return await running.connect()
