"""`punch web` for the tests in this folder."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from punchlist_testing.web import Web, served


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with served(tmp_path) as server:
        yield server
