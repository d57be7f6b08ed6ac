"""The argument parser of one command, made from what its module declares, and the help of all of them."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from punchlist.cli.arguments import COMMON, Argument, flag
from punchlist.cli.exit_codes import MEANINGS, USAGE
from punchlist.cli.index import ALIASES, COMMANDS, GROUPS, MEANT, Entry
from punchlist.cli.style import terminal_width, write
from punchlist.text import safe

_CODES = "\n".join(f"  {code:<5}{meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"""exit codes:
{_CODES}

environment: PUNCHLIST_CONVERSATION, PUNCHLIST_SOCKET, PUNCHLIST_DATA_DIR, PUNCHLIST_AUTOSTART, NO_COLOR

examples:
  punch add Write the lexer
  punch start 1; punch done 1
  punch list
  punch watch
  punch help add"""
VERSION = flag("--version", text="print the version")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Given its width, it does not load shutil and the archive formats behind it, at each argument's declaration."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width(os.environ, 1) - 2)


class Parser(argparse.ArgumentParser):
    """Says what is wrong on one line, with the nearest word there is, and where help is."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        self.exit(USAGE, f"error: usage: {safe(message)}\n  see: {self.prog} --help\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        # Not through the buffer of sys.stdout: it would find a reader that has left only at exit (code 120).
        if file is sys.stderr:
            sys.stderr.write(message)
        elif message:
            write(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            hint = _nearest(str(value), words, f"choose from {', '.join(words)}")
            raise argparse.ArgumentError(None, f"there is no {action.dest} {value!r}; {hint}")


def everything() -> Parser:
    """The parser for what stands alone: its help lists all commands."""
    width = max(map(len, COMMANDS))
    groups = (
        "\n".join([f"{title}:", *(f"  {one.name:<{width}}  {one.summary}" for one in entries)])
        for title, entries in GROUPS.items()
    )
    parser = Parser(
        prog="punch",
        usage="punch [options] COMMAND ...",
        description="\n\n".join(["Task lists for AI agents and the people who work with them.", *groups]),
        epilog=_EPILOG,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    declare(parser, (VERSION, *COMMON))
    return parser


def of_command(entry: Entry) -> Parser:
    """The parser of one command."""
    parser = Parser(
        prog=f"punch {entry.name}",
        description=entry.summary,
        epilog="examples:\n" + "\n".join(f"  {example}" for example in entry.usage.examples),
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    declare(parser, entry.usage.arguments)
    declare(parser.add_argument_group("common options"), COMMON)
    return parser


def declare(parser: Any, arguments: Iterable[Argument]) -> None:
    """Add arguments to a parser or to a group of one."""
    for argument in arguments:
        parser.add_argument(*argument.flags, help=argument.help.replace("%", "%%"), **argument.options)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; `command` is the name of the command, None where there is none.

    Raises:
        SystemExit: Help was asked for, or the arguments make no sense (code 2).
    """
    place = _place_of_command(argv)
    front, rest = [word for word in argv[:place] if word != "--"], list(argv[place + 1 :])
    if place == len(argv) or "--version" in front or "-h" in front or "--help" in front:
        parser, command = everything(), None
    elif argv[place] == "help":
        parser, command = (of_command(_entry(rest[0])) if rest else everything()), None
        front, rest = ["--help"], []
    else:
        entry = _entry(argv[place])
        parser, command = of_command(entry), entry.name
    args, unknown = parser.parse_known_args(front + rest if command or not rest else front)
    if unknown:
        parser.error(f"unknown arguments: {' '.join(unknown)}")
    args.command = command
    return args


def _place_of_command(argv: Sequence[str]) -> int:
    """Where the command stands behind common options. An unknown one is refused: its value would be the command."""
    known = {name: one.takes_value for one in (*COMMON, VERSION) for name in one.flags} | {
        "-h": False,
        "--help": False,
    }
    place = 0
    while place < len(argv) and argv[place].startswith("-"):
        word = argv[place]
        if word == "--":
            return place + 1
        name, equals, _ = word.partition("=") if word.startswith("--") else (word[:2], "", "")
        if name not in known:
            hint = _nearest(name, known, f"before the command there are {', '.join(known)}")
            Parser(prog="punch").error(f"there is no option {name}; {hint}")
        place += 1 + (known[name] and not equals and word == name)
    return min(place, len(argv))


def _entry(word: str) -> Entry:
    """The command of this name or alias."""
    if (entry := COMMANDS.get(ALIASES.get(word, word))) is not None:
        return entry
    meant = MEANT.get(word)
    hint = f"did you mean {meant!r}?" if meant else _nearest(word, COMMANDS, "punch --help lists them")
    Parser(prog="punch").error(f"there is no command {word!r}; {hint}")


def _nearest(word: str, words: Iterable[str], otherwise: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(words), n=1)
    return f"did you mean {near[0]!r}?" if near else otherwise
