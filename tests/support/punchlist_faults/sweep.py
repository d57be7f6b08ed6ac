"""A fault at the Nth system call, for every N: killed there, or the call fails with EIO or ENOSPC.

Each point starts from a copy of one log, runs a scenario under strace until the fault strikes, starts a sound daemon on
what is left, and judges. SIZE is the largest N; by default every N is tried until the scenario passes unharmed. ONLY
names one scenario.
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
"""How a killed process, or a tracer that had one, ends."""

MISSES = 2
"""N in a row that strike nothing, after which a scenario has none left: strace counts for each thread by itself."""

ENDS = frozenset({0, 74, 78})
"""How a daemon that met an error may end: by request, for an I/O error, or because its log can't be opened."""


class Scenario(NamedTuple):
    """What is done until the fault strikes. Without `attached` the daemon's start belongs to it."""

    name: str
    act: Callable[[Daemon, "Talk"], None]
    attached: bool = True
    fresh: bool = False
    plant: tuple[str, ...] = ()


class Fault(NamedTuple):
    """The Nth of these calls is hit."""

    call: str
    kind: str
    number: int | str

    def injection(self) -> list[str]:
        """As strace wants it. What is sent is traced too: the order of its lines is the proof."""
        what = "signal=KILL" if self.kind == "KILL" else f"error={self.kind}"
        traced = f"trace={self.call},sendto,sendmsg"
        return ["-y", "-s", "400", "-e", traced, "-e", f"inject={self.call}:{what}:when={self.number}"]

    def __str__(self) -> str:
        return f"{self.call} {self.kind} at {self.number}"


class Talk:
    """A client that makes one call after the other, and none twice.

    Attributes:
        kinds: The kinds of the errors.
        is_cut: Whether a connection was lost: the daemon is gone, or about to go.
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
    for each in range(number):
        key = f"{prefix}{each}"
        params: dict[str, Any] = {"conversation": f"c{each % 2}", "key": key}
        one = Entry("task.add", {**params, "title": key}, [key])
        entries.append(add_many(params, [f"{key}/{part}" for part in range(3)]) if each % 3 == 1 else one)
    return entries


def _start(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("s", 1))


def _append(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("a", 5))


def _checkpoint(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("p", 8))
    with talk.asking():
        daemon.connect().call("conversation.list")  # brings the index up to date


def _shut_down(daemon: Daemon, talk: Talk) -> None:
    talk.say(daemon, *_calls("e", 2))
    if daemon.is_running:
        with talk.asking():
            daemon.connect().call("daemon.shutdown")
        daemon.wait()


def _erase(daemon: Daemon, talk: Talk) -> None:
    with talk.asking():
        link = daemon.connect()
        asked = link.call("conversation.delete", conversation="gone")["error"]["data"]
        if asked["kind"] == "confirmation_required":
            link.call("conversation.delete", conversation="gone", confirm=asked["token"])
        else:  # the fault struck what the daemon does after its start
            talk.kinds.append(asked["kind"])


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
    """Runs points of scenarios below one directory."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._golden = place / "golden"
        self.told = 0
        # A log that was killed: a database, something written ahead, something to erase.
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
            # SQLite flushes the directory too, and continues where that fails. A daemon continues without its index.
            failed = [line for line in seen.splitlines() if "(INJECTED)" in line]
            on_a_log = any("/log." in line and f"/{INDEX[0]}" not in line for line in failed)
            failing = scenario.attached and on_a_log and fault.call in FLUSHED and fault.kind == "EIO"
            if failing and daemon.is_running and "SIGKILL" not in seen:
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
        if failing:
            need(code == 74, f"it continued after a failed write ({code})")
            need(not (acks := acks_after(seen)), f"it acknowledged after the error: {acks[:1]}")
        self.told += "outcome_unknown" in talk.kinds
        return True


def _judge(daemon: Daemon, scenario: Scenario, talk: Talk) -> None:
    """A sound daemon starts on what is left, and everything acknowledged is there."""
    if daemon.log.exists() and "upgrade" not in scenario.plant:  # that version only the planted program knows
        judge.sound(daemon.log)
    daemon.start()
    link = daemon.connect()
    for entry in talk.journal:
        if entry.acks:
            again = link.result(entry.method, **entry.params)
            told = (entry.acks[0].seq, entry.acks[0].version)
            need((again["seq"], again["version"]) == told, f"{entry.key} was answered {told}, now {again}")
    daemon.kill()
    if scenario.name != "erase":
        judge.compare(talk.journal, judge.stored_events(daemon.log))


def acks_after(traced: str) -> list[str]:
    """Return what was acknowledged after an injected error; strace writes its lines in order."""
    return re.findall(r'send(?:to|msg)\(.*\\"result\\":.*\\"seq\\":', traced[traced.index("(INJECTED)") :])


def attach(daemon: Daemon, fault: Fault, traced: Path) -> "subprocess.Popen[bytes]":
    said = daemon.directory / "strace"
    with open(said, "wb") as file:
        command = ["strace", "-f", "-p", str(daemon.pid()), "-o", str(traced), *fault.injection()]
        tracer = subprocess.Popen(command, stderr=file)
    eventually(lambda: b"attached" in said.read_bytes() or tracer.poll() is not None, 10, "strace attaches")
    if b"attached" not in said.read_bytes():  # a tracer that struck immediately is gone too
        raise Unavailable(f"strace can't attach: {said.read_text().strip()}")
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
                points[f"points of: {scenario.name}"] = _run_all(sweep, scenario, options.size)
    return {**points, "points": sum(points.values()), "told outcome_unknown": sweep.told}


def _run_all(sweep: Sweep, scenario: Scenario, largest: int) -> int:
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
