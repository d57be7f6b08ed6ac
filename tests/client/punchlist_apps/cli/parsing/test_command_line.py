"""A command line that is read without argparse gives what argparse gives."""

import contextlib
import io
import os
import random
import shlex

import pytest

from punchlist_apps.cli.parsing import command_line, parser
from punchlist_apps.cli.parsing.arguments import COMMON, Argument
from punchlist_apps.cli.parsing.index import COMMANDS
from punchlist_testing.unmeasured import mostly_untraced

EXAMPLES = [example for one in COMMANDS.values() for example in one.usage.examples if example.startswith("punch ")]


def by_argparse(argv: list[str]) -> "dict[str, object] | None":
    """What argparse makes of it; None: it refuses."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        try:
            return vars(parser.parse(argv))
        except SystemExit:
            return None


def plain(argv: list[str]) -> "dict[str, object] | None":
    found = command_line.parse_plain(argv)
    return None if found is None else vars(found)


def same(found: "dict[str, object]", other: "dict[str, object] | None") -> bool:
    """Whether both say the same; times that are told from now on lie a moment apart."""
    if other is None or found.keys() != other.keys():
        return False
    later = {name for name in ("due", "after_date", "since", "at") if found.get(name) and other.get(name)}
    return all(found[name] == other[name] for name in found.keys() - later)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_help_mean_the_same_by_both(example: str) -> None:
    argv = shlex.split(example, comments=True)[1:]
    if not {"|", ">", "<", "&&", ";"}.isdisjoint(argv):
        argv = argv[: min(argv.index(sign) for sign in ("|", ">", "<", "&&", ";") if sign in argv)]
    found = plain(argv)
    assert found is None or same(found, by_argparse(argv))


@pytest.mark.parametrize(
    "line",
    [
        *(
            "next",
            "next --done",
            "next --done 3 --result x",
            "queue claim",
            "queue claim 1 2 --lease 2h",
            "edit 3 -t x --label a",
        ),
        *("add Write the lexer -p high --json", "move 5 --before 2", "agent prime -c x --session s", "ls -c work"),
        *("done 1 2 --result=x", "list --status pending --status failed", "daemon call task.get task=1"),
    ],
)
def test_the_commands_of_every_day_need_no_argparse(line: str) -> None:
    assert plain(line.split()) == by_argparse(line.split()) is not None


@pytest.mark.parametrize(
    "line",
    [
        *("", "help", "--json list", "lst", "show", "show 1 2", "list --nonsense", "list --limit many", "add -- -x"),
        *(
            "edit 3 -tx",
            "list --js",
            "queue claim 1 --json 2",
            "list -c",
            "list --json=1",
            "daemon rpc",
            "add x -p top",
            "done -1",
        ),
        *("add x --label", "list -h", "add x --title=y"),
    ],
)
def test_whatever_is_unusual_is_left_to_argparse(line: str) -> None:
    assert plain(line.split()) is None


def test_random_command_lines_mean_the_same_by_both() -> None:
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    known = 0
    for _ in mostly_untraced(3000, 200):
        entry = chance.choice(list(COMMANDS.values()))
        declared = [*entry.usage.arguments, *COMMON]
        parts = [_part(chance.choice(declared), chance) for _ in range(chance.randrange(5))]
        argv = [entry.name, *(word for part in parts for word in part)]
        found = plain(argv)
        if found is not None:
            known += 1
            assert same(found, by_argparse(argv)), argv
    assert known > 500


def _part(argument: Argument, chance: random.Random) -> list[str]:
    values = [*argument.options.get("choices", ()), "3", "2h", "a=1", "", "-", "--", "-1", "two words", "x,y", "8321"]
    word = chance.choice(values)
    if argument.positional:
        return [word]
    flag = chance.choice(argument.flags)
    return chance.choice([[flag], [flag, word], [flag, word], [f"{flag}={word}"], [flag, word, word]])
