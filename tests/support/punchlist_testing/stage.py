"""A daemon and `punch web` in child processes, with realistic lists."""

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from punchlist import Client
from punchlist_apps.common.http.keys import Keys, Scope
from punchlist_apps.common.http.secret_file import SecretFile
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import Link
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.terminal import environment

READY_S = 20.0


class Stage:
    """A `punch web` server.

    Attributes:
        url: Its URL.
        secret: The token for scripts.
        daemon: Its daemon.
        clients: Actor -> client.
    """

    def __init__(self, daemon: Spawned) -> None:
        self.daemon = daemon
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        data = Path(daemon.data_dir)
        secret = SecretFile(str(data / "web.token"))
        self.keys = Keys(secret, data / "web.used")
        self.secret = secret.value.decode()
        self.clients: dict[str, Client] = {}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start `punch web` and wait until it responds."""
        command = [sys.executable, "-m", "punchlist", "--socket", self.daemon.socket]
        command += ["--data-dir", self.daemon.data_dir, "web", "--port", str(self.port)]
        env = environment(PUNCHLIST_AUTOSTART="0", PUNCHLIST_ACTOR="ann")
        with open(self.daemon.directory / "web.log", "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=READY_S)) as connection:
                    connection.request("GET", "/")
                    connection.getresponse().read()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)  # No event reports that the port is bound.
        raise RuntimeError((self.daemon.directory / "web.log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(READY_S)

    def link(self, **scope: Any) -> str:
        return f"{self.url}/#ticket={self.keys.issue_ticket(Scope(**scope))}"

    def by(self, actor: str) -> Client:
        if actor not in self.clients:
            self.clients[actor] = Client(socket=self.daemon.socket, autostart=False, name=actor)
        return self.clients[actor]


@contextmanager
def stage(directory: Path) -> Generator[Stage]:
    """Run `punch web` with an empty daemon."""
    with spawned_daemon(directory) as daemon:
        server = Stage(daemon)
        server.start()
        try:
            yield server
        finally:
            server.stop()
            for client in server.clients.values():
                client.close()


BOARD = """A card for every list that has something to do.
The ones being worked on come first; what needs somebody stands above all."""


DAY_MS = 86_400_000


def midnight(days: int) -> int:
    """Return the beginning of the local day `days` days from now, in milliseconds since 1970 UTC."""
    today = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    return round((today + timedelta(days)).timestamp() * 1000)


def plan(stage: Stage) -> None:
    """Create the lists of the screenshots: three agents on a release, and other lists of the project."""
    codex, claude, gemini = (stage.by(name) for name in ("codex", "claude-code", "gemini"))
    codex.call("conversation.open", {"conversation": "release-1.0", "title": "Release 1.0"})
    release = codex.conversation("release-1.0")
    release.add_many(
        [
            NewTask(
                title="Write the guard",
                ref="g",
                priority="urgent",
                description="Host, Origin and token, before any handler runs.",
                labels=("security",),
            ),
            NewTask(
                title="Serve tasks over HTTP", ref="s", priority="high", active_form="Serving tasks", blocked_by=("g",)
            ),
            NewTask(
                title="Stream events as they happen",
                ref="e",
                active_form="Streaming events",
                blocked_by=("g",),
                labels=("page",),
            ),
            NewTask(
                title="Draw the board",
                ref="b",
                blocked_by=("s", "e"),
                description=BOARD,
                labels=("page", "needs a look"),
                due=midnight(9),
                estimate_ms=2 * DAY_MS,
                links=(Link(kind="path", to="docs/faces.md"), Link(kind="relates-to", to="2")),
            ),
            NewTask(title="Undo with a preview", ref="u", blocked_by=("b",)),
            NewTask(title="Only the rows that are seen", parent="b", ref="v", blocked_by=("b",)),
            NewTask(title="One key map for both faces", parent="b", ref="k", blocked_by=("b",)),
            NewTask(title="Graph of what waits for what", ref="gr", blocked_by=("b",)),
            NewTask(title="Slide through all versions", ref="t", priority="high", blocked_by=("b", "u")),
            NewTask(title="Check with a screen reader", ref="a", blocked_by=("v", "k", "gr")),
            NewTask(title="Pictures for the README", ref="p", priority="low", blocked_by=("a",)),
            NewTask(title="Measure a cold start", ref="m"),
            NewTask(title="Ask for a name", ref="n", owner="ann", not_before=midnight(3)),
        ]
    )
    release.edit("1", owner="codex")
    release.start("1")
    release.complete("1", result="2,040 combinations, none gets past it")
    release.note("4", "Cards of one height, and the spinner on the line of the text.", actor="ann")
    release.edit("2", owner="codex")
    release.start("2")
    claude_release = claude.conversation("release-1.0")
    claude_release.edit("3", owner="claude-code")
    claude_release.start("3")
    gemini.conversation("release-1.0").start("12")
    gemini.conversation("release-1.0").fail("12", "the machine was busy: 40 % spread over ten runs")
    _create_other_lists(stage)


OTHER_LISTS = """
website | Website | ann | in_progress | 1 | Agree on the menu, Order the ingredients, Bake the bread, Lay the tables
parser | Parser in Rust | claude-code | in_progress | 3 | Grammar, Tokens, Expressions, Statements, Errors, Fuzz it
migration | Move to the new disks | gemini | in_progress | 2 | Count the files, Copy, Compare, Switch over, Wait, Wipe
docs | Documents in plain words | claude-code | in_progress | 4 | Install, First list, Agents, Protocol, Index
inbox | Inbox | ann | pending | 0 | Answer the landlord, Book the train, Renew the passport
benchmarks | Benchmarks | codex | pending | 2 | Anchors, Cold start, Ten thousand rows, Write it up
garden | | ann | paused | 1 | Order seeds, Dig the beds, Plant the beans
spike-tui | | gemini | completed | 3 | Compare toolkits, Draw ten thousand rows, Write down figures
retro | Retrospective | ann | completed | 2 | Collect notes, Write it up
"""
"""Name, title, owner, status of the first open task, number of completed tasks, and titles of the tasks."""


def _create_other_lists(stage: Stage) -> None:
    for line in reversed(OTHER_LISTS.strip().splitlines()):
        name, title, owner, state, completed, tasks = (part.strip() for part in line.split("|"))
        done, titles = int(completed), tasks.split(", ")
        client = stage.by(owner)
        client.call("conversation.open", {"conversation": name, **({"title": title} if title else {})})
        tasks = client.conversation(name)
        tasks.add_many(titles)
        for number in range(1, done + 1):
            tasks.start(str(number))
            tasks.complete(str(number))
        first_open = str(done + 1)
        if state == "in_progress":
            tasks.edit(first_open, owner=owner, active_form=titles[done])
            tasks.start(first_open)
        elif state == "paused":
            tasks.start(first_open)
            tasks.pause(first_open)
