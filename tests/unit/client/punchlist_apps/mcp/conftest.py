from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from punchlist import AsyncClient, connect_async
from punchlist_testing.agent_hosts import build_process
from punchlist_testing.daemon import running_daemon
from punchlist_testing.optional import require_package

MODES = ["legacy", "auto"]
"""The protocol eras: handshake and modern."""


class Host(NamedTuple):
    """A host connected to the server, and a client of the same list."""

    session: Any
    client: AsyncClient


class Connect(Protocol):
    def __call__(self, *dialects: str, **options: Any) -> AbstractAsyncContextManager[Host]: ...


@pytest.fixture(params=MODES)
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Connect:
    """Connects a host to a server in this process, in each era in turn."""
    require_package("mcp")
    mcp = import_module("mcp")

    @asynccontextmanager
    async def connect(*dialects: str, **options: Any) -> AsyncGenerator[Host]:
        from punchlist_apps.mcp.server import Setup, build

        setup = Setup(
            build_process(options.pop("directory", tmp_path)),
            str(tmp_path / "data"),
            dialects or ("native",),
            options.pop("conversation", "work"),
            user=options.pop("user", None),
            tools=options.pop("tools", None),
        )
        user: Any = {"user": setup.user} if setup.user else {}
        async with (
            running_daemon(tmp_path) as daemon,
            connect_async(socket=daemon.socket, autostart=False, **user) as client,
            connect_async(socket=daemon.socket, autostart=False, name="bob") as other,
            mcp.Client(build(client, setup), mode=request.param, **options) as session,
        ):
            yield Host(session, other)

    return connect
