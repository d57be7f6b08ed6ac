"""The demo, as `make demo` runs it: every scene works, and no files or processes are left behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from punchlist_demo.home import Home
from punchlist_testing.terminal import Terminal, environment

DEMO = Path(__file__).parents[3] / "examples/demo"
COMMAND = [sys.executable, "-m", "punchlist_demo", "--fast"]
CLAUDE, CODEX = "claude-code/7f3c1a", "codex/b210e4"


def leftovers(directory: Path) -> list[str]:
    """Return the files of a demo and the processes it started."""
    found = [str(path) for path in directory.glob("punchlist-demo-*")]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes()
        except OSError:
            continue
        if str(directory).encode() in words:
            found.append(words.decode(errors="replace"))
    return found


def test_each_scene_shows_its_feature(tmp_path: Path) -> None:
    env = environment(PYTHONPATH=str(DEMO), TMPDIR=str(tmp_path), HOME=str(tmp_path))
    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=50, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert leftovers(tmp_path) == []
    assert "\x1b" not in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    _start, claims, refused, note, undo, kills, proof, *_end = done.stdout.split("\n\n")
    assert f"{CLAUDE} calls next()\n  Now #1: Fix the login\n" in claims
    assert f"{CODEX} calls next()\n  Now #2: Write the changelog\n" in refused
    assert f"  Refused: task 1 is being worked on by {CLAUDE}: take another one\n" in refused
    assert "\n  Note by ann: on Windows 11 too: a customer waits for it\n" in note.partition(f"{CLAUDE} calls next")[2]
    assert "\n  ▸ #4 Tag v2.0" in undo
    assert f"\n  ● #2 Write the changelog  @{CODEX}\n" in undo.rpartition("ann runs punch undo ")[2]
    assert len(re.findall(r"\nkill -9 \d+, while both agents wait for a reply\n", kills)) == 2
    assert proof.count("  yes  ") == 4


@pytest.mark.parametrize(
    ("point", "number", "code"), [("a private daemon in ", signal.SIGTERM, 143), ("kill -9 ", signal.SIGINT, 130)]
)
def test_interrupt_leaves_nothing(tmp_path: Path, point: str, number: signal.Signals, code: int) -> None:
    env = environment(TERM="xterm", PYTHONPATH=str(DEMO), TMPDIR=str(tmp_path), HOME=str(tmp_path))
    with closing(Terminal(COMMAND, env, columns=100, rows=40)) as shown:
        shown.wait_for(point)
        assert leftovers(tmp_path) != []
        shown.process.send_signal(number)
        assert shown.finish() == code
        assert "Traceback" not in shown.shown
    assert leftovers(tmp_path) == []


def test_other_processes_are_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger, Home() as home:
        for pid in (stranger.pid, os.getpid()):
            with pytest.raises(ProcessLookupError, match=f"process {pid} is not a daemon of"):
                home.kill_daemon(pid)
        assert stranger.poll() is None
        stranger.communicate(b"\n", timeout=5)
