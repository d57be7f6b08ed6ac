import shlex
from collections import Counter
from importlib import import_module

import pytest

from punchlist.cli import fast, main
from punchlist.cli.parser import command_named, parse
from punchlist.cli.table import COMMANDS, COMMON, Argument, Command

EVERY = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


@EVERY
def test_every_command_has_a_handler_and_help_with_examples(
    command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"punchlist.cli.commands.{command.module}")
    assert callable(getattr(module, f"run_{command.name}"))
    assert main([command.name, "--help"]) == 0
    shown = capfd.readouterr().out
    assert command.examples
    assert all(example in shown for example in command.examples)


@EVERY
def test_the_examples_are_right(command: Command) -> None:
    for example in command.examples:
        words = shlex.split(example.partition("<")[0].partition(">")[0].partition("|")[0].partition("&&")[0])
        words = words[words.index("punch") + 1 :]
        assert command_named(parse(words).command) is command


@EVERY
def test_no_option_is_there_twice_and_none_hides_a_common_one(command: Command) -> None:
    flags = Counter(flag for argument in (*command.arguments, *COMMON) for flag in argument.flags)
    assert [flag for flag, times in flags.items() if times > 1] == []


def test_names_and_aliases_are_each_for_one_command() -> None:
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))
    assert command_named("ls") is command_named("list")


def test_the_kinds_of_an_argument() -> None:
    assert Argument(("title",), "").positional
    assert not Argument(("-t", "--title"), "").positional
    assert Argument(("--meta",), "", {"action": "append"}).takes_value
    assert not Argument(("--json",), "", {"action": "store_true"}).takes_value


def test_what_the_fast_path_understands_is_in_the_table_too() -> None:
    common = {flag for argument in COMMON for flag in argument.flags}
    reading = {
        flag for name in ("list", "show", "status") for one in command_named(name).arguments for flag in one.flags
    }
    known = {*fast._VALUES, *fast._FLAGS}  # pyright: ignore[reportPrivateUsage]
    assert known <= common | reading
