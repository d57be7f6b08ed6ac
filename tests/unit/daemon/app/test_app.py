import asyncio
import gc
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist_testing.callers import Callers
from punchlist_testing.daemon import Raw, Spawned, running_daemon, spawned_daemon
from punchlist_testing.store import DELETED, Scribe, said
from punchlistd.store.sqlite import SqliteLog

# A daemon in which one function fails 0.2 s after it was called.
PLANTED = """
import sys
sys.path[:0] = {path!r}
import anyio
import {module} as module
from punchlistd.__main__ import main

async def fail(*args, **options):
    if "task_status" in options:
        options["task_status"].started()
    await anyio.sleep(0.2)
    raise {error}("planted")

setattr(module{owner}, {name!r}, fail)
sys.exit(main({arguments!r}))
"""

LONG_LIVED = [
    ("punchlistd.engine.writing.writer", ".Writer", "run"),
    ("punchlistd.engine.writing.writer", ".Writer", "_commit_formed"),
    ("punchlistd.engine.writing.writer", ".Writer", "_decide_calls"),
    ("punchlistd.engine.writing.maintenance", ".Maintenance", "recover"),
    ("punchlistd.app.app", ".StatusFile", "run"),
    ("punchlistd.app.app", "", "watch"),
    ("punchlistd.app.app", ".App", "_await_signals"),
    ("punchlistd.app.app", ".App", "_watch_idleness"),
    ("punchlistd.app.app", ".App", "_accept"),
    ("punchlistd.app.app", ".App", "check"),
    ("punchlistd.app.run", "", "_notify_manager"),
    ("punchlistd.app.run", "", "_feed_watchdog"),
]


def places(directory: Path) -> list[str]:
    return ["--socket", str(directory / "run" / "s"), "--data-dir", str(directory / "data")]


def run_planted(directory: Path, module: str, owner: str, name: str, error: str) -> subprocess.CompletedProcess[str]:
    path = [each for each in sys.path if each]
    arguments = [*places(directory), "--idle-exit", "30"]
    code = PLANTED.format(path=path, module=module, owner=owner, name=name, arguments=arguments, error=error)
    env = {**os.environ, "WATCHDOG_USEC": "30000000"}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=10, check=False
    )


@pytest.mark.parametrize(("module", "owner", "name"), LONG_LIVED)
def test_exception_in_long_lived_task_ends_process(tmp_path: Path, module: str, owner: str, name: str) -> None:
    ended = run_planted(tmp_path, module, owner, name, "RuntimeError")
    assert ended.returncode == 70
    assert "RuntimeError: planted" in ended.stderr
    assert not (tmp_path / "run" / "s").exists()


def test_system_error_ends_process_like_failed_write(tmp_path: Path) -> None:
    ended = run_planted(tmp_path, "punchlistd.app.app", "", "watch", "OSError")
    assert (ended.returncode, "planted" in ended.stderr, "Traceback" in ended.stderr) == (74, True, False)


def test_exception_in_a_callback_ends_the_process(tmp_path: Path) -> None:
    path = [each for each in sys.path if each]
    code = f"""
import asyncio, sys
sys.path[:0] = {path!r}
from punchlistd.__main__ import main
from punchlistd.net.connection import Connection
Connection.connection_made = lambda self, transport: asyncio.get_running_loop().call_soon(int, "planted")
sys.exit(main({places(tmp_path)!r} + ["--ready-fd", "1"]))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        Raw(str(tmp_path / "run" / "s")).close()
        try:
            assert process.wait(10) == 70
        finally:
            process.kill()


async def test_health_check_works_under_load(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        callers = Callers(daemon.socket, "busy", 4)
        await anyio.to_thread.run_sync(callers.__enter__)
        for _ in range(20):
            with anyio.fail_after(30):
                await daemon.app.check()
        await anyio.to_thread.run_sync(callers.__exit__)
        assert callers.failed == []
        assert await anyio.to_thread.run_sync(callers.lost) == []


def test_restarts_under_load_lose_no_call(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with spawned_daemon(tmp_path) as daemon:
        with Callers(daemon.socket, "load", 8) as callers:
            for _ in range(5):
                callers.wait_for(chance.randrange(200))
                assert daemon.stop() == 0
                daemon.start()
            callers.wait_for(50)
        assert callers.failed == []
        assert callers.lost() == []
        assert len(callers.acknowledged) > 50


def test_stop_answers_accepted_calls_and_defers_the_rest(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon:
        assert daemon.process is not None
        client = Raw(daemon.socket)
        for number in range(300):
            client.send("task.add", {"conversation": "c", "title": str(number), "key": str(number)}, id=number)
        daemon.process.send_signal(signal.SIGTERM)
        answers: list[Any] = []
        try:
            while (message := client.receive()) is not None:
                answers.append(message)
        except ConnectionError:  # the reset discards unread responses
            pass
        client.close()
        assert daemon.process.wait(10) == 0
        kinds = {answer["error"]["data"]["kind"] for answer in answers if "error" in answer}
        assert kinds <= {"shutting_down"}
        daemon.start()
        client = Raw(daemon.socket)
        found = {task["title"] for task in client.result("task.list", conversation="c")["tasks"]}
        client.close()
        assert {str(answer["id"]) for answer in answers if "result" in answer} == found


def test_stuck_client_delays_a_stop_briefly(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon:
        client = Raw(daemon.socket)
        title = "x" * 400
        for number in range(300):
            client.send("task.add", {"conversation": "c", "title": title}, id=number)
        sender = threading.Thread(target=flood, args=(client,))
        sender.start()
        assert daemon.stop() == 0  # within the timeout of `stop`
        sender.join()
        client.close()


def flood(client: Raw) -> None:
    try:
        for number in range(300):
            client.send("task.list", {"conversation": "c"}, id=number)
    except OSError:
        pass


def test_client_rejected_during_stop_finds_directory_unlocked(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon:
        for _ in range(5):
            stopping = threading.Thread(target=daemon.stop)
            stopping.start()
            knocked = 0
            while True:
                try:
                    client = Raw(daemon.socket)
                except FileNotFoundError:
                    break
                knocked += 1
                try:
                    client.call("daemon.hello")
                except (EOFError, OSError):
                    pass
                client.close()
            daemon.start()  # the lock is released before the socket disappears
            stopping.join()


def test_restored_older_log_is_reported(tmp_path: Path) -> None:
    daemon = Spawned(tmp_path)
    daemon.start()
    with closing(Raw(daemon.socket)) as link:
        epoch = link.result("daemon.hello")["epoch"]
        link.result("task.add", conversation="c", title="kept")
    assert daemon.stop() == 0
    older = (tmp_path / "data" / "log.db").read_bytes()
    daemon.start()
    with closing(Raw(daemon.socket)) as link:
        link.result("task.add", conversation="c", title="lost")
    assert daemon.stop() == 0
    (tmp_path / "data" / "log.db").write_bytes(older)
    daemon.start()
    try:
        assert "log_regressed: it ends at 2 but had reached 3" in daemon.log()
        with closing(Raw(daemon.socket)) as link:
            assert "log_regressed" in link.result("daemon.status")["last_errors"][0]
            refused = link.call("event.subscribe", after=2, epoch=epoch)["error"]["data"]
            assert refused["kind"] == "wrong_epoch"
    finally:
        daemon.kill()


@pytest.mark.parametrize("size", [0, 1 << 20])
async def test_reserve_has_the_configured_size(tmp_path: Path, size: int) -> None:
    async with running_daemon(tmp_path, reserve_bytes=size) as daemon:
        reserve = Path(daemon.data_dir) / "log.reserve"
        assert (reserve.stat().st_size if reserve.exists() else 0) == size


def test_interrupted_erasure_finishes_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)

    async def deleted_but_not_erased() -> None:
        log = await SqliteLog.open(str(data / "log.db"))
        await Scribe(log).write("c", said("quick brown secret"))
        await Scribe(log).write("d", said("kept"))
        tombstone = Scribe(log)
        tombstone.versions["c"] = 1
        await tombstone.write("c", DELETED)
        await log.close()

    anyio.run(deleted_but_not_erased)
    assert b"quick brown secret" in (data / "log.db").read_bytes()
    daemon = Spawned(tmp_path)
    daemon.start()
    assert daemon.process is not None
    daemon.process.kill()  # erasure finishes before clients are served, not in the background of the first calls
    daemon.process.wait()
    kept = b"".join(path.read_bytes() for path in data.iterdir())
    assert b"quick brown secret" not in kept and b"kept" in kept


async def test_connection_accepted_during_a_stop_is_closed(tmp_path: Path) -> None:
    async with running_daemon(tmp_path) as daemon:
        late = socket.socket(socket.AF_UNIX)
        late.connect(daemon.socket)
        await asyncio.sleep(0)  # the loop accepts the connection in its next turn, while the daemon stops
        daemon.app.stop()
    late.close()
    gc.collect()  # an unclosed transport is a ResourceWarning
