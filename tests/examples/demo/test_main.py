import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import punchlist_demo.__main__ as demo
from punchlist_demo.home import DemoFailed
from punchlist_demo.stage import Stage
from punchlist_testing.terminal import Terminal, environment

DEMO = Path(__file__).parents[3] / "examples/demo"
COMMAND = [sys.executable, "-m", "punchlist_demo"]
CLAUDE, CODEX = "claude-code/7f3c1a", "codex/b210e4"


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


@pytest.fixture(scope="module")
def transcript(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the fast demo prints in a pipe; it succeeds and leaves nothing."""
    directory = tmp_path_factory.mktemp("fast")
    env = environment(PYTHONPATH=str(DEMO), TMPDIR=str(directory), HOME=str(directory))
    done = subprocess.run([*COMMAND, "--fast"], capture_output=True, text=True, timeout=50, env=env, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert leftovers(directory) == []
    return done.stdout


@pytest.fixture(scope="module")
def scenes(transcript: str) -> list[str]:
    """The parts of the transcript, each with its heading."""
    return transcript.split("\n\n")


def test_plain_transcript_fits_80_columns(transcript: str) -> None:
    assert "\x1b" not in transcript
    assert [line for line in transcript.splitlines() if len(line) > 80] == []
    assert " NO  " not in transcript


def test_each_agent_takes_its_own_task(scenes: list[str]) -> None:
    assert f"{CLAUDE} calls next()\n  Now #1: Fix the login\n" in scenes[1]
    assert f"{CODEX} calls next()\n  Now #2: Write the changelog\n" in scenes[2]
    assert f"  ● #1 Fix the login  @{CLAUDE}\n  ● #2 Write the changelog  @{CODEX}\n" in scenes[2]


def test_other_agents_task_is_refused(scenes: list[str]) -> None:
    refusal = f"  Refused: task 1 is being worked on by {CLAUDE}: take another one\n"
    assert f'{CODEX} calls update(id="1", status="completed")\n{refusal}' in scenes[2]


def test_note_reaches_the_agent(scenes: list[str]) -> None:
    ann, claude = scenes[3].split(f"{CLAUDE} calls next", 1)
    assert "ann runs punch note 3 " in ann
    assert "\n  Note by ann: on Windows 11 too: a customer waits for it\n" in claude


def test_only_one_agents_work_is_undone(scenes: list[str]) -> None:
    before, preview, undone = scenes[4].split("ann runs punch undo ")
    assert [line[:11] for line in before.splitlines()[-3:]] == ["  12  #4 ed", "  13  #6 ad", "  14  #5 de"]
    assert 'once undone:\n  restored #5 "Announce v2.0"\n  #4 "Tag v3.0": title put back\n' in preview
    assert "\n  ▸ #4 Tag v2.0" in undone
    assert "\n  ▸ #5 Announce v2.0" in undone
    assert "\n  ▸ #6 Close the milestone" in undone
    assert f"\n  ● #2 Write the changelog  @{CODEX}\n" in undone


def test_work_continues_over_two_kills(scenes: list[str]) -> None:
    killed = re.findall(r"\nkill -9 (\d+), while both agents wait for a reply\n", scenes[5])
    assert scenes[6].startswith("The proof: kill -9 {}, kill -9 {}, ".format(*killed))
    assert "\nrelease  12/12\n" in scenes[5]


def test_proof_covers_every_event(scenes: list[str]) -> None:
    assert ", 29 acknowledged changes, 42 events\n" in scenes[6]
    assert scenes[6].count("  yes  ") == 4


def test_last_line_names_the_next_step(scenes: list[str]) -> None:
    assert scenes[7:] == ["Now install it: uv tool install '.[mcp]', then punch setup claude-code\n"]


def fail_check(stage: Stage) -> None:
    stage.check("it holds", False)


def fail_call(_stage: Stage) -> None:
    raise DemoFailed("codex: Refused: no")


@pytest.mark.parametrize(
    ("scene", "shown"),
    [(fail_check, "   NO  it holds\n"), (fail_call, "  codex: Refused: no\n   NO  every step succeeds\n")],
)
def test_demo_ends_at_a_failed_scene(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], scene: Any, shown: str
) -> None:
    monkeypatch.setattr(demo, "Cast", lambda _home, stage: stage)  # pyright: ignore
    monkeypatch.setattr(demo, "SCENES", (scene, pytest.fail))
    assert demo.main(["--fast"]) == 1
    assert capfd.readouterr().out.endswith(shown)
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("point", "number", "code"), [("a private daemon in ", signal.SIGTERM, 143), ("kill -9 ", signal.SIGINT, 130)]
)
def test_interrupt_leaves_nothing(tmp_path: Path, point: str, number: signal.Signals, code: int) -> None:
    env = environment(TERM="xterm", PYTHONPATH=str(DEMO), TMPDIR=str(tmp_path), HOME=str(tmp_path))
    with closing(Terminal([*COMMAND, "--fast"], env, columns=100, rows=40)) as shown:
        shown.wait_for(point)
        assert leftovers(tmp_path) != []
        shown.process.send_signal(number)
        assert shown.finish() == code
        assert "Traceback" not in shown.shown
    assert leftovers(tmp_path) == []
