"""Both faces with a real daemon that is killed during calls: nothing is lost, nothing is done twice."""

import os
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from punchlist import DaemonStopped, DaemonUnavailable, PunchlistError, TimedOut, WrongDataDirectory, connect
from punchlist.connection.core import Retry
from punchlist.connection.launch import Target, is_stopped
from punchlist_schemas.events import TaskAdded
from punchlist_testing.daemon import Spawned
from punchlist_testing.faces import Connect
from punchlist_testing.optional import needs

WRITERS = 4
EACH = 40
KILLS = 3


def test_kills_lose_and_repeat_nothing(process: Spawned, open_client: Connect) -> None:
    wanted = {f"{writer}-{n}" for writer in range(WRITERS) for n in range(EACH)}
    acknowledged: list[str] = []
    enough = threading.Semaphore(0)

    def write(writer: int) -> None:
        with open_client(process.socket) as client:
            plan = client.conversation("c")
            for n in range(EACH):
                acknowledged.append(plan.add(f"{writer}-{n}").title)
                enough.release()

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    with open_client(process.socket) as client, client.conversation("c").watch() as changes:
        for thread in writers:
            thread.start()
        for _ in range(KILLS):
            for _ in range(WRITERS * EACH // (KILLS + 1)):
                assert enough.acquire(timeout=20)
            process.restart()
        for thread in writers:
            thread.join(20)
        seen = [changes.next(timeout_s=20) for _ in range(len(wanted) + 1)]
        with pytest.raises(TimedOut):
            changes.next(timeout_s=0.05)
        stored = [task.title for task in client.conversation("c").list()]
    assert sorted(acknowledged) == sorted(wanted)
    assert sorted(stored) == sorted(wanted)
    assert [change.version for change in seen] == list(range(1, len(wanted) + 2))
    assert [change.event.task.title for change in seen if isinstance(change.event, TaskAdded)] == stored


_FOLLOW = """
import sys
from punchlist import connect
for tasks in connect(socket=sys.argv[1], name=sys.argv[2], autostart=False).conversation("c").watch(view="list"):
    pass
"""


def test_presence_reports_killed_agents_across_restarts(process: Spawned, open_client: Connect) -> None:
    def follow(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", _FOLLOW, process.socket, name], stdout=subprocess.PIPE)

    with open_client(process.socket, name="watching") as client:
        with client.conversation("c").watch(view="presence") as watch:

            def wait_for(**connections: int) -> None:
                while {one.actor: one.connections for one in watch.next(30)} != connections:
                    pass

            wait_for(watching=1)
            followers = [follow(name) for name in ("ann", "ann", "bob")]
            try:
                wait_for(watching=1, ann=2, bob=1)
                followers[0].kill()
                wait_for(watching=1, ann=1, bob=1)
                process.kill()
                followers[1].kill()
                process.start()
                wait_for(watching=1, bob=1)
            finally:
                for each in followers:
                    each.kill()
                    each.communicate()
            wait_for(watching=1)
        assert [one.actor for one in client.conversation("c").presence()] == []


def test_stopping_daemon_hands_over_to_next(process: Spawned, open_client: Connect) -> None:
    with open_client(process.socket) as client:
        plan = client.conversation("c")
        plan.add("one")
        assert client.shutdown()
        assert process.process is not None
        assert process.process.wait(20) == 0
        process.start()
        assert plan.complete("1").remaining == 0


def test_frozen_daemon_costs_only_the_timeout(process: Spawned, open_client: Connect) -> None:
    with open_client(process.socket, timeout_s=0.6) as client:
        plan = client.conversation("c")
        plan.add("one")
        assert process.process is not None
        process.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(TimedOut):
                plan.list()
            with pytest.raises(TimedOut), open_client(process.socket, timeout_s=0.2):
                pass
        finally:
            process.process.send_signal(signal.SIGCONT)
        assert len(plan.list()) == 1


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A separate home, whose daemon is stopped at the end."""
    for name in ("PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "PUNCHLIST_AUTOSTART", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    runtime = tmp_path / ("r" * 120)
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("HOME", str(tmp_path))
    here = Path(__file__).parents[4]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(here / part) for part in ("daemon", "client", "schemas")))
    yield tmp_path
    with suppress(DaemonUnavailable), connect(socket=f"{runtime}/punchlist/daemon.sock", autostart=False) as client:
        client.shutdown()


def test_client_starts_and_restarts_daemon(environment: Path, open_client: Connect) -> None:
    socket = f"{os.environ['XDG_RUNTIME_DIR']}/punchlist/daemon.sock"
    with open_client(socket, autostart=True) as client:
        first = client.status().pid
        client.conversation("c").add("one")
        os.kill(first, signal.SIGKILL)
        client.conversation("c").add("two")
        assert client.status().pid != first
        assert [task.title for task in client.conversation("c").list()] == ["one", "two"]
    assert (environment / ".local/share/punchlist/log.db").exists()
    assert (environment / ".local/share/punchlist").stat().st_mode & 0o777 == 0o700


def test_concurrent_clients_start_one_daemon(environment: Path) -> None:
    pids: list[int] = []

    def meet() -> None:
        with connect() as client:
            pids.append(client.status().pid)

    starters = [threading.Thread(target=meet) for _ in range(4)]
    for thread in starters:
        thread.start()
    for thread in starters:
        thread.join(30)
    assert len(pids) == len(starters)
    assert len(set(pids)) == 1


@needs("mount")
@pytest.mark.skipif(os.getuid() != 0, reason="a mount namespace takes root")
def test_sandboxed_daemon_is_rejected_before_any_call(environment: Path, open_client: Connect) -> None:
    """The first caller runs in a sandbox that shares the socket's directory but has its own home."""
    data = environment / ".local/share"
    data.mkdir(parents=True)
    (data / "punchlist").mkdir(mode=0o700)
    (data / "punchlist" / "lock").touch(0o600)
    program = "import punchlist; punchlist.connect().conversation('c').add('inside')"
    inside = f"mount -t tmpfs none {data} && {sys.executable} -c {shlex.quote(program)}"
    made = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside], capture_output=True, text=True, timeout=30, check=False
    )
    if "unshare:" in made.stderr or "mount:" in made.stderr:
        pytest.skip(made.stderr)
    assert (made.returncode, made.stderr) == (0, "")
    with pytest.raises(WrongDataDirectory, match="in a sandbox with its own files"):
        with open_client(None, autostart=True) as client:
            client.conversation("c").add("outside")
    socket = f"{os.environ['XDG_RUNTIME_DIR']}/punchlist/daemon.sock"
    with connect(socket=socket) as client:
        assert [task.title for task in client.conversation("c").list()] == ["inside"]


def test_follower_of_repaired_list_gets_rest_and_changes(process: Spawned, open_client: Connect) -> None:
    with open_client(process.socket) as client:
        plan = client.conversation("c")
        for title in ("first", "second", "third"):
            plan.add(title)
        with plan.watch(view="list") as lists, plan.watch(view="rows") as rows:
            whole = [follower.next(timeout_s=20) for follower in (lists, rows)]
            assert all([task.title for task in seen] == ["first", "second", "third"] for seen in whole)
            process.kill()
            with closing(sqlite3.connect(Path(process.data_dir) / "log.index", isolation_level=None)) as connection:
                connection.execute("DELETE FROM snapshots").close()
            with closing(sqlite3.connect(Path(process.data_dir) / "log.db", isolation_level=None)) as connection:
                connection.execute("UPDATE log SET body = CAST(replace(body, 'third', 'thirt') AS BLOB)").close()
            words = [sys.executable, "-m", "punchlistd", "--repair", "--data-dir", process.data_dir]
            assert subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode == 0
            process.start()
            for follower in (lists, rows):
                assert [task.title for task in follower.next(timeout_s=20)] == ["first", "second"]
            plan.add("fourth")
            for follower in (lists, rows):
                assert [task.title for task in follower.next(timeout_s=20)] == ["first", "second", "fourth"]


PUNCH = (sys.executable, "-P", "-m", "punchlist")


def test_stopped_daemon_restarts_only_for_new_command(environment: Path) -> None:
    target = Target()
    target.dial().close()
    subprocess.run([*PUNCH, "daemon", "stop"], check=True, capture_output=True)
    with pytest.raises(DaemonStopped, match="punch daemon start"):
        target.dial()
    hook = [*PUNCH, "agent", "prime", "--hook", "-c", "c"]
    assert subprocess.run(hook, check=True, capture_output=True, input=b"{}").stdout == b""
    assert not os.path.exists(target.socket)
    subprocess.run([*PUNCH, "list"], check=True, capture_output=True)
    target.dial().close()
    assert not is_stopped(target.socket)


def test_watch_survives_stop_and_continues(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = threading.Semaphore(0)
    counted: list[type[Exception]] = []
    dial, pause_s = Target.dial, Retry.pause_s

    def watched_dial(target: Target, timeout_s: float = 30.0) -> socket.socket:
        try:
            return dial(target, timeout_s)
        except DaemonStopped:
            refused.release()
            raise

    def watched_pause(retry: Retry, error: PunchlistError, now: float) -> float:
        counted.append(type(error))
        return pause_s(retry, error, now)

    monkeypatch.setattr(Target, "dial", watched_dial)
    monkeypatch.setattr(Retry, "pause_s", watched_pause)
    titles: list[str] = []
    with connect() as client, client.conversation("c").watch() as watch:
        client.conversation("c").add("one")

        def follow() -> None:
            while "two" not in titles:
                event = watch.next(60.0).event
                titles.extend([event.task.title] if isinstance(event, TaskAdded) else [])

        follower = threading.Thread(target=follow)
        follower.start()
        subprocess.run([*PUNCH, "daemon", "stop"], check=True, capture_output=True)
        for _ in range(2):
            assert refused.acquire(timeout=60)
        assert DaemonStopped not in counted  # a counted error would end the watch after a while
        told = subprocess.run([*PUNCH, "daemon", "start"], check=True, capture_output=True, text=True).stdout
        assert told.startswith("the daemon is running: process ")
        subprocess.run([*PUNCH, "add", "two", "-c", "c"], check=True, capture_output=True)
        follower.join(60)
    assert titles == ["one", "two"]
