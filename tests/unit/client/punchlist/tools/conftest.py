from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal

from punchlist import Client, connect
from punchlist.tools import Toolbox, ToolCaller
from punchlist_testing.daemon import Running, running_daemon

Open = Callable[..., Toolbox]


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_CONVERSATION", raising=False)
    monkeypatch.setenv("PUNCHLIST_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def daemon(tmp_path: Path, portal: BlockingPortal) -> Generator[Running]:
    """A daemon that accepts a model's confirmation immediately, because transcripts have no turns."""
    with portal.wrap_async_context_manager(running_daemon(tmp_path, later_s=0.0)) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: Running) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="tester") as client:
        yield client


@pytest.fixture
def box(client: Client) -> Toolbox:
    """Tools of one agent on its own list."""
    return Toolbox(client, ToolCaller("work", "ann"))
