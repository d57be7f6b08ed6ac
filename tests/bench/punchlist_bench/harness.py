"""One run of the benchmark: places, servers, and samples taken in turn while the machine is quiet."""

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from punchlist_bench import native, process
from punchlist_bench.servers import Daemon, Redis, Server
from punchlist_bench.table import progress

ROOT = Path(__file__).resolve().parents[3]
LOUD = 0.25
"""A sample is taken again when others used more than this many processors meanwhile."""

RETRIES = 3
"""How often at most."""

S = TypeVar("S")
Kept = TypeVar("Kept", bound=Server)


class Load(msgspec.Struct):
    """What the load generator measured: answers a second, microseconds."""

    rate: float
    p50: float
    p99: float
    max: float
    count: int
    errors: int
    seconds: float


class Push(msgspec.Struct):
    """What the push generator measured, in microseconds: see push.c."""

    answer: float
    middle: float
    last: float
    last_p99: float


class CatchUp(msgspec.Struct):
    """How fast a log came: events a second."""

    rate: float
    bytes: int
    seconds: float


class Bench:
    """A run.

    `rounds` is how often each figure is sampled, `seconds` how long a sample of load lasts; `work` a directory on the
    disk under test that is gone afterwards. `patience_s` is left for waiting until others leave the machine alone.
    """

    def __init__(self, work: Path, *, quick: bool) -> None:
        """A run over a fresh directory."""
        self.quick = quick
        self.rounds = 3 if quick else 5
        self.seconds = 0.3 if quick else 1.0
        self.patience_s = 5.0 if quick else 240.0
        self.work = work
        self.bin = ROOT / "build/bench/bin"
        self.loudness: list[float] = []
        self._servers: list[Server] = []
        self._sockets = Path(tempfile.mkdtemp(prefix="punch-bench-"))
        self._names = 0

    def close(self) -> None:
        """Stop whatever still runs, and leave nothing behind."""
        for server in self._servers:
            server.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)

    # servers

    def socket(self) -> Path:
        """A short path for a socket, in a directory of its own: some servers keep things beside it."""
        self._names += 1
        place = self._sockets / str(self._names)
        place.mkdir(mode=0o700)
        return place / "s"

    def fresh(self, name: str) -> Path:
        """A new directory on the disk under test."""
        self._names += 1
        place = self.work / f"{name}-{self._names}"
        place.mkdir(parents=True)
        return place

    def daemon(self, data: Path | None = None) -> Daemon:
        """Our daemon, over an empty log if no other is named."""
        return self._keep(Daemon(data or self.fresh("daemon"), self.socket()))

    def stop_last(self) -> None:
        """Stop what was started last."""
        self._servers.pop().stop()

    def redis(self, *, durable: bool) -> Redis | None:
        """Redis, or None where it is not installed."""
        if not shutil.which("redis-server"):
            return None
        return self._keep(Redis(self.fresh("redis"), self.socket(), durable=durable))

    def serve(self, *command: str | Path) -> Server:
        """Another anchor; `{socket}` in its command becomes the socket's path."""
        socket, place = self.socket(), self.fresh("server")
        words = [socket if word == "{socket}" else word for word in command]
        return self._keep(Server(words, socket, place / "said"))

    def floor(self) -> Server:
        """The C floor under durable answers."""
        return self.serve(self.bin / "floor", "{socket}", self.fresh("floor") / "log")

    def _keep(self, server: Kept) -> Kept:
        self._servers.append(server)
        return server

    # samples

    def load(
        self,
        server: Server,
        requests: Sequence[str],
        clients: int = 1,
        *,
        depth: int = 1,
        count: int = 0,
        slots: int = 1,
    ) -> Load:
        """Drive a server with requests in a closed loop, for the run's usual time or for `count` requests."""
        span = ["-n", count] if count else ["-t", self.seconds, "-w", min(0.2, self.seconds / 3)]
        options = ["-c", clients, "-d", depth, "-m", slots, *span, *requests]
        return self._generate("load", server, options, Load)

    def push(
        self, server: Server, subscribe: str, write: str, subscribers: int, *, stuck: int = 0, stuck_subscribe: str = ""
    ) -> Push:
        """Time writes to their delivery."""
        writes = 20 if subscribers > 1 else 100
        beside = ["-x", stuck, "-X", stuck_subscribe] if stuck else []
        options = ["-n", subscribers, "-k", writes if self.quick else writes * 3, *beside, "-S", subscribe, "-W", write]
        return self._generate("push", server, options, Push)

    def catch_up(self, server: Server, subscribe: str, events: int) -> CatchUp:
        """Time a log's way to one subscriber."""
        return self._generate("push", server, ["-e", events, "-S", subscribe], CatchUp)

    def _generate(self, program: str, server: Server, options: Sequence[object], kind: type[S]) -> S:
        command = [self.bin / program, "-s", server.socket, "-P", server.protocol, *options]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)
        if ran.returncode:
            raise RuntimeError(f"{program} failed: {ran.stderr}\n{server.log.read_text()[-2000:]}")
        return msgspec.json.decode(ran.stdout, type=kind)

    def in_turn(self, samples: Mapping[str, Callable[[], S]], rounds: int = 0) -> dict[str, list[S]]:
        """Sample each in turn, round after round, so that a slow moment of the machine meets all alike."""
        taken: dict[str, list[S]] = {name: [] for name in samples}
        for _ in range(rounds or self.rounds):
            for name, sample in samples.items():
                taken[name].append(self._undisturbed(sample))
        return taken

    def _undisturbed(self, sample: Callable[[], S]) -> S:
        """A sample during which others left the machine alone; the least disturbed one when patience ends."""
        best: tuple[float, S] | None = None
        for tries in range(RETRIES, -1, -1):
            begin, others = time.monotonic(), self._others_seconds()
            taken = sample()
            spent = time.monotonic() - begin
            loud = max(0.0, self._others_seconds() - others) / max(spent, 0.01)
            if best is None or loud < best[0]:
                best = loud, taken
            if best[0] <= LOUD or self.patience_s <= 0 or not tries:
                break
            self.patience_s -= spent + 0.2
            time.sleep(0.2)
        assert best is not None, "taken once at least"
        self.loudness.append(best[0])
        return best[1]

    def _others_seconds(self) -> float:
        times = os.times()
        ours = times.user + times.system + times.children_user + times.children_system
        running = sum(process.cpu_seconds(server.pid) for server in self._servers)
        return process.machine_busy_seconds() - ours - running

    @cached_property
    def big_log(self) -> Path:
        """The data directory of a log with many conversations of a hundred events; see `biglog`."""
        from punchlist_bench import biglog  # noqa: PLC0415 # it needs this module

        return biglog.build(self)

    @property
    def big_conversations(self) -> int:
        """How many conversations the big log has."""
        return 1_000 if self.quick else 10_000


def middle(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return middle([a / b for a, b in zip(ours, theirs, strict=True)])


@contextlib.contextmanager
def running(*, quick: bool) -> Generator[Bench]:
    """A run; what it started is stopped and what it wrote is removed at its end.

    Raises:
        RuntimeError: there is no C compiler, or the disk under test is none.
    """
    place = ROOT / "build/bench"
    place.mkdir(parents=True, exist_ok=True)
    bench = Bench(Path(tempfile.mkdtemp(prefix="data-", dir=place)), quick=quick)
    try:
        progress("compiling the load generators")
        native.build(bench.bin)
        yield bench
    finally:
        bench.close()
