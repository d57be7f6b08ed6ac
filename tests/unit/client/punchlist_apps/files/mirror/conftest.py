from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from punchlist import connect_async
from punchlist_testing.daemon import running_daemon
from punchlist_testing.mirrors import Place


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Place]:
    directory = tmp_path / "mirror"
    directory.mkdir()
    async with running_daemon(tmp_path) as daemon, connect_async(socket=daemon.socket, autostart=False) as client:
        yield Place(daemon, client, directory)
