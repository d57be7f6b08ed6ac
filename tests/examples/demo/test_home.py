import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from punchlist_demo.home import Home

ENDS = (signal.SIGTERM, signal.SIGHUP)


def test_a_daemon_and_a_process_live_in_it_and_nothing_of_them_is_left(temporary: Path) -> None:
    with Home() as home:
        assert list(temporary.iterdir()) == [Path(home.path)]
        client = home.client("tester")
        client.conversation("a").add("one")
        follower = home.spawn("log", "--follow", "-c", "a")
        assert follower.stdout is not None
        assert follower.stdout.readline().startswith("   1  opened  by tester")
        daemon = client.status().pid
        assert daemon in home.daemons()
    assert home.daemons() == []
    assert follower.returncode == -signal.SIGKILL
    assert list(temporary.iterdir()) == []


def test_a_killed_daemon_is_gone_and_its_successor_knows_what_it_acknowledged(temporary: Path) -> None:
    with Home() as home:
        client = home.client("tester")
        client.conversation("a").add("one")
        first = client.status().pid
        home.kill_daemon(first)
        assert first not in home.daemons()
        assert [task.title for task in client.conversation("a").list()] == ["one"]
        assert client.status().pid != first


def test_no_process_but_a_daemon_of_its_own_is_killed(temporary: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger, Home() as home:
        for pid in (stranger.pid, os.getpid()):
            with pytest.raises(ProcessLookupError, match=f"process {pid} is not a daemon of"):
                home.kill_daemon(pid)
        assert stranger.poll() is None
        stranger.communicate(b"\n", timeout=5)


def test_what_was_just_being_started_is_waited_for_and_ended(temporary: Path) -> None:
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


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_to_end_ends_the_block_with_its_exit_code_and_cleans_up(
    temporary: Path, number: signal.Signals
) -> None:
    before = [signal.getsignal(one) for one in ENDS]
    with pytest.raises(SystemExit) as caught, Home():
        signal.raise_signal(number)
    assert caught.value.code == 128 + number
    assert list(temporary.iterdir()) == []
    assert [signal.getsignal(one) for one in ENDS] == before


@pytest.mark.parametrize("number", [signal.SIGINT, *ENDS])
def test_impatience_does_not_stop_the_cleaning_up(
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
