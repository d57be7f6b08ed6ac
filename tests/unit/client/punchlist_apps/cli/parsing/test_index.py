import re
import shlex
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from punchlist_apps.cli import commands, main
from punchlist_apps.cli.parsing.arguments import COMMON
from punchlist_apps.cli.parsing.index import ALIASES, COMMANDS, FORMER, SUGGESTIONS, Entry
from punchlist_apps.cli.parsing.parser import parse

EVERY = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())


@EVERY
def test_every_command_has_a_handler_and_help_with_examples(command: Entry, capfd: pytest.CaptureFixture[str]) -> None:
    module = import_module(f"punchlist_apps.cli.commands.{command.module}")
    assert callable(getattr(module, f"run_{command.word}"))
    assert main([*command.name.split(), "--help"]) == 0
    shown = capfd.readouterr().out
    assert command.usage.examples
    assert all(example in shown for example in command.usage.examples)


@EVERY
def test_the_examples_are_right(command: Entry) -> None:
    for example in command.usage.examples:
        ours = next(part for part in re.split(r"[<>|]|&&", example) if re.search(r"\bpunch ", part))
        words = shlex.split(ours)
        words = words[words.index("punch") + 1 :]
        assert parse(words).command == command.name


@EVERY
def test_no_option_is_there_twice_and_none_hides_a_common_one(command: Entry) -> None:
    flags = Counter(flag for argument in (*command.usage.arguments, *COMMON) for flag in argument.flags)
    assert [flag for flag, times in flags.items() if times > 1] == []


def test_every_command_that_a_module_declares_is_in_the_index_once() -> None:
    declared: list[tuple[str, str]] = []
    for path in Path(commands.__path__[0]).glob("[a-z]*.py"):
        module = import_module(f"punchlist_apps.cli.commands.{path.stem}")
        declared += [(name, path.stem) for name in module.COMMANDS]
    assert sorted(declared) == sorted((entry.word, entry.module) for entry in COMMANDS.values())


def test_names_and_aliases_are_each_for_one_command() -> None:
    assert ALIASES == {
        **{"ls": "list", "lists": "list all", "set": "list set"},
        **{"stop": "daemon stop", "agent setup": "setup"},
    }
    every = [*COMMANDS, *ALIASES, *FORMER, *SUGGESTIONS, "help"]
    assert [name for name, times in Counter(every).items() if times > 1] == []


@pytest.mark.parametrize("meant", sorted({*SUGGESTIONS.values()}))
def test_what_is_meant_can_be_typed(meant: str) -> None:
    if not meant.startswith("--"):
        name = " ".join(word for word in meant.split() if word.islower() and not word.startswith("-"))
        options = {flag for argument in COMMANDS[name].usage.arguments for flag in argument.flags}
        assert {word for word in meant.split() if word.startswith("--")} <= options


@pytest.mark.parametrize(("former", "name"), sorted(FORMER.items()))
def test_a_former_name_means_the_command_and_is_told(former: str, name: str) -> None:
    words = shlex.split(COMMANDS[name].usage.examples[0].partition(f"punch {name}")[2])
    args = parse([former, *words])
    assert (args.command, args.former) == (name, former)
    assert parse([*name.split(), *words]).former == ""
