import pytest

from punchlist.cli import main
from punchlist.cli.exits import MEANINGS
from punchlist.cli.parser import parse
from punchlist.cli.table import COMMANDS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lst"], "did you mean 'list'?"),
        (["frobnicate"], "choose from add, list"),
        (["list", "--status", "complete"], "did you mean 'completed'?"),
        (["list", "--nonsense"], "--nonsense"),
        (["list", "--\x1b]52;c;eA==\x07\x9b\u202e"], r"unknown arguments: --\x1b]52;c;eA==\x07\x9b\u202e"),
        (["show"], "required: ID"),
        (["list", "--limit", "many"], "--limit"),
        (["edit", "3"], "nothing to change"),
        (["move", "3"], "one of --before, --after, --to-end"),
        (["move", "3", "--before", "1", "--to-end"], "one of --before, --after, --to-end"),
        (["add", "x", "--meta", "novalue"], "KEY=VALUE"),
        (["clear"], "--yes"),
        (["call"], "name a method"),
        (["call", "task.lst"], "did you mean task.list?"),
        (["call", "task.list", "[1]"], "NAME=VALUE"),
        (["call", "task.list", "{1"], "not a JSON object"),
        (["rpc"], "--stdio"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong_and_exits_with_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: usage: ")
    assert message in told.err
    assert "--help" in told.err


@pytest.mark.parametrize(
    ("words", "help_of"),
    [(["list", "--nonsense"], "punch list"), (["--nonsense"], "punch"), (["show"], "punch show"), (["lst"], "punch")],
)
def test_the_help_that_is_named_is_the_one_that_helps(
    words: list[str], help_of: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.endswith(f"\n  see: {help_of} --help\n")


def test_common_options_go_before_and_after_the_command() -> None:
    before = parse(["-c", "site", "--json", "list"])
    after = parse(["list", "-c", "site", "--json"])
    assert (before.conversation, before.json) == (after.conversation, after.json) == ("site", True)
    assert (parse(["list"]).conversation, parse(["list"]).json) == (None, False)


def test_help_and_version_exit_with_0(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main([]) == 0
    assert main(["--version"]) == 0
    shown = capfd.readouterr().out
    assert all(f"  {command.name} " in shown for command in COMMANDS)
    assert "punch 0" in shown
    assert all(f"\n  {code:<5}{meaning}\n" in shown for code, meaning in MEANINGS.items())
