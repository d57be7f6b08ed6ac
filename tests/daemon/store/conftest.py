"""Logs for the tests of the store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from punchlistd.store.sqlite import SqliteLog


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "log.db")


@pytest.fixture
async def log(path: str) -> AsyncIterator[SqliteLog]:
    opened = await SqliteLog.open(path, reserve_bytes=0)
    yield opened
    await opened.close()
