"""Runs a fault program: its options from the environment, its figures, and how to repeat a failure.

The environment holds SEED, SIZE, SECONDS, ONLY, BUG and ENGINE: see `Options`. The exit code is 1 if a promise was
broken, and 0 otherwise, even if the machine lacks something that the program needs.
"""

import importlib
import os
import signal
import sys
import time
import traceback
from typing import NamedTuple

from punchlist_faults.mounts import enter
from punchlist_faults.options import Figures, Options, Unavailable


class Program(NamedTuple):
    """A fault program.

    Attributes:
        size: Default of SIZE.
        needs: Programs that it needs, as root in its own namespaces; None if it needs no namespaces.
        network: Whether the namespaces include the network.
    """

    text: str
    size: int
    needs: tuple[str, ...] | None = None
    network: bool = False


PROGRAMS = {
    "apart": Program(
        "three machines and servers share a list under all faults, SIZE times for SECONDS=60 (BUG=late-post plants a "
        "bug that it must find, ENGINE=postgres; root, iproute2, openssl)",
        3,
        ("ip", "nsenter", "mkfs.ext4", "openssl"),
        network=True,
    ),
    "chat": Program("kill -9 at each point of a chat's turn, SIZE times: one change, one true answer", 64),
    "connections": Program("SIZE idle connections with a hundredth of active ones", 10_000),
    "crash": Program("kill -9 under nine clients, SIZE times: nothing acknowledged is lost or doubled", 200),
    "damage": Program("SIZE images of a log with flipped bits, zeroed sectors, swapped pages, cut tails", 2_000),
    "drain": Program("64 workers drain SIZE tasks while they and the daemon are killed", 10_000),
    "events": Program(
        "kill -9 of worker, daemon and hosts until streams of MCP Events were resumed SIZE times: no event is lost or "
        "doubled (BUG=cursor plants a bug that it must find; the MCP SDK)",
        10_000,
    ),
    "fairness": Program("one client asks for all it can over SIZE events: others wait little", 38_000),
    "full": Program(
        "a full disk, a used-up quota, failing flushes, a read-only disk under SIZE clients (root, strace, btrfs)",
        20,
        ("strace", "mkfs.ext4"),
    ),
    "fuzz": Program(
        "random bytes for each target, led by coverage for SECONDS=60, or SIZE inputs (ONLY=frames)", 20_000
    ),
    "memory": Program("memory runs out SIZE times: failing allocations, the kernel's kill (root for the latter)", 20),
    "mirrordisk": Program("a mirror's disk fills, and its power is cut SIZE times (root)", 20, ("mkfs.ext4",)),
    "powercut": Program(
        "SIZE power cuts of a disk; a control without flushes must lose something (root)", 100, ("mkfs.ext4",)
    ),
    "race": Program("SIZE daemons started at once, SIZE times: one may live", 50),
    "restart": Program("kill and start over a log of SIZE events: when it serves, what reads take", 1_000_000),
    "resume": Program("a subscriber's stream is cut at SIZE bytes: no gap, no repeat", 20_000),
    "rows": Program("folded pushes of view rows equal the list after each of SIZE calls and over cuts", 3_000),
    "sessions": Program("8 sessions of hosts make SIZE calls over MCP in two repositories and a worktree", 1_000),
    "simulate": Program("SIZE seeds of the engine in virtual time over a disk that forgets", 500),
    "simulate_shared": Program("SIZE seeds of three machines in virtual time over a space that lies", 200),
    "soak": Program("SIZE seconds of ordinary use: nothing grows", 300),
    "stuck": Program("half of SIZE subscribers stop reading while events flow", 2_000),
    "sweep": Program("kill, EIO or ENOSPC at the Nth system call, for every N up to SIZE (ONLY=append; strace)", 10**6),
    "together": Program("five clients of five kinds work one list by SIZE operations: no edit is lost", 10_000),
    "workers": Program(
        "kill -9 of the worker under 5 sessions of hosts, then 50 of the SDK, that make SIZE calls: none fails, "
        "is lost or doubled (ONLY=hosts, ONLY=sdk; BUG=keys plants a bug that it must find; the MCP SDK)",
        2_000,
    ),
}


def run(name: str, options: Options) -> Figures:
    """Run a program in this process, or in a new one if it needs namespaces."""
    program = PROGRAMS[name]
    if program.needs is not None:
        enter(*program.needs, network=program.network)
    return importlib.import_module(f"punchlist_faults.{name}").run(options)


def describe(name: str, options: Options) -> str:
    words = [f"make fault NAME={name} SEED={options.seed} SIZE={options.size}"]
    words += [f"SECONDS={options.seconds:g}"] if options.seconds is not None else []
    words += [f"{key.upper()}={value}" for key in ("only", "bug") if (value := getattr(options, key))]
    words += [f"ENGINE={options.engine}"] if options.engine != "nats" else []
    return " ".join(words)


def _stop(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    """Run the program that the command line names; without a name, list all."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in PROGRAMS:
        for each, program in PROGRAMS.items():
            print(f"  {each:<16} {program.text} [SIZE={program.size}]")
        sys.exit(f"no fault program is called {name}" if name else 0)
    signal.signal(signal.SIGTERM, _stop)  # This ends all child processes.
    given = {
        key: value for key in ("SEED", "SIZE", "SECONDS", "ONLY", "BUG", "ENGINE") if (value := os.environ.get(key))
    }
    options = Options(
        int(given.get("SEED", time.time_ns() % 1_000_000)),
        int(given.get("SIZE", PROGRAMS[name].size)),
        float(given["SECONDS"]) if "SECONDS" in given else None,
        given.get("ONLY", ""),
        given.get("BUG", ""),
        given.get("ENGINE", "nats"),
    )
    began = time.monotonic()
    try:
        figures = run(name, options)
    except Unavailable as missing:
        print(f"{name}: skipped: {missing}")
        return
    except Exception:
        traceback.print_exc()
        print(f"{name}: FAILED; repeat with: {describe(name, options)}", flush=True)
        sys.exit(1)
    print(f"{name}: SEED={options.seed} SIZE={options.size}, {time.monotonic() - began:.0f} s")
    for figure, value in figures.items():
        print(f"  {figure:<34} {value:,}" if isinstance(value, int) else f"  {figure:<34} {value}")
