import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from punchlist_testing.daemon import Running, running_daemon


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the homes of demos are made."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PUNCHLIST_CONVERSATION", raising=False)
    return folder


@pytest.fixture
def portal() -> Generator[BlockingPortal]:
    with start_blocking_portal("asyncio") as portal:
        yield portal


@pytest.fixture
def daemon(tmp_path: Path, portal: BlockingPortal) -> Generator[Running]:
    with portal.wrap_async_context_manager(running_daemon(tmp_path)) as daemon:
        yield daemon
