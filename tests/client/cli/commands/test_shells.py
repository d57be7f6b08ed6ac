import shutil
import subprocess
from pathlib import Path

import pytest

from punchlist.cli import main
from punchlist.cli.commands.shells import script
from punchlist.cli.table import COMMANDS, COMMON

SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_command_and_every_option(shell: str) -> None:
    text = script(shell)
    for command in COMMANDS:
        assert command.name in text
        for argument in (*command.arguments, *COMMON):
            for flag in argument.flags:
                wanted = flag.lstrip("-") if shell == "fish" else flag
                assert argument.positional or wanted in text, flag


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capfd.readouterr().out == script(shell)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_read_its_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(script(shell))
    subprocess.run([shell, "-n", str(path)], check=True, timeout=20)


def complete(tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    (tmp_path / "script").write_text(script("bash"))
    (tmp_path / "plan.md").write_text("")
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"""source {tmp_path}/script; cd {tmp_path}
        COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _punch; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True, timeout=20)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("punch", "und"), ["undo"]),
        (("punch", "-c", "site", "und"), ["undo"]),
        (("punch", "undo", "--pre"), ["--preview"]),
        (("punch", "list", "--status", "com"), ["completed"]),
        (("punch", "ls", "--status", "com"), ["completed"]),
        (("punch", "import", "pl"), ["plan.md"]),
        (("punch", "import", "x.md", "--format", "mark"), ["markdown"]),
        (("punch", "call", "daemon.st"), ["daemon.status"]),
        (("punch", "completion", "z"), ["zsh"]),
        (("punch", "done", "--conv"), ["--conversation"]),
        (("punch", "list", "--socket", "pl"), ["plan.md"]),
    ],
)
def test_bash_offers_what_fits(tmp_path: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(tmp_path, *words) == offered
