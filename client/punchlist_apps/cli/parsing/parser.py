"""Builds argument parsers and help texts from the commands' declarations."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NoReturn

from punchlist_apps.cli.parsing.arguments import COMMON, Argument, flag
from punchlist_apps.cli.parsing.index import ALIASES, COMMANDS, FORMER, GROUPS, SECTIONS, SUGGESTIONS, Entry
from punchlist_apps.cli.printing import exit_codes
from punchlist_apps.cli.printing.failure import format_error
from punchlist_apps.common.terminal.style import detect_width, write

_EPILOG = f"""exit codes:
{exit_codes.TABLE}

environment: PUNCHLIST_CONVERSATION, PUNCHLIST_ACTOR, PUNCHLIST_SOCKET, PUNCHLIST_DATA_DIR, PUNCHLIST_AUTOSTART,
  PUNCHLIST_WARM, NO_COLOR

examples:
  punch                        the list, and what to do next
  punch add Write the lexer
  punch start 1; punch done 1
  punch watch
  punch help add; punch help daemon; punch help undo"""
_COMMON_ELSEWHERE = "common options: punch --help"
_REQUIRED = "the following arguments are required: "
VERSION = flag("--version", text="print the version")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter with a fixed width.

    Without one, argparse would import shutil and all archive formats to find the width.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=detect_width(os.environ, 1) - 2)


class Parser(argparse.ArgumentParser):
    """A parser whose errors have two lines: the problem with the nearest valid word, and how to get help."""

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED):
            missing = message.removeprefix(_REQUIRED)
            choices = next(
                (action.choices for action in self._actions if action.dest == missing and action.choices), ()
            )
            message = f"missing: {missing}" + (f"; choose from {', '.join(map(str, choices))}" if choices else "")
        self.exit(exit_codes.USAGE, format_error("usage", message, f"see: {self.prog} --help"))

    def _print_message(self, message: str, file: Any = None) -> None:
        # Bypass the buffer of sys.stdout, which would detect a closed pipe only at exit and turn it into exit code 120.
        if file is sys.stderr:
            sys.stderr.write(message)
        elif message:
            write(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            hint = _suggest(str(value), words, f"choose from {', '.join(words)}")
            raise argparse.ArgumentError(None, f"unknown {action.dest} {value!r}; {hint}")


def build_main_parser() -> Parser:
    width = _measure_names(entry for entries in SECTIONS.values() for entry in entries)
    sections = (_format_table(f"{title}:", entries, width) for title, entries in SECTIONS.items())
    groups = (
        f"  {f'{group} …':<{width}}  {about}: {', '.join(entry.word for entry in entries)}"
        for group, (about, entries) in GROUPS.items()
    )
    text = ("Task lists for AI agents and the people who work with them.", *sections, "\n".join(["groups:", *groups]))
    parser = _new_parser("punch", usage="punch [options] [COMMAND ...]", description="\n\n".join(text), epilog=_EPILOG)
    add_arguments(parser, (VERSION, *COMMON))
    return parser


def build_group_parser(group: str) -> Parser:
    about, entries = GROUPS[group]
    parser = _new_parser(
        f"punch {group}",
        usage=f"punch {group} COMMAND ...",
        description=_format_table(f"{about}:", entries, _measure_names(entries)),
        epilog=f"punch {group} COMMAND --help shows the arguments and examples of a command\n\n{_COMMON_ELSEWHERE}",
    )
    _add_common_arguments(parser)
    return parser


@cache
def build_command_parser(entry: Entry) -> Parser:
    _, further = GROUPS.get(entry.name, ("", ()))
    parts = [
        entry.summary,
        *([_format_table("further commands:", further, _measure_names(further))] if further else []),
    ]
    parser = _new_parser(
        f"punch {entry.name}",
        description="\n\n".join(parts),
        epilog="\n".join(["examples:", *(f"  {example}" for example in entry.usage.examples), "", _COMMON_ELSEWHERE]),
    )
    add_arguments(parser, entry.usage.arguments)
    _add_common_arguments(parser)
    return parser


def _new_parser(prog: str, **how: Any) -> Parser:
    return Parser(prog=prog, formatter_class=_Formatter, allow_abbrev=False, **how)


def _measure_names(entries: Iterable[Entry]) -> int:
    return max(len(entry.name) for entry in entries)


def _format_table(title: str, entries: Iterable[Entry], width: int) -> str:
    return "\n".join([title, *(f"  {entry.name:<{width}}  {entry.summary}" for entry in entries)])


def add_arguments(parser: Any, arguments: Iterable[Argument]) -> None:
    for argument in arguments:
        parser.add_argument(*argument.flags, help=argument.help.replace("%", "%%"), **argument.options)


def _add_common_arguments(parser: Parser) -> None:
    """Add the common options without help texts, because these would fill half of each command's help.

    `punch --help` shows them.
    """
    for argument in COMMON:
        parser.add_argument(*argument.flags, help=argparse.SUPPRESS, **argument.options)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    In the result, `command` is the name of the command or None, `former` is its former name if that was typed, and
    `typed` are the arguments.

    Raises:
        SystemExit: Help was printed, or the arguments are invalid (code 2).
    """
    place = _find_command(argv)
    front, rest = [word for word in argv[:place] if word != "--"], list(argv[place:])
    command, former = None, ""
    if not rest or not {"--version", "-h", "--help"}.isdisjoint(front):
        parser, rest = build_main_parser(), []
    elif rest[0] == "help":
        _print_topic(rest[1:])
        parser, front, rest = _build_help_parser(rest[1:]), ["--help"], []
    else:
        typed, target, rest = _split_command(rest)
        if isinstance(target, Entry):
            parser, command, former = build_command_parser(target), target.name, typed if typed in FORMER else ""
        else:
            parser, rest = build_group_parser(target), ["--help"]
    args, unknown = parser.parse_known_args(front + rest)
    if unknown and not any(word.startswith("-") for word in unknown) and _accepts_words(parser):
        # parse_known_args ends a list of positional arguments at the first option: punch add Buy -p high milk
        args, unknown = parser.parse_known_intermixed_args(front + rest)
    if unknown:
        options = {name: name for name in parser._option_string_actions}  # noqa: SLF001 - argparse has no public way
        near = next((_suggest(word.partition("=")[0], options, "") for word in unknown if word.startswith("--")), "")
        if len(unknown) == 1 and not unknown[0].startswith("-") and getattr(args, "space", "") is None:
            near = f"did you mean '--space {unknown[0]}'?"
        parser.error(f"unknown arguments: {' '.join(unknown)}{near and '; ' + near}")
    args.command, args.former, args.typed = command, former, [*argv]
    return args


def _accepts_words(parser: Parser) -> bool:
    """Return whether the command accepts a list of positional arguments that isn't a program with its own options."""
    return any(
        action.nargs in ("+", "*") and not action.option_strings and action.metavar != "COMMAND"
        for action in parser._actions  # noqa: SLF001 - as above
    )


def _print_topic(words: Sequence[str]) -> None:
    """If these words name a topic, print its page and exit."""
    from punchlist_apps.cli.parsing.topics import find_topic

    if (text := find_topic(" ".join(words))) is not None:
        write(text)
        raise SystemExit(0)


def _build_help_parser(words: Sequence[str]) -> Parser:
    if not words:
        return build_main_parser()
    _, target, _ = _split_command(words)
    return build_command_parser(target) if isinstance(target, Entry) else build_group_parser(target)


def _split_command(words: Sequence[str]) -> tuple[str, Entry | str, list[str]]:
    """Split words into the typed name, its command (or the group's name if the command is missing), and the rest.

    Common options may appear between the two words of a command, except after `list`, which has its own options.
    """
    first = words[0]
    if first not in GROUPS:
        return first, _find_entry(first), [*words[1:]]
    rest = words[1:]
    place = 0 if first in COMMANDS else _find_command(rest)
    front, rest = rest[:place], rest[place:]
    is_bare = not rest or rest[0].startswith("-") or not {"-h", "--help"}.isdisjoint(front)
    if is_bare:
        return first, COMMANDS.get(first, first), [*front, *rest]
    typed = f"{first} {rest[0]}"
    return typed, _find_entry(typed), [*front, *rest[1:]]


def _find_command(argv: Sequence[str]) -> int:
    """Return the index of the command, which may come after common options.

    Unknown options are rejected, because the value of one would be mistaken for the command.
    """
    known = {name: option.takes_value for option in (*COMMON, VERSION) for name in option.flags}
    known |= {"-h": False, "--help": False}
    place = 0
    while place < len(argv) and argv[place].startswith("-"):
        word = argv[place]
        if word == "--":
            return place + 1
        name, equals, _ = word.partition("=") if word.startswith("--") else (word[:2], "", "")
        if name not in known:
            hint = _suggest(name, known, f"options before the command: {', '.join(known)}")
            Parser(prog="punch").error(f"unknown option {name}; {hint}")
        place += 1 + (known[name] and not equals and word == name)
    return min(place, len(argv))


def _find_entry(name: str) -> Entry:
    if (entry := COMMANDS.get(ALIASES.get(name, FORMER.get(name, name)))) is not None:
        return entry
    group, _, word = name.rpartition(" ")
    same_word = next((entry.name for entry in COMMANDS.values() if entry.word == word), None)
    suggestion = SUGGESTIONS.get(word) or same_word
    known = [entry.word for entry in GROUPS[group][1]] if group else [*COMMANDS, *ALIASES, *GROUPS]
    prog = f"punch {group}".rstrip()
    hint = f"did you mean 'punch {suggestion}'?" if suggestion else _suggest(word, known, "", f"{prog} ")
    Parser(prog=prog).error(f"unknown command {name!r}{hint and '; ' + hint}")


def _suggest(word: str, words: Iterable[str], otherwise: str, prefix: str = "") -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(words), n=1)
    return f"did you mean '{prefix}{near[0]}'?" if near else otherwise
