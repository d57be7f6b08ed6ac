import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from punchlist_demo import home as home_module
from punchlist_demo.home import Home, read_lines

ENDS = (signal.SIGTERM, signal.SIGHUP)


def test_nothing_of_a_home_is_left(temporary: Path) -> None:
    with Home() as home:
        assert list(temporary.iterdir()) == [Path(home.path)]
        client = home.client("tester")
        client.conversation("a").add("one")
        follower = home.spawn("-m", "punchlist", "log", "--follow", "-c", "a")
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith(b"   1  opened  by tester")
        daemon = client.status().pid
        assert daemon in home.daemons()
    assert home.daemons() == []
    assert follower.returncode == -signal.SIGKILL
    assert list(temporary.iterdir()) == []


def test_other_processes_are_not_killed(temporary: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger, Home() as home:
        for pid in (stranger.pid, os.getpid()):
            with pytest.raises(ProcessLookupError, match=f"process {pid} is not a daemon of"):
                home.kill_daemon(pid)
        assert stranger.poll() is None
        stranger.communicate(b"\n", timeout=5)


def test_process_being_started_is_ended(temporary: Path) -> None:
    with Home() as home:
        begun = os.fork()
        if not begun:
            time.sleep(0.1)  # as on a busy machine
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", home.socket])
    ended, status = os.waitpid(begun, os.WNOHANG)
    if not ended:
        os.kill(begun, signal.SIGKILL)
        os.waitpid(begun, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_lines_of_a_process_are_read(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Home() as home:
        process = home.spawn("-c", "print('one'); print('two'); print('half', end='', flush=True); input()")
        assert process.stdin is not None
        assert read_lines(process, 2) == [b"one", b"two"]
        monkeypatch.setattr(home_module, "STEP_S", 0.0)
        assert read_lines(process, 1) == []
        monkeypatch.undo()
        process.stdin.write(b"\n")
        assert read_lines(process, 1) == []


def test_failed_punch_raises(temporary: Path) -> None:
    with Home() as home, pytest.raises(subprocess.CalledProcessError):
        home.run("ann", "a", "no-such-command")


@pytest.mark.parametrize("number", ENDS)
def test_signal_cleans_up_and_sets_exit_code(temporary: Path, number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in ENDS]
    with pytest.raises(SystemExit) as caught, Home():
        signal.raise_signal(number)
    assert caught.value.code == 128 + number
    assert list(temporary.iterdir()) == []
    assert [signal.getsignal(one) for one in ENDS] == before


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDS])
def test_second_signal_does_not_stop_the_clean_up(
    temporary: Path, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = Home.close

    def interrupted(home: Home) -> None:
        signal.raise_signal(number)
        clean(home)

    monkeypatch.setattr(Home, "close", interrupted)
    with Home():
        pass
    assert list(temporary.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
