"""A fault at the Nth system call, for every N: the daemon is killed, or the call fails with EIO or ENOSPC.

Each point starts from a copy of one log, runs a scenario under strace until the fault occurs, starts a daemon without
faults on the resulting files, and checks the result. SIZE is the largest N; by default every N is tried until the
scenario ends without a fault. ONLY names one scenario.
"""

import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from punchlist_faults import judge
from punchlist_faults.load import Entry, add_many
from punchlist_faults.options import Figures, Options, Unavailable, Violation, need, workplace
from punchlist_faults.process import Daemon, Ended, daemon_in, eventually
from punchlist_testing.optional import explain, find_program
from punchlistd.store.port import LogUnusable

CALLS = ("pwrite64", "fdatasync", "fsync", "ftruncate", "fallocate", "rename", "link", "unlink", "openat")
INDEX = ("log.index", "log.index-wal")
FILES = (*INDEX, "log.db", "log.db-wal", "log.db.new", "log.db.new-wal", "log.mark", "log.reserve", "lock", "")
BACKUP = ("log.db.v2.backup", "log.db.v2.backup.new", "log.db.v2.backup.new-journal")
FLUSHED = ("pwrite64", "fdatasync", "fsync", "ftruncate")
"""System calls whose failure makes the outcome of a write unknown."""

KILLED = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})
"""Exit codes of a killed process, and of strace if its process was killed."""

MISSES = 2
"""Consecutive N without a fault after which a scenario ends: strace counts calls separately for each thread."""

ENDS = frozenset({0, 74, 78})
"""Permitted exit codes after an error: shutdown, I/O error, or a log that can't be opened."""


class Scenario(NamedTuple):
    """Actions during which the fault occurs. With `attached`, faults begin after the daemon's start, otherwise with
    it."""

    name: str
    act: Callable[[Daemon, "Talk"], None]
    attached: bool = True
    fresh: bool = False
    plant: tuple[str, ...] = ()


class Fault(NamedTuple):
    """A fault at the Nth call of one system call."""

    call: str
    kind: str
    number: int | str

    def injection(self) -> list[str]:
        """Return the options of strace. strace also traces sends, to show which responses follow the fault."""
        what = "signal=KILL" if self.kind == "KILL" else f"error={self.kind}"
        traced = f"trace={self.call},sendto,sendmsg"
        return ["-y", "-s", "400", "-e", traced, "-e", f"inject={self.call}:{what}:when={self.number}"]

    def __str__(self) -> str:
        return f"{self.call} {self.kind} at {self.number}"


class Talk:
    """A client that makes calls in sequence without retries.

    Attributes:
        kinds: Kinds of the errors.
        is_cut: Whether a connection was lost because the daemon has ended or is about to.
    """

    def __init__(self) -> None:
        self.journal: list[Entry] = []
        self.kinds: list[str] = []
        self.is_cut = False

    @contextmanager
    def asking(self) -> Generator[None]:
        try:
            yield
        except (OSError, EOFError):
            self.is_cut = True

    def say(self, daemon: Daemon, *entries: Entry) -> None:
        with self.asking():
            link = daemon.connect()
            for entry in entries:
                self.journal.append(entry)
                if kind := entry.take(link.call(entry.method, **entry.params)):
                    self.kinds.append(kind)


def _calls(prefix: str, number: int) -> list[Entry]:
    entries: list[Entry] = []
    for index in range(number):
        key = f"{prefix}{index}"
        params: dict[str, Any] = {"conversation": f"c{index % 2}", "key": key}
        if index % 3 == 1:
            entries.append(add_many(params, [f"{key}/{part}" for part in range(3)]))
        else:
            entries.append(Entry("task.add", {**params, "title": key}, [key]))
    return entries


def _start(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("s", 1))


def _append(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("a", 5))


def _checkpoint(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("p", 8))
    with talk.asking():
        daemon.connect().call("conversation.list")  # This brings the index up to date.


def _shut_down(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("e", 2))
    if daemon.is_running:
        with talk.asking():
            daemon.connect().call("daemon.shutdown")
        daemon.wait()


def _erase(daemon: Daemon, talk: Talk) -> None:
    with talk.asking():
        link = daemon.connect()
        error = link.call("conversation.delete", conversation="gone")["error"]["data"]
        if error["kind"] == "confirmation_required":
            link.call("conversation.delete", conversation="gone", confirm=error["token"])
        else:  # the fault occurred in the daemon's work after its start
            talk.kinds.append(error["kind"])


SCENARIOS = (
    Scenario("first start", _start, attached=False, fresh=True),
    Scenario("start", _start, attached=False),
    Scenario("append", _append),
    Scenario("checkpoint", _checkpoint, plant=("small-checkpoints",)),
    Scenario("upgrade", _start, attached=False, plant=("upgrade",)),
    Scenario("shutdown", _shut_down),
    Scenario("erase", _erase),
)


class Sweep:
    """Runs scenarios with faults below one directory.

    Attributes:
        unknown_outcomes: Number of points at which a client got `outcome_unknown`.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._golden = place / "golden"
        self.unknown_outcomes = 0
        # The log of a killed daemon, with a database, a WAL, and a list to erase.
        with daemon_in(self._golden) as daemon:
            daemon.start()
            talk = Talk()
            talk.say(daemon, *_calls("g", 6))
            daemon.stop()
            daemon.start()
            talk.say(daemon, *_calls("h", 3))
            daemon.connect().result("task.add", conversation="gone", title="secret")
        self._before = talk.journal

    def point(self, scenario: Scenario, fault: Fault) -> bool:
        directory = self._place / "point"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        talk = Talk()
        if not scenario.fresh:
            shutil.copytree(self._golden / "data", directory / "data")
            talk.journal += self._before
        try:
            with daemon_in(directory) as daemon:
                daemon.plant = scenario.plant
                struck = self._strike(daemon, scenario, fault, talk)
            with daemon_in(directory) as daemon:
                daemon.plant = scenario.plant
                _judge(daemon, scenario, talk)
        except (Violation, Ended, OSError, LogUnusable) as error:
            raise Violation(f"{scenario.name}, {fault}: {error}") from error
        return struck

    def _strike(self, daemon: Daemon, scenario: Scenario, fault: Fault, talk: Talk) -> bool:
        traced = daemon.directory / "traced"
        tracer: subprocess.Popen[bytes] | None = None
        code: int | None = None
        if scenario.attached:
            daemon.start()
            tracer = attach(daemon, fault, traced)
        else:
            names = [f"{daemon.data}/{name}".rstrip("/") for name in (*FILES, *BACKUP)]
            paths = [part for name in names for part in ("-P", name)]
            daemon.tracer = ["strace", "-f", "-qq", "-o", str(traced), *paths, *fault.injection()]
        try:
            if not scenario.attached:
                daemon.start()
            scenario.act(daemon, talk)
        except Ended as ended:
            code = ended.code
        finally:
            seen = traced.read_text(errors="replace")
            # SQLite ignores a failed flush of the directory, and a daemon continues without its index.
            failed = [line for line in seen.splitlines() if "(INJECTED)" in line]
            hit_log = any("/log." in line and f"/{INDEX[0]}" not in line for line in failed)
            must_end = scenario.attached and hit_log and fault.call in FLUSHED and fault.kind == "EIO"
            if must_end and daemon.is_running and "SIGKILL" not in seen:
                with suppress(Violation):
                    code = daemon.wait(2)
            if fault.kind == "KILL" and talk.is_cut:
                eventually(lambda: not daemon.is_running, 5, "a killed daemon is gone")
            ended_with = daemon.process.poll() if daemon.process is not None else None
            code = ended_with if code is None else code
            daemon.kill()
            if tracer is not None:
                tracer.kill()
                tracer.wait()
        if fault.kind == "KILL":
            return ended_with in KILLED or "(INJECTED)" in seen
        if "(INJECTED)" not in seen:
            return False
        need(code is None or code in ENDS, f"it ended with {code}")
        if must_end:
            need(code == 74, f"it continued after a failed write ({code})")
            need(not (acks := acks_after(seen)), f"it acknowledged after the error: {acks[:1]}")
        self.unknown_outcomes += "outcome_unknown" in talk.kinds
        return True


def _judge(daemon: Daemon, scenario: Scenario, talk: Talk) -> None:
    """Check that a daemon without faults starts, and that all acknowledged calls are in the log."""
    # Only the program with the injected fault supports the version of an upgraded log.
    if daemon.log.exists() and "upgrade" not in scenario.plant:
        judge.verify_log(daemon.log)
    daemon.start()
    link = daemon.connect()
    for entry in talk.journal:
        if entry.acks:
            again = link.result(entry.method, **entry.params)
            original = (entry.acks[0].seq, entry.acks[0].version)
            need((again["seq"], again["version"]) == original, f"{entry.key} was answered {original}, now {again}")
    daemon.kill()
    if scenario.name != "erase":
        judge.compare(talk.journal, judge.stored_events(daemon.log))


def acks_after(traced: str) -> list[str]:
    """Return the acknowledgements after an injected error; strace writes its lines in order."""
    return re.findall(r'send(?:to|msg)\(.*\\"result\\":.*\\"seq\\":', traced[traced.index("(INJECTED)") :])


def attach(daemon: Daemon, fault: Fault, traced: Path) -> "subprocess.Popen[bytes]":
    log_file = daemon.directory / "strace"
    with open(log_file, "wb") as file:
        command = ["strace", "-f", "-p", str(daemon.pid()), "-o", str(traced), *fault.injection()]
        tracer = subprocess.Popen(command, stderr=file)
    eventually(lambda: b"attached" in log_file.read_bytes() or tracer.poll() is not None, 10, "strace attaches")
    if b"attached" not in log_file.read_bytes():  # If the fault occurred immediately, the tracer has ended too.
        raise Unavailable(f"strace can't attach: {log_file.read_text().strip()}")
    return tracer


def faults(number: int) -> list[Fault]:
    kinds = {call: ["KILL", "EIO"] for call in CALLS}
    for call in ("pwrite64", "fallocate", "openat"):
        kinds[call].append("ENOSPC")
    return [Fault(call, kind, number) for call, some in kinds.items() for kind in some]


def need_strace() -> None:
    if find_program("strace") is None:
        raise Unavailable(explain("strace"))
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False, capture_output=True, text=True)
    if tried.returncode:
        raise Unavailable(f"tracing is not allowed: {tried.stderr.strip()}")


def run(options: Options) -> Figures:
    need_strace()
    points: dict[str, int] = {}
    with workplace() as place:
        sweep = Sweep(place)
        for scenario in SCENARIOS:
            if options.only in ("", scenario.name):
                points[f"points of: {scenario.name}"] = _run_points(sweep, scenario, options.size)
    return {**points, "points": sum(points.values()), "told outcome_unknown": sweep.unknown_outcomes}


def _run_points(sweep: Sweep, scenario: Scenario, largest: int) -> int:
    struck = 0
    for fault in faults(1):
        missed = 0
        for number in range(1, largest + 1):
            if sweep.point(scenario, fault._replace(number=number)):
                struck, missed = struck + 1, 0
            else:
                missed += 1
            if missed == MISSES:
                break
    return struck
