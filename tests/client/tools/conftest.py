from collections.abc import Callable, Generator

import pytest

from punchlist import Client, connect
from punchlist.tools import Seat, Toolbox
from punchlist_testing.daemon import Running

Open = Callable[..., Toolbox]


@pytest.fixture(autouse=True)
def no_conversation_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_CONVERSATION", raising=False)


@pytest.fixture
def client(daemon: Running) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="tester") as client:
        yield client


@pytest.fixture
def box(client: Client) -> Toolbox:
    """Tools of one agent on a list of its own."""
    return Toolbox(client, Seat("work", "ann"))
