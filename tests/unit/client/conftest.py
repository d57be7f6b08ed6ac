from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from punchlist import Client, connect, connect_async
from punchlist_testing.daemon import Running, Spawned, running_daemon, spawned_daemon
from punchlist_testing.faces import Connect, as_blocking


@pytest.fixture
def portal() -> Generator[BlockingPortal]:
    with start_blocking_portal("asyncio") as portal:
        yield portal


@pytest.fixture
def daemon(tmp_path: Path, portal: BlockingPortal) -> Generator[Running]:
    with portal.wrap_async_context_manager(running_daemon(tmp_path)) as daemon:
        yield daemon


@pytest.fixture
def process(tmp_path: Path) -> Generator[Spawned]:
    with spawned_daemon(tmp_path) as process:
        yield process


@pytest.fixture(params=["blocking", "asyncio"])
def open_client(request: pytest.FixtureRequest, portal: BlockingPortal) -> Connect:
    """Connects with each face in turn, and never starts a daemon automatically."""

    def open_client(socket: str, **options: Any) -> Client:
        options = {"socket": socket, "autostart": False, **options}
        return connect(**options) if request.param == "blocking" else as_blocking(portal, connect_async(**options))

    return open_client


@pytest.fixture
def client(daemon: Running, open_client: Connect) -> Generator[Client]:
    with open_client(daemon.socket, name="tester") as client:
        yield client
