"""System modules of Linux and macOS, as far as Linux can run them, and a daemon that runs with the one for macOS."""

import asyncio
import inspect
import os
import re
import signal
import socket
import subprocess
import sys
import types
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from punchlist_schemas import rendezvous
from punchlist_schemas.system import linux, macos, os_calls
from punchlist_testing.daemon import READY_S
from punchlist_testing.optional import needs

ROOT = Path(__file__).resolve().parents[4]
BOTH = pytest.mark.parametrize("system", [linux, macos], ids=["linux", "macos"])

ONE_ONLY = re.compile(
    r"SO_PEERCRED|LOCAL_PEER|/proc/|O_PATH|memfd_create|pidfd_open|posix_fallocate|fdatasync|renameat2|renameatx"
    r"|SUBREAPER|SOCK_NONBLOCK|SOCK_CLOEXEC|F_FULLFSYNC|\bos\.fsync\b|Library/Application"
)
"""Names that only one of the systems supports."""

EXEMPT = {
    "schemas/punchlist_schemas/system/linux.py",
    "schemas/punchlist_schemas/system/macos.py",
    "schemas/punchlist_schemas/rendezvous.py",  # its docstring names both data directories
    "schemas/punchlist_schemas/system/notify.py",  # systemd exists only on Linux
    "client/punchlist_apps/cli/warm/linux.py",  # only Linux has the program that needs it
    "client/punchlist_apps/cli/running/orphans.py",  # its docstring names the call
}


def functions(module: types.ModuleType) -> dict[str, int]:
    """Return the number of required arguments of each public function, by name."""
    return {
        name: sum(
            parameter.default is inspect.Parameter.empty for parameter in inspect.signature(value).parameters.values()
        )
        for name, value in vars(module).items()
        if inspect.isfunction(value) and not name.startswith("_") and name != "parse_user_id"
    }


def test_both_systems_have_the_same_functions() -> None:
    assert functions(linux) == functions(macos)
    assert os_calls is linux


def test_other_code_uses_no_names_of_one_system() -> None:
    hits: list[str] = []
    for folder in ("client", "daemon", "schemas"):
        for path in (ROOT / folder).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            code = re.sub(r"#.*$", "", path.read_text("utf-8"), flags=re.MULTILINE)
            if name not in EXEMPT and (hit := ONE_ONLY.search(code)):
                hits.append(f"{name}: {hit[0]}")
    assert not hits, "make it a function of punchlist_schemas.system"


@BOTH
def test_socket_can_be_connected_by_path(system: types.ModuleType, tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as sock:
            listening.bind(system.build_address(directory, path))
            listening.listen()
            system.connect(sock, path)
    finally:
        os.close(directory)


@BOTH
def test_error_of_a_long_path_has_advice(system: types.ModuleType, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock, pytest.raises(OSError, match="at most"):
        system.connect(sock, str(tmp_path / ("s" * 150)))


def test_peer_ids_are_read() -> None:
    with closing(socket.socket(socket.AF_UNIX)):
        ours, theirs = socket.socketpair()
    with ours, theirs:
        assert linux.read_peer(ours) == (os.getpid(), os.getuid())
    xucred = (0).to_bytes(4, sys.byteorder) + (501).to_bytes(4, sys.byteorder) + bytes(68)
    assert macos.parse_user_id(xucred) == 501
    with pytest.raises(OSError, match="unknown version"):
        macos.parse_user_id((7).to_bytes(4, sys.byteorder) + xucred[4:])


@BOTH
def test_files_are_flushed_and_allocated(system: types.ModuleType, tmp_path: Path) -> None:
    file = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    try:
        system.allocate(file, 3 << 20)
        system.flush(file)
        system.flush_data(file)
        assert os.fstat(file).st_size == 3 << 20
    finally:
        os.close(file)


@BOTH
def test_memory_file_is_not_inherited(system: types.ModuleType) -> None:
    file = system.open_memory_file()
    try:
        os.write(file, b"text")
        os.lseek(file, 0, os.SEEK_SET)
        assert os.read(file, 9) == b"text" and not os.get_inheritable(file)
        assert os.fstat(file).st_nlink == 0
    finally:
        os.close(file)


@BOTH
async def test_end_of_a_child_is_reported(system: types.ModuleType) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:  # noqa: ASYNC220 - as the runner does
        ended = anyio.Event()
        system.watch_child(child, asyncio.get_running_loop(), ended.set)
        child.send_signal(signal.SIGKILL)
        with anyio.fail_after(30):
            await ended.wait()
        assert child.wait() == -signal.SIGKILL


@pytest.mark.parametrize("system", [linux, pytest.param(macos, marks=needs("ps"))], ids=["linux", "macos"])
def test_facts_of_a_process_are_read(system: types.ModuleType) -> None:
    child = subprocess.Popen(["cat", "-u"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdin is not None and child.stdout is not None
        os.write(child.stdin.fileno(), b"x")
        os.read(child.stdout.fileno(), 1)  # wait until it runs: Linux reports no arguments until the program is loaded
        name, started, parent = system.read_process(child.pid)
        assert (name, parent) == ("cat", os.getpid())
        assert started
        if system is linux:  # on Linux, ps calculates the time and may be off by a second
            assert system.read_process(child.pid)[1] == started
        assert [word for word in system.read_command_line(child.pid) if word] == ["cat", "-u"]
        assert system.is_running(child.pid)
    finally:
        child.kill()
        child.communicate()
    assert not system.is_running(child.pid) and system.read_process(child.pid) is None
    assert system.read_command_line(child.pid) == []


@BOTH
def test_ended_process_holds_no_lock(system: types.ModuleType, tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert not system.holds_lock(str(ended.pid), os.stat(tmp_path).st_ino)
    assert not system.holds_lock("", 1)


def test_descriptors_are_limited_under_an_infinite_limit() -> None:
    assert macos.max_descriptors(-1) == macos.max_descriptors(1 << 62) == 10_240
    assert macos.max_descriptors(256) == linux.max_descriptors(256) == 256


def test_data_directory_follows_the_systems_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendezvous.data_dir({"HOME": "/h"}) == "/h/.local/share/punchlist"
    monkeypatch.setattr(rendezvous, "os_calls", macos)
    assert rendezvous.data_dir({"HOME": "/h"}) == "/h/Library/Application Support/punchlist"
    assert rendezvous.data_dir({"HOME": "/h", "XDG_DATA_HOME": "/x"}) == "/x/punchlist"


AS_MACOS = """
import sys
from punchlist_schemas import system
from punchlist_schemas.system import linux, macos
macos.read_peer, macos.find_file_system = linux.read_peer, linux.find_file_system  # not on this kernel
system.os_calls = macos
if sys.argv[1] == "daemon":
    from punchlistd.__main__ import main
else:
    from punchlist_apps.cli import main
sys.exit(main(sys.argv[2:]))
"""
"""Runs the program with the macOS versions of all other functions."""


def test_daemon_and_command_line_run_with_macos_calls(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", AS_MACOS]
    data = tmp_path / "Library" / "Application Support" / "punchlist"
    place = str(tmp_path / "s" / "daemon.sock")

    def punch(*words: str) -> str:
        run = [*command, "punch", "--socket", place, "--no-autostart", "-c", "default", *words]
        done = subprocess.run(run, env=home, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    reading, writing = os.pipe()
    serve = [*command, "daemon", "--socket", place, "--ready-fd", str(writing)]
    with subprocess.Popen(serve, env=home, pass_fds=(writing,), stderr=subprocess.PIPE) as daemon:
        os.close(writing)
        try:
            with open(reading, "rb") as ready:
                assert ready.readline() == b"ready\n"
            punch("add", "one")
            punch("run", "--", "true", "{title}")
            assert "completed" in punch("show", "1") and (data / "log.db").exists()
            punch("daemon", "backup", str(tmp_path / "copy.db"))
            assert "ok  daemon: " in punch("doctor")
            punch("daemon", "stop")
            assert daemon.wait(READY_S) == 0
        finally:
            daemon.kill()
