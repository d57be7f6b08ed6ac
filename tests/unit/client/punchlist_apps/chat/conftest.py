"""A chat with a real daemon in this process."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from punchlist import AsyncClient
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import Talk
from punchlist_testing.daemon import Running, running_daemon


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Running]:
    async with running_daemon(tmp_path, grace_s=0.05) as running:
        yield running


@pytest.fixture
async def client(daemon: Running) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(socket=daemon.socket, autostart=False, name="test") as client:
        yield client


@pytest.fixture
async def talk(client: AsyncClient) -> Talk:
    """A thread about the list `plan`, answered by rules."""
    return Talk(await Thread.open(client, "plan"), Worker())


@pytest.fixture
async def twelve(talk: Talk) -> Talk:
    """A thread about the list `plan` with twelve tasks."""
    await talk.thread.client.conversation("plan").add_many([f"Task number {n}" for n in range(1, 13)])
    return talk


def titles(tasks: Any) -> list[str]:
    return [task.title for task in tasks]
