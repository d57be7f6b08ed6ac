from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from punchlist_testing.engine import Engine, Peer, engine


@pytest.fixture
async def running(tmp_path: Path) -> AsyncGenerator[Engine]:
    """An engine that listens on a socket."""
    async with engine(tmp_path) as running:
        yield running


@pytest.fixture
async def peer(running: Engine) -> Peer:
    """A client of the engine."""
    return await running.connect()
