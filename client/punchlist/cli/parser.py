"""The argument parser, made from the table of commands."""

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from punchlist.cli.exits import MEANINGS, USAGE
from punchlist.cli.look import write
from punchlist.cli.table import COMMANDS, COMMON, Argument, Command
from punchlist.text import safe

_CODES = "\n".join(f"  {code:<5}{meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"""exit codes:
{_CODES}

environment: PUNCHLIST_CONVERSATION, PUNCHLIST_SOCKET, PUNCHLIST_DATA_DIR, PUNCHLIST_AUTOSTART, NO_COLOR

examples:
  punch add Write the lexer
  punch start 1; punch done 1
  punch list
  punch watch"""


class _Parser(argparse.ArgumentParser):
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
        if action.choices is None or value in action.choices:
            return
        words = [str(choice) for choice in action.choices]
        near = get_close_matches(str(value), words, n=1)
        what = "command" if isinstance(action.choices, dict) else action.dest
        hint = f"; did you mean {near[0]!r}?" if near else f"; choose from {', '.join(words)}"
        raise argparse.ArgumentError(None, f"there is no {what} {value!r}{hint}")


def build() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="punch",
        description="Task lists for AI agents and the people who work with them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    _add_all(parser.add_argument, COMMON, suppress=True)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser, title="commands")
    for command in COMMANDS:
        examples = "examples:\n" + "\n".join(f"  {example}" for example in command.examples)
        one = commands.add_parser(
            command.name,
            aliases=command.aliases,
            help=command.summary,
            description=command.summary,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _add_all(one.add_argument, command.arguments)
        _add_all(one.add_argument_group("common options").add_argument, COMMON, suppress=True)
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments with every common option present.

    Raises:
        SystemExit: Help was asked for, or the arguments make no sense (code 2).
    """
    args, unknown = build().parse_known_args(argv)
    if unknown:
        # By the command's own parser: it names the help that lists its options.
        _Parser(prog=f"punch {args.command or ''}".rstrip()).error(f"unknown arguments: {' '.join(unknown)}")
    for argument in COMMON:
        name = argument.flags[-1].lstrip("-").replace("-", "_")
        if not hasattr(args, name):
            setattr(args, name, None if argument.takes_value else False)
    return args


def command_named(name: str) -> Command:
    """The command of this name or alias."""
    return next(one for one in COMMANDS if name == one.name or name in one.aliases)


def _add_all(add: Callable[..., object], arguments: Sequence[Argument], *, suppress: bool = False) -> None:
    for argument in arguments:
        # Suppressed: an option given before the command's name must not be reset by the command's own default.
        default: dict[str, Any] = {"default": argparse.SUPPRESS} if suppress else {}
        add(*argument.flags, help=argument.help.replace("%", "%%"), **argument.options, **default)
