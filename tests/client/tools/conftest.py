from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from punchlist import Client, connect
from punchlist.tools import Seat, Toolbox
from punchlist_testing.daemon import Running

Open = Callable[..., Toolbox]


@pytest.fixture(autouse=True)
def no_conversation_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUNCHLIST_CONVERSATION", raising=False)
    monkeypatch.setenv("PUNCHLIST_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def client(daemon: Running) -> Generator[Client]:
    with connect(socket=daemon.socket, autostart=False, name="tester") as client:
        yield client


@pytest.fixture
def box(client: Client) -> Toolbox:
    """Tools of one agent on a list of its own."""
    return Toolbox(client, Seat("work", "ann"))
