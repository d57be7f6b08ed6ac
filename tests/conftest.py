"""What holds for every test."""

import pytest
from hypothesis import settings

# Shared machines make wall-clock deadlines flaky; a failing example prints how to get it again.
settings.register_profile("punchlist", deadline=None, print_blob=True)
settings.load_profile("punchlist")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """aiosqlite knows asyncio alone, so the daemon and its tests do too."""
    return "asyncio"
