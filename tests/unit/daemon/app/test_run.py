"""Daemon processes: how they end, their exit codes and output."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from punchlist.connection.launch import connect
from punchlist_testing.daemon import Raw, Spawned, spawned_daemon
from punchlist_testing.optional import needs

SOON_S = 10.0


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Spawned]:
    with spawned_daemon(tmp_path, measured=True) as daemon:
        yield daemon


def ended(daemon: Spawned, within_s: float) -> int:
    assert daemon.process is not None
    return daemon.process.wait(within_s)


def refused(directory: Path, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Return the exit code and the log of a daemon that must not start."""
    daemon = Spawned(directory, *arguments, env=env, measured=True)
    with pytest.raises(RuntimeError):
        daemon.start()
    return ended(daemon, SOON_S), daemon.log()


def add(daemon: Spawned, title: str = "one") -> dict[str, object]:
    client = Raw(daemon.socket)
    try:
        return client.call("task.add", conversation="c", title=title)
    finally:
        client.close()


# codes


def test_requested_stop_exits_0_and_removes_the_socket(daemon: Spawned) -> None:
    add(daemon)
    assert daemon.stop() == 0
    assert sorted(os.listdir(os.path.dirname(daemon.socket))) == ["daemon.sock.lock", "daemon.sock.mark"]
    assert os.path.exists(f"{daemon.data_dir}/lock")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_stop_signals_are_handled(daemon: Spawned, number: signal.Signals) -> None:
    assert daemon.process is not None
    daemon.process.send_signal(number)
    assert ended(daemon, SOON_S) == 0
    assert f"stopping on {number.name}" in daemon.log()


def test_second_daemon_of_a_directory_exits_75(daemon: Spawned, tmp_path: Path) -> None:
    assert daemon.process is not None
    code, said = refused(tmp_path, "--socket", str(tmp_path / "other" / "s"))
    assert code == 75
    assert f"process {daemon.process.pid} runs the daemon of {daemon.data_dir}" in said
    assert not (tmp_path / "other").exists()


def test_second_daemon_of_a_socket_exits_75(daemon: Spawned, tmp_path: Path) -> None:
    code, said = refused(tmp_path, "--data-dir", str(tmp_path / "other"))
    assert code == 75
    assert f"Another daemon serves {daemon.socket}" in said
    add(daemon)


def an_unusable_log(directory: Path) -> tuple[str, ...]:
    (directory / "data").mkdir(mode=0o700)
    (directory / "data" / "log.db").write_bytes(b"no database " * 500)
    return ()


def a_foreign_database(directory: Path) -> tuple[str, ...]:
    (directory / "data").mkdir(mode=0o700)
    with sqlite3.connect(directory / "data" / "log.db") as connection:
        connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    return ()


def a_file_in_the_place_of_the_socket(directory: Path) -> tuple[str, ...]:
    (directory / "run").mkdir(mode=0o700)
    (directory / "run" / "daemon.sock").write_text("precious")
    return ()


def a_file_in_the_place_of_the_data_directory(directory: Path) -> tuple[str, ...]:
    (directory / "data").write_text("precious")
    return ()


def a_directory_in_the_place_of_the_lock(directory: Path) -> tuple[str, ...]:
    (directory / "data" / "lock").mkdir(parents=True, mode=0o700)
    (directory / "data").chmod(0o700)
    return ()


def a_socket_in_a_shared_directory(directory: Path) -> tuple[str, ...]:
    (directory / "shared").mkdir()
    (directory / "shared").chmod(0o1777)
    return ("--socket", str(directory / "shared" / "s"))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (an_unusable_log, r"log\.db"),
        (a_foreign_database, r"log\.db"),
        (a_file_in_the_place_of_the_socket, "Move it away, or choose another path"),
        (a_file_in_the_place_of_the_data_directory, "Choose another one"),
        (a_directory_in_the_place_of_the_lock, "Choose another data directory"),
        (a_socket_in_a_shared_directory, "Choose another directory, or run: chmod go-w"),
    ],
)
def test_configuration_error_exits_78(tmp_path: Path, make: Callable[[Path], tuple[str, ...]], said: str) -> None:
    arguments = make(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, log = refused(tmp_path, *arguments)
    assert code == 78
    assert re.search(said, log.splitlines()[-1])
    assert "Traceback" not in log
    assert all(path.read_bytes() == content for path, content in before.items())


@needs("mount")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can take /proc away")
def test_missing_proc_is_reported(tmp_path: Path) -> None:
    daemon = shlex.join(
        [sys.executable, "-m", "punchlistd", "--socket", f"{tmp_path}/s", "--data-dir", f"{tmp_path}/d"]
    )
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"umount -l /proc && exec {daemon}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    if "unshare" in done.stderr or "umount" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 78
    assert "can't be bound: /proc/self/fd is needed. Mount /proc." in done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_other_users_data_directory_exits_78(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    os.chown(tmp_path / "data", 65534, 65534)
    code, said = refused(tmp_path)
    assert (code, "belongs to another user (uid 65534)" in said) == (78, True)
    assert os.listdir(tmp_path / "data") == []


# Loss of files while the daemon runs


def remove_the_lock(daemon: Spawned) -> None:
    os.unlink(f"{daemon.data_dir}/lock")


def replace_the_lock(daemon: Spawned) -> None:
    remove_the_lock(daemon)
    Path(daemon.data_dir, "lock").write_text("1\n")


def remove_the_socket(daemon: Spawned) -> None:
    os.unlink(daemon.socket)


def replace_the_socket(daemon: Spawned) -> None:
    os.unlink(daemon.socket)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(daemon.socket)


def remove(directory: str) -> None:
    """Remove a directory of a running daemon, which may add or remove files in it at the same time."""
    os.rename(directory, f"{directory}.removed")
    shutil.rmtree(f"{directory}.removed", ignore_errors=True)


def remove_the_socket_directory(daemon: Spawned) -> None:
    remove(os.path.dirname(daemon.socket))


def replace_the_data_directory(daemon: Spawned) -> None:
    os.rename(daemon.data_dir, daemon.data_dir + ".old")
    os.mkdir(daemon.data_dir, 0o700)


def remove_everything(daemon: Spawned) -> None:
    remove(daemon.data_dir)
    remove(os.path.dirname(daemon.socket))


TAKEN = [
    remove_the_lock,
    replace_the_lock,
    remove_the_socket,
    replace_the_socket,
    remove_the_socket_directory,
    replace_the_data_directory,
    remove_everything,
]


def test_idle_daemon_detects_loss_and_exits_74(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        # Run the daemons in parallel, because waiting for one after another would take long.
        daemons = [stack.enter_context(spawned_daemon(tmp_path / str(n))) for n in range(len(TAKEN))]
        for take, daemon in zip(TAKEN, daemons, strict=True):
            take(daemon)
        codes = {take.__name__: ended(daemon, 3.0) for take, daemon in zip(TAKEN, daemons, strict=True)}
        assert codes == {take.__name__: 74 for take in TAKEN}
        for daemon in daemons:
            assert re.search("was (removed or )?replaced|was removed", daemon.log().splitlines()[-1])
            assert "Traceback" not in daemon.log()


@pytest.mark.parametrize("take", TAKEN)
def test_nothing_is_acknowledged_after_a_loss(daemon: Spawned, take: Callable[[Spawned], None]) -> None:
    client = Raw(daemon.socket)
    assert "result" in client.call("task.add", conversation="c", title="before")
    take(daemon)
    # If the daemon notices before the call arrives, it rejects the call or has closed the connection.
    with contextlib.suppress(EOFError, ConnectionError):
        answer = client.call("task.add", conversation="c", title="after")
        assert answer["error"]["data"]["kind"] in ("outcome_unknown", "shutting_down")
    client.close()
    assert ended(daemon, 3.0) == 74


def test_replacing_daemon_keeps_its_files(daemon: Spawned, tmp_path: Path) -> None:
    first = daemon.process
    assert first is not None
    os.rename(daemon.data_dir, daemon.data_dir + ".old")
    os.rename(tmp_path / "run", tmp_path / "run.old")
    with spawned_daemon(tmp_path) as second:
        assert first.wait(3.0) == 74
        assert "result" in add(second)
        deadline = time.monotonic() + SOON_S
        status = tmp_path / "run" / "status"
        while not (status.exists() and status.read_text().startswith("1 ")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert status.read_text() == "1 open, 0 in progress\n"
        assert second.stop() == 0


# Environment of the process


def test_daemon_restarts_after_a_kill(daemon: Spawned) -> None:
    add(daemon)
    daemon.kill()
    assert os.path.exists(daemon.socket)
    daemon.start()
    client = Raw(daemon.socket)
    assert [task["title"] for task in client.result("task.list", conversation="c")["tasks"]] == ["one"]
    client.close()


def mode_of(path: Path) -> int:
    """Return the mode of a file, or 0 if it is gone, as temporary files may be."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return 0


def test_files_are_private_despite_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with spawned_daemon(tmp_path) as daemon:
            add(daemon)
            places = [Path(daemon.data_dir), Path(daemon.socket).parent]
            found = [each for place in places for each in (place, *place.rglob("*"))]
            assert len(found) > 5
            assert [each for each in found if mode_of(each) & 0o077] == []
    finally:
        os.umask(before)


def test_descriptors_are_not_inheritable(daemon: Spawned) -> None:
    assert daemon.process is not None
    add(daemon)
    place = Path("/proc", str(daemon.process.pid), "fdinfo")
    flags: dict[int, int] = {}
    for each in place.iterdir():
        with contextlib.suppress(FileNotFoundError):  # the descriptor may be closed by now
            flags[int(each.name)] = int(re.findall(r"flags:\s+(\d+)", each.read_text())[0], 8)
    assert len(flags) > 7
    assert [number for number, flag in flags.items() if number > 2 and not flag & os.O_CLOEXEC] == []


def test_idle_exit_waits_for_connections(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path, "--idle-exit", "0.4") as daemon:
        client = Raw(daemon.socket)
        with pytest.raises(subprocess.TimeoutExpired):
            ended(daemon, 1.0)
        client.close()
        assert ended(daemon, SOON_S) == 0
        assert "no connection for 0.4 s" in daemon.log()
        assert not os.path.exists(daemon.socket)


def test_idle_exit_waits_for_claims(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path, "--idle-exit", "0.2") as daemon:
        client = Raw(daemon.socket)
        client.result("task.add", conversation="c", title="a")
        client.result("task.claim", conversation="c", owner="ann", lease_ms=1_500, keep=True)
        client.close()
        with pytest.raises(subprocess.TimeoutExpired):
            ended(daemon, 1.0)
        assert ended(daemon, SOON_S) == 0


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("good", "{runtime}/punchlist/daemon.sock"),
        ("link", "{runtime}/punchlist/daemon.sock"),
        ("missing", "{runtime}/punchlist/daemon.sock"),
        ("0755", "{runtime}/punchlist/daemon.sock"),
        ("", "{home}/.local/share/punchlist/run/daemon.sock"),
        ("relative", "{home}/.local/share/punchlist/run/daemon.sock"),
        ("file", None),
        ("read-only", None),
        ("foreign", None),
    ],
)
def test_daemon_finds_a_safe_runtime_directory(tmp_path: Path, runtime: str, expected: str | None) -> None:
    if runtime in ("read-only", "foreign") and os.getuid() != 0:
        pytest.skip("only root can act as another user")
    if runtime in ("", "relative") and os.path.isdir(f"/run/user/{os.getuid()}"):
        pytest.skip("this machine has a runtime directory of ours, which would be used")
    place = runtime if runtime in ("", "relative") else str(tmp_path / runtime)
    make_runtime(tmp_path / runtime, runtime)
    env = {**os.environ, "HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": place}
    for name in ("PUNCHLIST_SOCKET", "PUNCHLIST_DATA_DIR", "XDG_DATA_HOME"):
        env.pop(name, None)
    env["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each)
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "punchlistd", "--ready-fd", str(writing)],
        pass_fds=(writing,),
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        cwd=tmp_path,
    )
    os.close(writing)
    with open(reading, "rb") as ready:
        is_ready = ready.readline() == b"ready\n"
    if expected is not None:
        assert is_ready
        path = expected.format(runtime=place, home=tmp_path / "home")
        connect(path).close()
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
        process.terminate()
    said = process.communicate(timeout=SOON_S)[1]
    assert process.returncode == (0 if expected else 78), said
    assert expected or str(tmp_path / runtime) in said


def make_runtime(path: Path, kind: str) -> None:
    match kind:
        case "good":
            path.mkdir(mode=0o700)
        case "0755":
            path.mkdir(mode=0o755)
        case "link":
            (path.parent / "elsewhere").mkdir(mode=0o700)
            path.symlink_to("elsewhere")
        case "file":
            path.write_text("")
        case "read-only":
            path.symlink_to("/proc/self")
        case "foreign":
            (path / "punchlist").mkdir(parents=True)
            os.chown(path / "punchlist", 65534, 65534)
        case _:
            pass


# Notifications to systemd


def test_service_manager_gets_ready_watchdog_and_stop(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(SOON_S)
        env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "150000"}
        with spawned_daemon(tmp_path, env=env) as daemon:
            assert manager.recv(300) == f"READY=1\nSTATUS=Serving {daemon.socket}".encode()
            assert [manager.recv(300) for _ in range(5)] == [b"WATCHDOG=1"] * 5
            assert daemon.stop() == 0
            words = [manager.recv(300)]
            while words[-1] == b"WATCHDOG=1":
                words.append(manager.recv(300))
            assert words[-1].startswith(b"STOPPING=1")


def test_invalid_ready_descriptor_is_tolerated(tmp_path: Path) -> None:
    places = ["--socket", str(tmp_path / "run" / "s"), "--data-dir", str(tmp_path / "data")]
    command = [sys.executable, "-m", "punchlistd", *places, "--idle-exit", "0.1", "--ready-fd", "999"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    subprocess.run(command, env=env, timeout=SOON_S, stderr=subprocess.DEVNULL, check=True)
