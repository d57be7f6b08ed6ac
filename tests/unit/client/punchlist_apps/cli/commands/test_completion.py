import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.cli import main
from punchlist_apps.cli.installing import shipped
from punchlist_apps.cli.parsing.arguments import COMMON
from punchlist_apps.cli.parsing.index import COMMANDS
from punchlist_testing.optional import needs
from punchlist_testing.terminal import Terminal, environment

GENERATE = Path(__file__).parents[6] / "completions/generate.py"
FILES = {"bash": "bash/punch", "zsh": "zsh/_punch", "fish": "fish/punch.fish"}
SHELLS = tuple(FILES)

Complete = Callable[..., list[str]]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Scripts generated from the current sources, by shell."""
    folder = tmp_path_factory.mktemp("checkout") / "completions"
    subprocess.run([sys.executable, GENERATE, folder], check=True, timeout=60)
    return {shell: folder / name for shell, name in FILES.items()}


@pytest.mark.parametrize("shell", SHELLS)
def test_script_has_every_command_and_option(shell: str, scripts: dict[str, Path]) -> None:
    text = scripts[shell].read_text("utf-8")
    for command in COMMANDS.values():
        assert command.word in text
        for argument in (*command.usage.arguments, *COMMON):
            for flag in argument.flags:
                wanted = flag.lstrip("-") if shell == "fish" else flag
                assert argument.is_positional or wanted in text, flag


@pytest.mark.parametrize("shell", SHELLS)
def test_command_prints_script(
    shell: str, scripts: dict[str, Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipped, "CHECKOUT", scripts["bash"].parents[2])
    assert main(["completion", shell]) == 0
    assert capfd.readouterr().out == scripts[shell].read_text("utf-8")


def test_missing_script_is_reported_with_advice(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "CHECKOUT", tmp_path)
    (tmp_path / "Makefile").touch()
    outcome = run("completion", "bash")
    assert (outcome.code, outcome.err) == (
        78,
        "error: completions/bash/punch is not part of this installation\n  build it: make setup\n",
    )


@pytest.mark.parametrize("shell", ["bash", *(pytest.param(name, marks=needs(name)) for name in ("zsh", "fish"))])
def test_shell_parses_script(shell: str, scripts: dict[str, Path]) -> None:
    subprocess.run([shell, "-n", scripts[shell]], check=True, timeout=20)


@pytest.fixture
def complete(tmp_path: Path, scripts: dict[str, Path]) -> Complete:
    """Returns bash's candidates for the last of the given words."""
    (tmp_path / "plan.md").write_text("")

    def complete(*words: str, **env: str) -> list[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        code = f"""source {scripts["bash"]}; cd {tmp_path}
            COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _shtab_punch; printf '%s\\n' "${{COMPREPLY[@]}}" """
        process = subprocess.run(
            ["bash", "-c", code], capture_output=True, text=True, check=True, timeout=20, env=environment(**env)
        )
        return process.stdout.split()

    return complete


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
        (("punch", "daemon", "call", "daemon.st"), ["daemon.status"]),
        (("punch", "completion", "z"), ["zsh"]),
        (("punch", "set", "auto"), ["auto_clear=never", "auto_clear=when_done", "auto_clear=idle"]),
        (("punch", "done", "--conv"), ["--conversation"]),
        (("punch", "list", "--socket", "pl"), ["plan.md"]),
    ],
)
def test_bash_completes_words(complete: Complete, words: tuple[str, ...], offered: list[str]) -> None:
    assert complete(*words) == offered


def with_punch(tmp_path: Path) -> str:
    """Return PATH with this checkout's `punch` first."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "punch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m punchlist "$@"\n')
    program.chmod(0o700)
    return f"{program.parent}:{os.environ['PATH']}"


def test_bash_completes_tasks_and_lists(punch: Any, tmp_path: Path, complete: Complete) -> None:
    punch("add", "a")
    punch("add", "b")
    punch("done", "1")
    punch("add", "c", "-c", "site")
    path = with_punch(tmp_path)
    assert complete("punch", "done", "", PATH=path) == ["2"]
    assert complete("punch", "done", "2", "", PATH=path) == ["2"]
    assert complete("punch", "show", "", PATH=path) == ["1", "2"]
    assert complete("punch", "-c", "site", "start", "", PATH=path) == ["1"]
    assert complete("punch", "add", "x", "-b", "", PATH=path) == ["2"]
    assert complete("punch", "list", "-c", "", PATH=path) == ["site", "default"]
    assert complete("punch", "list", "-c", "d", PATH=path) == ["default"]


def test_bash_completes_actors(punch: Any, tmp_path: Path, complete: Complete) -> None:
    punch("add", "a", "--actor", "ann")
    punch("queue", "claim", "-o", "claude-code/59aa02", "--actor", "claude-code/59aa02")
    path = with_punch(tmp_path)
    names = ["claude-code/59aa02", "ann"]
    assert complete("punch", "undo", "--of", "", PATH=path) == names
    assert complete("punch", "edit", "1", "--owner", "cl", PATH=path) == names[:1]
    assert complete("punch", "list", "-o", "", PATH=path) == names
    assert complete("punch", "assign", "1", "", PATH=path) == ["1", *names]


@pytest.fixture
def two_lists(punch: Any) -> None:
    for title in ("over", "milk: the [best] $one"):
        punch("add", title, "--actor", "anybody")
    punch("done", "1")
    punch("add", "elsewhere", "-c", "site")


@needs("fish")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("punch und", ["undo"]),
        ("punchlist und", ["undo"]),
        ("punch undo --pre", ["--preview"]),
        ("punch list --status com", ["completed"]),
        ("punch done ", ["2"]),
        ("punch show ", ["1", "2"]),
        ("punch -c site done ", ["1"]),
        ("punch list -c si", ["site"]),
        ("punch undo --of an", ["anybody"]),
    ],
)
@pytest.mark.usefixtures("two_lists")
def test_fish_completes_words(tmp_path: Path, scripts: dict[str, Path], line: str, offered: list[str]) -> None:
    code = f"source {scripts['fish']}; complete -C '{line}'"
    env = environment(PATH=with_punch(tmp_path), HOME=str(tmp_path))
    command = ["fish", "--no-config", "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20, env=env)
    assert process.stderr == ""
    assert [found.partition("\t")[0] for found in process.stdout.splitlines()] == offered


@needs("zsh")
@pytest.mark.parametrize("loaded", ["fpath", "eval"])
@pytest.mark.usefixtures("two_lists")
def test_zsh_completes_words(tmp_path: Path, scripts: dict[str, Path], loaded: str) -> None:
    load = {"fpath": f"fpath=({scripts['zsh'].parent} $fpath)", "eval": ""}[loaded]
    then = {"fpath": "", "eval": f'eval "$(cat {scripts["zsh"]})"'}[loaded]
    (tmp_path / ".zshrc").write_text(
        f"PS1='ready> '; {load}\nautoload -Uz compinit; compinit -u -D; {then}\nunset zle_bracketed_paste\n"
    )
    env = environment(PATH=with_punch(tmp_path), HOME=str(tmp_path), ZDOTDIR=str(tmp_path), TERM="xterm")
    shell = Terminal(["zsh", "-i"], env, columns=120, rows=40)
    try:
        shell.wait_for("ready> ")
        for line, shown in (
            ("punch und", ["punch undo"]),
            ("punchlist und", ["punchlist undo"]),
            ("punch undo --pre", ["--preview"]),
            ("punch list --status com", ["completed"]),
            ("punch done ", ["punch done 2"]),
            ("punch show ", ["1  -- over", "2  -- milk: the [best] $one"]),
            ("punch reopen 1 ", ["1  -- over", "2  -- milk: the [best] $one"]),
            ("punch -c site done ", ["done 1"]),
            ("punch list -c si", ["list -c site"]),
            ("punch undo --of an", ["--of anybody"]),
        ):
            shell.type(line + "\t")
            for text in shown:
                shell.wait_for(text)
            shell.type("\x15\n")
            shell.wait_for("ready> ")
    finally:
        shell.close()


@pytest.mark.parametrize(
    "words", [(), ("task",), ("list",), ("name",), ("task", "--", "done"), ("nonsense",), ("task", "--", "-c")]
)
def test_completion_without_candidates_is_silent(run: Any, words: tuple[str, ...]) -> None:
    outcome = run("complete", *words)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_completed_titles_are_escaped(punch: Any) -> None:
    punch("add", "evil\x1b[31m\u202e")
    assert punch("complete", "task", "--", "done").out == "1\tevil\\x1b[31m\\u202e\n"
