import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli.installing import shipped
from punchlist_testing.optional import needs
from punchlist_testing.terminal import Terminal, environment

GENERATE = Path(__file__).parents[6] / "completions/generate.py"
FILES = {"bash": ".bashrc", "zsh": ".zshrc"}
START = "autoload -Uz compinit; compinit -u -D; setopt prompt_subst; unset zle_bracketed_paste\n"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of completion scripts generated from the current sources."""
    folder = tmp_path_factory.mktemp("completions")
    subprocess.run([sys.executable, GENERATE, folder], check=True, timeout=60)
    return folder


@pytest.fixture
def env(home: Path, scripts: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment whose `punch` prints these scripts."""
    monkeypatch.setenv("PUNCHLIST_WARM", "0")
    (home / "bin").mkdir()
    program = home / "bin/punch"
    program.write_text(
        f"""#!/bin/sh
case "$1 $2" in 'completion '*) exec cat {scripts}/$2/*punch* ;; esac
exec {shipped.find_program()} "$@"
"""
    )
    program.chmod(0o700)
    path = f"{program.parent}:{os.environ['PATH']}"
    return environment(PATH=path, HOME=str(home), ZDOTDIR=str(home), TERM="dumb")


@pytest.mark.parametrize("shell", ["bash", pytest.param("zsh", marks=needs("zsh"))])
def test_shell_has_completion_prompt_and_aliases(punch: Any, home: Path, env: dict[str, str], shell: str) -> None:
    punch("add", "Write")
    start = START if shell == "zsh" else ""
    (home / FILES[shell]).write_text(f"{start}eval \"$(punch shell {shell})\"\nPS1='$(punch_prompt)ready> '\n")
    child = Terminal([shell, "-i"], env, columns=80, rows=40)
    try:
        child.wait_for("default  0/1 ready> ")
        for word in ("punch", "punchlist"):
            child.type(f"{word} und\t")
            child.wait_for(f"{word} undo")
            child.type("\x15\n")
            child.wait_for("ready> ")
        child.type("pd 1\n")
        child.wait_for("default  1/1 ready> ")
    finally:
        child.close()


@needs("fish")
def test_fish_has_completion_prompt_and_aliases(punch: Any, env: dict[str, str]) -> None:
    punch("add", "Write")
    code = "punch shell fish | source; punch_prompt; echo; complete -C 'punch und'; complete -C 'punchlist und'; pd 1"
    command = ["fish", "--no-config", "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env)
    assert process.stderr == ""
    assert [line.partition("\t")[0] for line in process.stdout.splitlines()[:3]] == ["default  0/1 ", "undo", "undo"]
    assert "✓ #1 Write" in process.stdout


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(name, marks=needs(name)) for name in ("zsh", "fish"))])
def test_prompt_is_silent_without_list(run: Any, home: Path, env: dict[str, str], shell: str) -> None:
    code = run("shell", shell).out + "false\npunch_prompt\necho $?\nrm bin/punch; punch_prompt; echo end"
    code = code.replace("$?", "$status") if shell == "fish" else code
    process = subprocess.run([shell, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=env)
    assert (process.stdout, process.stderr) == ("1\nend\n", "")


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(name, marks=needs(name)) for name in ("zsh", "fish"))])
def test_own_names_are_not_replaced(run: Any, env: dict[str, str], shell: str) -> None:
    own = "alias pl 'echo own'\n" if shell == "fish" else "pl() { echo own; }\n"
    code = f"{own}{run('shell', shell).out}\npl"
    process = subprocess.run([shell, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=env)
    assert process.stdout == "own\n"
