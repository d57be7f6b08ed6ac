"""Real daemons that share lists, each as on a machine of its own, and the clients that use them."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import anyio

from punchlist.clients.aio import AsyncClient, connect_async
from punchlist_testing.daemon import Spawned

PATIENCE_S = 45.0

HASTY = """
import sys
from punchlistd.replication import sharing
from punchlistd.replication.adapters import link_keeper
from punchlistd.replication.lanes import lanes

lanes.COMPARE_S, sharing.ASKED_S, link_keeper.MIN_PAUSE_S, link_keeper.HURRY_PAUSE_S = 0.2, 2.5, 0.02, 0.02

from punchlistd.__main__ import main
sys.exit(main())
"""
"""Runs a daemon that compares lists and connects again sooner: no test here is about those pauses.

Members send a sign of life each second, so a daemon that repairs a list still waits for more than one of them.
"""


class Machines:
    """Daemons that end with the test.

    Args:
        directory: where each has a directory of its name.
        measured: whether their coverage counts.
    """

    def __init__(self, directory: Path, *, measured: bool = False) -> None:
        self.directory = directory
        self.running: list[Spawned] = []
        self._measured = measured

    def made(self, name: str, **env: str) -> Spawned:
        """A daemon that is not started, and is not stopped with the others."""
        env = {"PUNCHLIST_MACHINE": name, **env}
        return Spawned(self.directory / name, env=env, measured=self._measured, program=("-c", HASTY))

    def start(self, name: str, **env: str) -> Spawned:
        daemon = self.made(name, **env)
        daemon.start()
        self.running.append(daemon)
        return daemon

    @contextmanager
    def ending(self) -> Generator[Self]:
        yield self
        for daemon in self.running:
            daemon.stop()  # a killed one would not say which of its lines ran


def client(daemon: Spawned) -> AsyncClient:
    """A client that waits as long as a busy machine may take."""
    return connect_async(socket=daemon.socket, autostart=False, timeout_s=PATIENCE_S)


async def follows(one: AsyncClient, name: str, *wanted: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        async with one.conversation(name).watch(view="list") as lists:
            async for shown in lists:
                if [task.title for task in shown] == list(wanted):
                    return
