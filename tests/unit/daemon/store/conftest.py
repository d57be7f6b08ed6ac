"""Logs for the tests of the store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from punchlist_testing.store import OpenedLog


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "log.db")


@pytest.fixture
async def log(path: str) -> AsyncIterator[OpenedLog]:
    opened = await OpenedLog.open(path, reserve_bytes=0)
    yield opened
    await opened.close()
