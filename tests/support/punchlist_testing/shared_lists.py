"""Daemon processes that share lists, each standing for one machine, and their clients."""

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
"""Program that runs a daemon with short pauses between comparisons and reconnects, to save test time.

`ASKED_S` stays above the interval of two heartbeats, which members send every second, because a daemon that repairs a
list waits for them.
"""


class Machines:
    """Daemons that are stopped when `ending` is closed.

    Args:
        directory: Parent of the daemons' directories, which are named after them.
        measured: Whether to measure their coverage.
    """

    def __init__(self, directory: Path, *, measured: bool = False) -> None:
        self.directory = directory
        self.running: list[Spawned] = []
        self._measured = measured

    def create(self, name: str, **env: str) -> Spawned:
        """Return a daemon that isn't started yet, and isn't stopped with the others."""
        env = {"PUNCHLIST_MACHINE": name, **env}
        return Spawned(self.directory / name, env=env, measured=self._measured, program=("-c", HASTY))

    def start(self, name: str, **env: str) -> Spawned:
        daemon = self.create(name, **env)
        daemon.start()
        self.running.append(daemon)
        return daemon

    @contextmanager
    def ending(self) -> Generator[Self]:
        yield self
        for daemon in self.running:
            daemon.stop()  # a killed process writes no coverage data


def client(daemon: Spawned) -> AsyncClient:
    """Return a client whose timeout allows for a busy machine."""
    return connect_async(socket=daemon.socket, autostart=False, timeout_s=PATIENCE_S)


async def follows(client: AsyncClient, name: str, *titles: str) -> None:
    """Wait until a list's tasks have exactly these titles."""
    with anyio.fail_after(PATIENCE_S):
        async with client.conversation(name).watch(view="list") as lists:
            async for tasks in lists:
                if [task.title for task in tasks] == list(titles):
                    return
