"""The argument parser of one command, made from what its module declares, and the help of all of them."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from punchlist_apps.cli.parsing.arguments import COMMON, Argument, flag
from punchlist_apps.cli.parsing.index import ALIASES, COMMANDS, FORMER, GROUPS, MEANT, SECTIONS, Entry
from punchlist_apps.cli.printing.exit_codes import MEANINGS, USAGE
from punchlist_apps.cli.printing.failure import error_text
from punchlist_apps.common.terminal.style import detect_width, write

_CODES = "\n".join(f"  {code:<5}{meaning}" for code, meaning in MEANINGS.items())
_EPILOG = f"""exit codes:
{_CODES}

environment: PUNCHLIST_CONVERSATION, PUNCHLIST_ACTOR, PUNCHLIST_SOCKET, PUNCHLIST_DATA_DIR, PUNCHLIST_AUTOSTART,
  NO_COLOR

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
    """Given its width, it does not load shutil and the archive formats behind it, at each argument's declaration."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=detect_width(os.environ, 1) - 2)


class Parser(argparse.ArgumentParser):
    """Says what is wrong on one line, with the nearest word there is, and where help is."""

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED):
            missing = message.removeprefix(_REQUIRED)
            choices = next((one.choices for one in self._actions if one.dest == missing and one.choices), ())
            message = f"missing: {missing}" + (f"; choose from {', '.join(map(str, choices))}" if choices else "")
        self.exit(USAGE, error_text("usage", message, f"see: {self.prog} --help"))

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
    width = max(len(one.name) for entries in SECTIONS.values() for one in entries)
    sections = (_table(f"{title}:", entries, width) for title, entries in SECTIONS.items())
    groups = (
        f"  {f'{group} …':<{width}}  {about}: {', '.join(one.word for one in entries)}"
        for group, (about, entries) in GROUPS.items()
    )
    text = ("Task lists for AI agents and the people who work with them.", *sections, "\n".join(["groups:", *groups]))
    parser = _parser("punch", usage="punch [options] [COMMAND ...]", description="\n\n".join(text), epilog=_EPILOG)
    declare(parser, (VERSION, *COMMON))
    return parser


def of_group(group: str) -> Parser:
    about, entries = GROUPS[group]
    parser = _parser(
        f"punch {group}",
        usage=f"punch {group} COMMAND ...",
        description=_table(f"{about}:", entries, _width(entries)),
        epilog=f"punch {group} COMMAND --help shows the arguments and examples of one\n\n{_COMMON_ELSEWHERE}",
    )
    _declare_common(parser)
    return parser


def of_command(entry: Entry) -> Parser:
    _, further = GROUPS.get(entry.name, ("", ()))
    parts = [entry.summary, *([_table("further commands:", further, _width(further))] if further else [])]
    parser = _parser(
        f"punch {entry.name}",
        description="\n\n".join(parts),
        epilog="\n".join(["examples:", *(f"  {example}" for example in entry.usage.examples), "", _COMMON_ELSEWHERE]),
    )
    declare(parser, entry.usage.arguments)
    _declare_common(parser)
    return parser


def _parser(prog: str, **how: Any) -> Parser:
    return Parser(prog=prog, formatter_class=_Formatter, allow_abbrev=False, **how)


def _width(entries: Iterable[Entry]) -> int:
    return max(len(one.name) for one in entries)


def _table(title: str, entries: Iterable[Entry], width: int) -> str:
    return "\n".join([title, *(f"  {one.name:<{width}}  {one.summary}" for one in entries)])


def declare(parser: Any, arguments: Iterable[Argument]) -> None:
    for argument in arguments:
        parser.add_argument(*argument.flags, help=argument.help.replace("%", "%%"), **argument.options)


def _declare_common(parser: Parser) -> None:
    """Add the common options. The help of each command would be half of them, so `punch --help` alone shows them."""
    for argument in COMMON:
        parser.add_argument(*argument.flags, help=argparse.SUPPRESS, **argument.options)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; `command` is the name of the command, None where there is none.

    `former` is what was typed where that is the command's name of the version before, else empty.

    Raises:
        SystemExit: Help was asked for, or the arguments make no sense (code 2).
    """
    place = _place_of_command(argv)
    front, rest = [word for word in argv[:place] if word != "--"], list(argv[place:])
    command, former = None, ""
    if not rest or not {"--version", "-h", "--help"}.isdisjoint(front):
        parser, rest = everything(), []
    elif rest[0] == "help":
        _show_topic(rest[1:])
        parser, front, rest = _helped(rest[1:]), ["--help"], []
    else:
        typed, found, rest = _found(rest)
        if isinstance(found, Entry):
            parser, command, former = of_command(found), found.name, typed if typed in FORMER else ""
        else:
            parser, rest = of_group(found), ["--help"]
    args, unknown = parser.parse_known_args(front + rest)
    if unknown and not any(word.startswith("-") for word in unknown) and _takes_words(parser):
        # argparse ends a list of words at the first option: punch add Buy -p high milk
        args, unknown = parser.parse_known_intermixed_args(front + rest)
    if unknown:
        options = {name: name for name in parser._option_string_actions}  # noqa: SLF001 - argparse tells them nowhere else
        near = next((_nearest(word.partition("=")[0], options, "") for word in unknown if word.startswith("--")), "")
        if len(unknown) == 1 and not unknown[0].startswith("-") and getattr(args, "space", "") is None:
            near = f"did you mean '--space {unknown[0]}'?"
        parser.error(f"unknown arguments: {' '.join(unknown)}{near and '; ' + near}")
    args.command, args.former = command, former
    return args


def _takes_words(parser: Parser) -> bool:
    """Return True if the command takes a list of words, other than a program with options of its own."""
    return any(
        action.nargs in ("+", "*") and not action.option_strings and action.metavar != "COMMAND"
        for action in parser._actions  # noqa: SLF001 - as above
    )


def _show_topic(words: Sequence[str]) -> None:
    """Print the page that `punch help TOPIC` asks for, if these words name one; `help topics` lists them."""
    from punchlist_apps.cli.parsing.topics import text_of

    if (text := text_of(" ".join(words))) is not None:
        write(text)
        raise SystemExit(0)


def _helped(words: Sequence[str]) -> Parser:
    if not words:
        return everything()
    _, found, _ = _found(words)
    return of_command(found) if isinstance(found, Entry) else of_group(found)


def _found(words: Sequence[str]) -> tuple[str, Entry | str, list[str]]:
    """What the words begin with: the name as it was typed, its command (or the name of a bare group), and the rest.

    Common options may stand between the two words of a command, but for `list`, which has options of its own.
    """
    first = words[0]
    if first not in GROUPS:
        return first, _entry(first), [*words[1:]]
    rest = words[1:]
    place = 0 if first in COMMANDS else _place_of_command(rest)
    front, rest = rest[:place], rest[place:]
    is_bare = not rest or rest[0].startswith("-") or not {"-h", "--help"}.isdisjoint(front)
    if is_bare:
        return first, COMMANDS.get(first, first), [*front, *rest]
    typed = f"{first} {rest[0]}"
    return typed, _entry(typed), [*front, *rest[1:]]


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


def _entry(name: str) -> Entry:
    if (entry := COMMANDS.get(ALIASES.get(name, FORMER.get(name, name)))) is not None:
        return entry
    group, _, word = name.rpartition(" ")
    near = [one.name for one in COMMANDS.values() if word == one.word]
    meant = MEANT.get(word) or (near[0] if near else None)
    known = [one.word for one in GROUPS[group][1]] if group else [*COMMANDS, *ALIASES, *GROUPS]
    place = f"punch {group}".rstrip()
    hint = (
        f"did you mean 'punch {meant}'?" if meant else _nearest(word, known, f"{place} --help lists them", f"{place} ")
    )
    Parser(prog=place).error(f"there is no command {name!r}; {hint}")


def _nearest(word: str, words: Iterable[str], otherwise: str, before: str = "") -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(words), n=1)
    return f"did you mean '{before}{near[0]}'?" if near else otherwise
