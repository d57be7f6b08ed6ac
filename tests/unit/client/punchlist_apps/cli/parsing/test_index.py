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
def test_commands_have_handlers_help_and_examples(command: Entry, capfd: pytest.CaptureFixture[str]) -> None:
    module = import_module(f"punchlist_apps.cli.commands.{command.module}")
    assert callable(getattr(module, f"run_{command.word}"))
    assert main([*command.name.split(), "--help"]) == 0
    output = capfd.readouterr().out
    assert command.usage.examples
    assert all(example in output for example in command.usage.examples)


@EVERY
def test_examples_parse(command: Entry) -> None:
    for example in command.usage.examples:
        command_line = next(part for part in re.split(r"[<>|]|&&", example) if re.search(r"\bpunch ", part))
        words = shlex.split(command_line)
        words = words[words.index("punch") + 1 :]
        assert parse(words).command == command.name


@EVERY
def test_options_are_unique_and_hide_no_common_one(command: Entry) -> None:
    flags = Counter(flag for argument in (*command.usage.arguments, *COMMON) for flag in argument.flags)
    assert [flag for flag, times in flags.items() if times > 1] == []


def test_every_declared_command_is_indexed_once() -> None:
    declared: list[tuple[str, str]] = []
    for path in Path(commands.__path__[0]).glob("[a-z]*.py"):
        module = import_module(f"punchlist_apps.cli.commands.{path.stem}")
        declared += [(name, path.stem) for name in module.COMMANDS]
    assert sorted(declared) == sorted((entry.word, entry.module) for entry in COMMANDS.values())


def test_names_and_aliases_are_unique() -> None:
    assert ALIASES == {
        **{"ls": "list", "lists": "list all", "set": "list set"},
        **{"stop": "daemon stop", "agent setup": "setup"},
    }
    every = [*COMMANDS, *ALIASES, *FORMER, *SUGGESTIONS, "help"]
    assert [name for name, times in Counter(every).items() if times > 1] == []


@pytest.mark.parametrize("suggestion", sorted({*SUGGESTIONS.values()}))
def test_suggestions_are_commands(suggestion: str) -> None:
    if not suggestion.startswith("--"):
        name = " ".join(word for word in suggestion.split() if word.islower() and not word.startswith("-"))
        options = {flag for argument in COMMANDS[name].usage.arguments for flag in argument.flags}
        assert {word for word in suggestion.split() if word.startswith("--")} <= options


@pytest.mark.parametrize(("former", "name"), sorted(FORMER.items()))
def test_former_name_runs_command_with_notice(former: str, name: str) -> None:
    words = shlex.split(COMMANDS[name].usage.examples[0].partition(f"punch {name}")[2])
    args = parse([former, *words])
    assert (args.command, args.former) == (name, former)
    assert parse([*name.split(), *words]).former == ""
