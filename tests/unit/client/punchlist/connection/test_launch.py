"""Reaching the daemon or starting one: every outcome, and its message to the user."""

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from punchlist.connection import launch
from punchlist.connection.launch import Target, build_unavailable
from punchlist.errors import DaemonStopped, DaemonUnavailable, WrongDataDirectory
from punchlist_schemas.system import os_calls

NOBODY = 65534
PUNCH = str(Path(sys.executable).with_name("punch"))


@contextmanager
def listener(path: Path) -> Generator[socket.socket]:
    """A listening socket, whose path may have any length."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        listening.listen()
        yield listening


def target(directory: Path, *, autostart: bool = True) -> Target:
    return Target(str(directory / "run" / "s"), str(directory / "data"), autostart=autostart)


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """An interpreter that is a shell script, so that tests can choose what the started daemon does."""
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    yield script


@pytest.mark.parametrize("length", [100, 107, 108, 300])
def test_a_path_of_any_length_is_reached(tmp_path: Path, length: int) -> None:
    filler = (("/" + "d" * 49) * 6)[: length - len(str(tmp_path)) - len("/s")]
    path = Path(f"{tmp_path}{filler[:-1]}d/s")
    assert len(str(path)) == length
    with listener(path), closing(launch.connect(str(path))) as connected:
        assert os_calls.read_peer(connected) == (os.getpid(), os.getuid())


def test_missing_directory_means_no_daemon(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "s", tmp_path / ("d" * 200) / "s"):
        with pytest.raises(FileNotFoundError):
            launch.connect(str(path))


def test_too_long_socket_name_is_final_error(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnavailable, match=r"a socket may have at most 80 bytes\.$") as caught:
        Target(str(tmp_path / ("s" * 150)), str(tmp_path / "data")).dial()
    assert not caught.value.temporary
    assert list(tmp_path.iterdir()) == []
    assert (
        str(build_unavailable("/x", OSError("AF_UNIX path too long")))
        == "Connecting to /x failed: AF_UNIX path too long."
    )


@pytest.mark.parametrize("stale", [False, True])
def test_message_without_autostart_names_start_command(tmp_path: Path, stale: bool) -> None:
    if stale:
        with listener(tmp_path / "run" / "s"):
            pass
    with pytest.raises(DaemonUnavailable, match="punchlistd --socket .*/run/s --data-dir .*/data") as caught:
        target(tmp_path, autostart=False).dial()
    assert caught.value.temporary
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("value", "expected"), [("0", False), ("1", True), (None, True)])
def test_environment_disables_autostart(value: str | None, expected: bool) -> None:
    env = {"PUNCHLIST_SOCKET": "/x/s"} | ({} if value is None else {"PUNCHLIST_AUTOSTART": value})
    assert Target(env=env).autostart is expected
    assert Target(autostart=not expected, env=env).autostart is not expected


def test_sandbox_without_unix_sockets_is_named(tmp_path: Path) -> None:
    program = """
import socket, sys, time
def refuse(*_):
    raise PermissionError(1, "Operation not permitted")
socket.socket = refuse
import punchlist.connection.launch, punchlist.errors
try:
    punchlist.connection.launch.Target(sys.argv[1], sys.argv[2]).dial()
except punchlist.errors.DaemonUnavailable as error:
    print(error.temporary, error)
"""
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "s"), str(tmp_path / "data")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    assert run.stdout.startswith("False ")
    for word in ("Operation not permitted", "allowAllUnixSockets", "sandbox_workspace_write", "network_access = true"):
        assert word in run.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES])
def test_permission_error_is_final_and_names_directory(number: int) -> None:
    error = build_unavailable("/run/user/1/punchlist/daemon.sock", OSError(number, os.strerror(number)))
    assert not error.temporary
    assert "/run/user/1/punchlist belongs to you" in str(error)
    assert "No daemon was started" in str(error)


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user takes root")
def test_daemon_of_another_user_is_rejected(tmp_path: Path) -> None:
    program = "import os,socket,sys;s=socket.socket(socket.AF_UNIX);s.bind(sys.argv[1]);os.setuid(65534);s.listen();"
    program += "print('up',flush=True);sys.stdin.read()"
    path = str(tmp_path / "s")
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        try:
            with pytest.raises(DaemonUnavailable, match=f"another user .uid {NOBODY}."):
                launch.connect(path)
        finally:
            stranger.kill()


def test_failed_daemon_is_final_error_with_output(tmp_path: Path, pretend: Path) -> None:
    pretend.write_text("#!/bin/sh\necho the log is not ours >&2; exit 78\n")
    with pytest.raises(DaemonUnavailable) as caught:
        target(tmp_path).dial()
    assert str(caught.value) == ("punchlistd could not be started: it exited with code 78\nthe log is not ours")
    assert caught.value.exit_code == 78
    assert not caught.value.temporary


def test_slow_start_is_reported_and_used_later(tmp_path: Path, pretend: Path) -> None:
    """Each attempt waits for the one daemon that was started, and starts no other."""
    pretend.write_text(f"#!/bin/sh\necho begun >> {tmp_path}/begun; exec sleep 100\n")
    slow = target(tmp_path)
    told: list[str] = []
    for _ in range(2):
        with pytest.raises(
            DaemonUnavailable, match=r"is not ready \d+ s after its start and continues in the background"
        ) as caught:
            slow.dial(0.3)
        assert caught.value.temporary
        told.append(str(caught.value))
    assert f"Its log is {tmp_path}/data/daemon.log" in told[0]
    pid = int(told[0].split("process ")[1].split(")")[0])
    try:
        os.kill(pid, 0)
        assert (tmp_path / "begun").read_text() == "begun\n"
        with listener(tmp_path / "run" / "s"):
            slow.dial(5).close()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_data_directory_with_other_socket_is_reported(tmp_path: Path, pretend: Path) -> None:
    pretend.write_text("#!/bin/sh\necho process 7 runs the daemon of it >&2; exit 75\n")
    with pytest.raises(
        DaemonUnavailable, match="No such file or directory.\nprocess 7 runs the daemon of it$"
    ) as caught:
        target(tmp_path).dial(0.1)
    assert caught.value.exit_code == 75


def test_loser_of_start_race_connects_to_winner(tmp_path: Path, pretend: Path) -> None:
    pretend.write_text(f"#!/bin/sh\ntouch {tmp_path}/lost\nexit 75\n")
    ready = threading.Event()

    def win() -> None:
        while not (tmp_path / "lost").exists():
            ready.wait(0.002)
        with listener(tmp_path / "run" / "s") as listening:
            listening.accept()[0].close()
            ready.wait(5)

    winner = threading.Thread(target=win)
    winner.start()
    try:
        target(tmp_path).dial().close()
    finally:
        ready.set()
        winner.join(5)


def test_reaching_the_daemon_loads_no_heavy_module() -> None:
    program = "import sys, punchlist.connection.launch, punchlist.errors; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {program}"],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    heavy = {"anyio", "asyncio", "msgspec", "subprocess", "inspect", "dataclasses"}
    assert heavy & set(run.stdout.split()) == set()


def test_silent_listener_times_out(tmp_path: Path) -> None:
    with listener(tmp_path / "run" / "s") as listening:
        listening.listen(0)
        with closing(launch.connect(str(tmp_path / "run" / "s"), 0.1)):
            began = time.monotonic()
            with pytest.raises(DaemonUnavailable, match="accepts no connection") as caught:
                target(tmp_path).dial(0.2)
    assert time.monotonic() - began < 5
    assert caught.value.temporary


def test_connect_waits_while_backlog_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("punchlist.connection.waiting._MAX_SLEEP_S", 0.05)
    with listener(tmp_path / "run" / "s") as listening:
        listening.listen(0)
        with closing(launch.connect(str(tmp_path / "run" / "s"), 0.1)) as first:
            began = time.monotonic()
            with pytest.raises(DaemonUnavailable, match="accepts no connection"):
                target(tmp_path).dial(0.5)
            assert time.monotonic() - began > 0.4
            first.close()


@pytest.fixture
def places(tmp_path: Path) -> Generator[list[dict[str, str]]]:
    """Two environments of one user with different socket paths.

    Daemons that are still running in them are stopped at the end.
    """
    environments: list[dict[str, str]] = []
    for name in ("desk", "cron"):
        (tmp_path / name).mkdir(mode=0o700)
        environments.append({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / name)})
    yield environments
    for env in environments:
        with suppress(DaemonUnavailable):
            command(env, "daemon", "stop")


def command(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "PUNCHLIST_"))}
    return subprocess.run([PUNCH, *words], env={**given, **env}, capture_output=True, text=True, check=False)


def test_daemon_is_found_at_any_socket_path(places: list[dict[str, str]]) -> None:
    desk, cron = places
    assert command(desk, "-c", "default", "add", "water the plants").returncode == 0
    for env in (cron, {**cron, "XDG_RUNTIME_DIR": "/nonexistent"}):
        found = command(env, "-c", "default", "list", "--json")
        assert (found.returncode, found.stderr) == (0, "") and "water the plants" in found.stdout
    there = Target(env=desk).socket
    target = Target(env=cron, autostart=False)
    assert target.socket == there and f"on {there}\n" in command(cron, "doctor").stdout
    target.dial().close()
    assert command(cron, "daemon", "stop").returncode == 0 and launch.is_stopped(there)
    with pytest.raises(DaemonStopped):
        target.dial()
    assert not any(Path(cron["XDG_RUNTIME_DIR"]).iterdir())


def test_stale_socket_does_not_hide_running_daemon(places: list[dict[str, str]]) -> None:
    desk, cron = places
    for env in (cron, desk):  # the first daemon is killed, and leaves its socket
        if env is desk:
            os.kill(int((Path(desk["HOME"]) / ".local/share/punchlist/lock").read_text().split()[0]), signal.SIGKILL)
            shutil.copytree(cron["XDG_RUNTIME_DIR"], f"{cron['XDG_RUNTIME_DIR']}.left", copy_function=os.link)
            shutil.rmtree(cron["XDG_RUNTIME_DIR"])
        assert command(env, "-c", "default", "add", "water the plants").returncode == 0
    os.rename(f"{cron['XDG_RUNTIME_DIR']}.left", cron["XDG_RUNTIME_DIR"])
    found = command(cron, "-c", "default", "list")
    assert found.returncode == 0 and "default  0/2" in found.stdout, found.stderr


def test_other_named_socket_is_rejected_with_right_one(places: list[dict[str, str]], tmp_path: Path) -> None:
    desk, _ = places
    assert command(desk, "-c", "default", "add", "water the plants").returncode == 0
    named = {**desk, "PUNCHLIST_SOCKET": str(tmp_path / "own" / "s")}
    began = time.monotonic()
    with pytest.raises(DaemonUnavailable, match=rf"Use that one \(PUNCHLIST_SOCKET={Target(env=desk).socket}\)") as no:
        Target(env=named).dial()
    assert not no.value.temporary and time.monotonic() - began < launch.TIMEOUT_S / 2


@pytest.mark.parametrize(
    "text", [b"", b"1\n", b"\xff\x00", b"1\n\x00/s\n", b"1\nrun/s\n", b"1\n/nowhere/s\n", b"9" * 99]
)
def test_lock_without_socket_path_is_ignored(tmp_path: Path, text: bytes) -> None:
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    target = Target(env=env)
    os.makedirs(target.data_dir)
    (Path(target.data_dir) / "lock").write_bytes(text)
    assert target.socket == f"{tmp_path}/punchlist/daemon.sock"


def numbers(path: Path) -> tuple[str, str]:
    return str(path.stat().st_dev), str(path.stat().st_ino)


def test_daemon_of_another_data_directory_is_rejected(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for place in (mine, other):
        place.mkdir()
        (place / "lock").write_text("1\n")
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
    meant = [Target(None, str(mine), env=env), Target("/s", str(mine), env=env)]
    meant += [Target(env={**env, "PUNCHLIST_DATA_DIR": str(mine)}), Target(env={**env, "XDG_DATA_HOME": str(tmp_path)})]
    for target in meant[:-1]:
        target.check(*numbers(mine / "lock"))
        target.check()  # an older daemon reports no lock
    for target in meant:  # the last target sees no lock
        with pytest.raises(
            WrongDataDirectory, match="not /.* as it is seen from here.*set PUNCHLIST_SOCKET="
        ) as caught:
            target.check(*numbers(other / "lock"))
        assert (caught.value.temporary, caught.value.exit_code) == (False, 78)
    Target("/s", env=env).check(*numbers(other / "lock"))
    Target(env={**env, "PUNCHLIST_SOCKET": "/s"}).check(*numbers(other / "lock"))
