import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from textual import events
from textual.keys import _character_to_key  # pyright: ignore[reportPrivateUsage]
from textual.pilot import Pilot
from textual.widgets import Input

from punchlist.clients.aio import AsyncClient, AsyncConversation, connect_async
from punchlist_apps.common.terminal.style import UNICODE_GLYPHS
from punchlist_apps.ui.app import PunchApp
from punchlist_apps.ui.program import Setup
from punchlist_testing.daemon import Running, running_daemon

PATIENCE_S = 30


class Shown:
    """`punch ui` on a headless screen."""

    def __init__(self, app: PunchApp, pilot: "Pilot[None]") -> None:
        self.app = app
        self.pilot = pilot

    @property
    def lines(self) -> list[str]:
        """The text of the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def press(self, *keys: str) -> None:
        """Press keys, each after the previous one has been handled.

        The pilot's own `press` waits until the processor is idle, which takes 50 ms per key.
        """
        for key in keys:
            single = len(key) == 1
            event = events.Key(_character_to_key(key) if single else key, key if single else None)
            event.set_sender(self.app)
            driver = self.app._driver  # pyright: ignore[reportPrivateUsage]
            assert driver is not None
            driver.send_message(event)
            await self.settle()

    async def settle(self) -> None:
        """Wait until every widget has handled its messages."""
        for _ in range(2):  # handling a message may send another one
            await self.pilot._wait_for_screen()  # pyright: ignore[reportPrivateUsage]

    async def type(self, text: str) -> None:
        """Type into the focused field."""
        await self.until(lambda: isinstance(self.app.focused, Input))
        field = self.app.focused
        assert isinstance(field, Input)
        field.insert_text_at_cursor(text)
        await self.settle()

    def field(self, name: str) -> Input:
        """Return a field of the open form."""
        return self.app.screen.query_one(f"#{name}", Input)

    async def until(self, wanted: str | Callable[[], object]) -> None:
        """Wait until the screen shows some text, or a condition holds."""
        try:
            with anyio.fail_after(PATIENCE_S):
                while not (wanted in self.text if isinstance(wanted, str) else wanted()):
                    await self.settle()
                    await anyio.lowlevel.checkpoint()
        except TimeoutError:
            raise AssertionError(f"{wanted!r} does not come:\n{self.text}") from None

    @staticmethod
    def timers() -> list[str]:
        """Return the names of running timers."""
        names = [task.get_name() for task in asyncio.all_tasks() if not task.done()]
        return [name for name in names if name.startswith(("Timer", "spinner"))]


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncGenerator[Running]:
    async with running_daemon(tmp_path) as daemon:
        yield daemon


@pytest.fixture
async def client(daemon: Running) -> AsyncGenerator[AsyncClient]:
    async with connect_async(socket=daemon.socket, name="codex", autostart=False) as client:
        yield client


@pytest.fixture
def plan(client: AsyncClient) -> AsyncConversation:
    return client.conversation("plan")


Show = Callable[..., Any]


@pytest.fixture
def show(daemon: Running) -> Show:
    """Opens `punch ui` with a list, by default `plan`. None opens the board, and "" the first screen."""

    @asynccontextmanager
    async def show(
        conversation: str | None = "plan", *, size: tuple[int, int] = (100, 24), timeout_s: float = 3, **setup: Any
    ) -> AsyncGenerator[Shown]:
        options: Any = {"socket": daemon.socket, "autostart": False, "name": "punch ui", "timeout_s": timeout_s}
        app = PunchApp(Setup(options, UNICODE_GLYPHS, conversation or None, **setup))
        async with app.run_test(size=size) as pilot:
            shown = Shown(app, pilot)
            await shown.until("● live")
            if conversation is None:
                await shown.press("8")
            yield shown

    return show
