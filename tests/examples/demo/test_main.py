import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from punchlist_testing.terminal import Terminal, environment

DEMO = Path(__file__).parents[3] / "examples/demo"
COMMAND = [sys.executable, "-m", "punchlist_demo"]


def leftovers(directory: Path) -> list[str]:
    """Files of a demo and processes that were started for it."""
    found = [str(path) for path in directory.glob("punchlist-demo-*")]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes()
        except OSError:
            continue
        if str(directory).encode() in words:
            found.append(words.decode(errors="replace"))
    return found


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def shown_on_terminal(*words: str) -> "closing[Terminal]":
    env = environment(TERM="xterm", PYTHONPATH=str(DEMO))
    return closing(Terminal([*COMMAND, *words], env, columns=100, rows=40))


def test_the_fast_demo_loses_nothing_and_leaves_nothing(temporary: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--fast"],
        capture_output=True,
        text=True,
        timeout=50,
        env=environment(PYTHONPATH=str(DEMO)),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("  yes  ") == 4
    assert "kill -9" in done.stdout
    assert "\x1b" not in done.stdout
    assert leftovers(temporary) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_on_a_terminal_the_list_lives_and_an_interrupt_leaves_nothing(
    temporary: Path, number: signal.Signals, code: int
) -> None:
    with shown_on_terminal() as shown:
        shown.wait_for("a second process was told")
        shown.wait_for("●")
        assert leftovers(temporary) != []
        shown.process.send_signal(number)
        assert shown.finish() == code
        assert shown.shown.endswith("\x1b[?25h")
    assert leftovers(temporary) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_while_the_daemon_starts_leaves_nothing(
    temporary: Path, number: signal.Signals, code: int
) -> None:
    with shown_on_terminal("--fast") as shown:
        shown.wait_for("a private daemon in ")
        shown.process.send_signal(number)
        assert shown.finish() == code
        assert "Traceback" not in shown.shown
    assert leftovers(temporary) == []
