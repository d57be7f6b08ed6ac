"""A run of the comparison: the peers, their places, and the results so far."""

import contextlib
import datetime
import os
import shutil
import tempfile
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

from punchlist_bench import machine
from punchlist_bench.table import progress
from punchlist_compare.install import find_version
from punchlist_compare.peers import Peer
from punchlist_compare.place import Place, UnmeasuredError
from punchlist_compare.results import Results, list_rows

SLOW_S = 2.0
"""A command or a start that takes longer the first time is sampled `SLOW_ROUNDS` times only."""

SLOW_ROUNDS = 3


class Comparison:
    """A run.

    Attributes:
        sizes: Numbers of tasks, ascending.
        rounds: Number of samples of each figure, except for slow commands.
    """

    def __init__(self, peers: Sequence[Peer], sizes: Sequence[int], rounds: int, work: Path) -> None:
        self.sizes = sorted(sizes)
        self.rounds = rounds
        self._peers = peers
        self._work = work
        self._programs: dict[str, Path] = {}
        self._broken: dict[str, str] = {}
        self._failed: set[tuple[str, str]] = set()
        self.results = Results(
            f"{machine.describe_hardware(work)}, {machine.python_version()}, {machine.node_version()}",
            datetime.datetime.now(datetime.UTC).date().isoformat(),
            rounds,
            self.sizes,
            {peer.name: find_version(peer) for peer in peers},
            load=os.getloadavg()[0],
        )

    def install(self, install: Callable[[Peer], Path]) -> None:
        """Install all peers with a function that returns the directory of one."""
        for peer in self._peers:
            progress(f"installing {peer.name} {self.results.versions[peer.name]}")
            try:
                self._programs[peer.name] = install(peer)
            except UnmeasuredError as error:
                self._break(peer, error)

    @contextlib.contextmanager
    def open_places(self, size: int, *, served: bool = False) -> Generator[list[tuple[Peer, Place]]]:
        """Fill a place for each installed peer, or only for those with an MCP server, and remove it after the block."""
        with contextlib.ExitStack() as opened:
            places: list[tuple[Peer, Place]] = []
            for peer in self._peers:
                if peer.name not in self._programs or (served and peer.mcp is None):
                    continue
                folder = tempfile.mkdtemp(prefix=f"{peer.name}-{size}-", dir=self._work)
                opened.callback(shutil.rmtree, folder, ignore_errors=True)
                installed = self._programs[peer.name]
                server = [str(installed / (peer.mcp_program or peer.program)), *(peer.mcp or "").split()]
                place = Place(installed / peer.program, server, peer.env, size, Path(folder) / "work")
                opened.callback(place.close)
                try:
                    peer.fill(place)
                except UnmeasuredError as error:
                    self._break(peer, error)
                else:
                    places.append((peer, place))
            yield places

    @contextlib.contextmanager
    def explaining(self, peer: Peer, *prefixes: str) -> Generator[None]:
        """If the block can't measure something, keep the reason in the peer's cells whose keys begin with a prefix."""
        try:
            yield
        except UnmeasuredError as error:
            self._explain(peer, str(error), prefixes)
            self._failed |= {(peer.name, row.key) for row in list_rows(self.sizes) if row.key.startswith(prefixes)}

    def has_failed(self, peer: Peer, key: str) -> bool:
        """Return whether a cell can't be measured, so that it needs no further attempt."""
        return (peer.name, key) in self._failed

    def pick_rounds(self, peer: Peer, first_s: float, *prefixes: str) -> int:
        """Return how often to sample something that took `first_s` seconds the first time, which isn't counted."""
        if first_s <= SLOW_S or self.rounds <= SLOW_ROUNDS:
            return self.rounds
        self._explain(peer, f"median of {SLOW_ROUNDS}", prefixes)
        return SLOW_ROUNDS

    def _explain(self, peer: Peer, why: str, prefixes: tuple[str, ...]) -> None:
        progress(f"{peer.name}, {', '.join(prefixes)}: {why}")
        for row in list_rows(self.sizes):
            if row.key.startswith(prefixes):
                self.results.explain(row.key, peer.name, why)

    def explain_empty_cells(self) -> None:
        """Give a reason to each cell that still has neither a figure nor a reason."""
        for row in list_rows(self.sizes):
            for peer in self._peers:
                cell = self.results.get(row.key, peer.name)
                if not cell.samples and not cell.why:
                    self.results.explain(row.key, peer.name, self._reason(peer, row.key))

    def _reason(self, peer: Peer, key: str) -> str:
        return (
            self._broken.get(peer.name)
            or peer.reasons.get(key.partition(".")[0])
            or peer.reasons.get("mcp")
            or peer.reasons.get("tools")
            or self.results.get("mcp.first", peer.name).why
            or "not measured"
        )

    def _break(self, peer: Peer, error: UnmeasuredError) -> None:
        progress(f"{peer.name}: {error}")
        self._broken[peer.name] = str(error)
