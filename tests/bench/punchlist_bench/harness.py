"""A run of the benchmark: directories, servers, and interleaved samples while the machine is quiet."""

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
"""A sample is repeated if other programs used more than this many processors during it."""

RETRIES = 3
"""Maximum number of repetitions of a sample."""

S = TypeVar("S")
ServerType = TypeVar("ServerType", bound=Server)


class Load(msgspec.Struct):
    """Result of the load generator: responses per second, and latencies in microseconds."""

    rate: float
    p50: float
    p99: float
    max: float
    count: int
    errors: int
    seconds: float


class Push(msgspec.Struct):
    """Result of the push generator, in microseconds: see push.c."""

    answer: float
    middle: float
    last: float
    last_p99: float


class CatchUp(msgspec.Struct):
    """Result of a catch-up; the rate is in events per second."""

    rate: float
    bytes: int
    seconds: float


class Bench:
    """A run of the benchmark.

    Attributes:
        rounds: Number of samples of each figure.
        seconds: Duration of a load sample.
        patience_s: Remaining time for repeating disturbed samples, in seconds.
        work: Temporary directory on the disk under test.
        loudness: For each sample, the number of processors that other programs used.
    """

    def __init__(self, work: Path, *, quick: bool) -> None:
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
        """Stop all servers and remove all files."""
        for server in self._servers:
            server.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)
        shutil.rmtree(self.work, ignore_errors=True)

    # servers

    def socket(self) -> Path:
        """Return a short socket path in a new directory: some servers create files next to it."""
        self._names += 1
        place = self._sockets / str(self._names)
        place.mkdir(mode=0o700)
        return place / "s"

    def fresh(self, name: str) -> Path:
        """Create a directory on the disk under test."""
        self._names += 1
        place = self.work / f"{name}-{self._names}"
        place.mkdir(parents=True)
        return place

    def daemon(self, data: Path | None = None) -> Daemon:
        """Start a daemon, by default with an empty log."""
        return self._keep(Daemon(data or self.fresh("daemon"), self.socket()))

    def stop_last(self) -> None:
        """Stop the server that was started last."""
        self._servers.pop().stop()

    def redis(self, *, durable: bool) -> Redis | None:
        """Start Redis, or return None if it isn't installed."""
        if not shutil.which("redis-server"):
            return None
        return self._keep(Redis(self.fresh("redis"), self.socket(), durable=durable))

    def serve(self, *command: str | Path) -> Server:
        """Start another anchor; `{socket}` in its command stands for the socket's path."""
        socket, place = self.socket(), self.fresh("server")
        words = [socket if word == "{socket}" else word for word in command]
        return self._keep(Server(words, socket, place / "said"))

    def floor(self) -> Server:
        """Start the floor: a minimal durable server in C."""
        return self.serve(self.bin / "floor", "{socket}", self.fresh("floor") / "log")

    def _keep(self, server: ServerType) -> ServerType:
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
        """Send requests in a closed loop, either for the duration of a sample or until `count` have been sent."""
        span = ["-n", count] if count else ["-t", self.seconds, "-w", min(0.2, self.seconds / 3)]
        options = ["-c", clients, "-d", depth, "-m", slots, *span, *requests]
        return self._generate("load", server, options, Load)

    def push(
        self, server: Server, subscribe: str, write: str, subscribers: int, *, stuck: int = 0, stuck_subscribe: str = ""
    ) -> Push:
        """Measure the time from writes to their delivery."""
        writes = 20 if subscribers > 1 else 100
        stuck_options = ["-x", stuck, "-X", stuck_subscribe] if stuck else []
        options = [
            "-n",
            subscribers,
            "-k",
            writes if self.quick else writes * 3,
            *stuck_options,
            "-S",
            subscribe,
            "-W",
            write,
        ]
        return self._generate("push", server, options, Push)

    def catch_up(self, server: Server, subscribe: str, events: int) -> CatchUp:
        """Measure how fast one subscriber receives a whole log."""
        return self._generate("push", server, ["-e", events, "-S", subscribe], CatchUp)

    def _generate(self, program: str, server: Server, options: Sequence[object], kind: type[S]) -> S:
        command = [self.bin / program, "-s", server.socket, "-P", server.protocol, *options]
        ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, check=False)
        if ran.returncode:
            raise RuntimeError(f"{program} failed: {ran.stderr}\n{server.log.read_text()[-2000:]}")
        return msgspec.json.decode(ran.stdout, type=kind)

    def in_turn(self, samples: Mapping[str, Callable[[], S]], rounds: int = 0) -> dict[str, list[S]]:
        """Take interleaved samples, so that a slow phase of the machine affects all figures."""
        taken: dict[str, list[S]] = {name: [] for name in samples}
        for _ in range(rounds or self.rounds):
            for name, sample in samples.items():
                taken[name].append(self._sample_undisturbed(sample))
        return taken

    def _sample_undisturbed(self, sample: Callable[[], S]) -> S:
        """Return a sample taken without other load on the machine, or the least disturbed of several samples."""
        best: tuple[float, S] | None = None
        for retries_left in range(RETRIES, -1, -1):
            begin, others_before = time.monotonic(), self._others_seconds()
            result = sample()
            spent = time.monotonic() - begin
            loud = max(0.0, self._others_seconds() - others_before) / max(spent, 0.01)
            if best is None or loud < best[0]:
                best = loud, result
            if best[0] <= LOUD or self.patience_s <= 0 or not retries_left:
                break
            self.patience_s -= spent + 0.2
            time.sleep(0.2)
        assert best is not None, "the loop runs at least once"
        self.loudness.append(best[0])
        return best[1]

    def _others_seconds(self) -> float:
        times = os.times()
        ours = times.user + times.system + times.children_user + times.children_system
        running = sum(process.cpu_seconds(server.pid) for server in self._servers)
        return process.machine_busy_seconds() - ours - running

    @cached_property
    def big_log(self) -> Path:
        """Return the data directory of a log with many conversations of a hundred events; see `biglog`."""
        from punchlist_bench import biglog  # noqa: PLC0415 - it imports this module

        return biglog.build(self)

    @property
    def big_conversations(self) -> int:
        """Number of conversations in the big log."""
        return 1_000 if self.quick else 10_000


def middle(values: Sequence[float]) -> float:
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the rounds' ratios."""
    return middle([a / b for a, b in zip(ours, theirs, strict=True)])


@contextlib.contextmanager
def running(*, quick: bool) -> Generator[Bench]:
    """Run the benchmark's servers and remove all files at the end of the block.

    Raises:
        RuntimeError: The load generators can't be compiled.
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
