"""Reads a command line by what its command declares.

The plain forms are read here; argparse, which costs half of a bare interpreter's start, reads whatever else there is:
options in front of the command, joined short options, help, and all that has to be refused.
"""

import sys

from punchlist_apps.cli.parsing.arguments import COMMON
from punchlist_apps.cli.parsing.index import ALIASES, COMMANDS, GROUPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Sequence
    from typing import Any

    from punchlist_apps.cli.parsing.arguments import Argument
else:
    Namespace = type(sys.implementation)  # types.SimpleNamespace, without the import


def parse(argv: "Sequence[str]") -> "Namespace":
    """The arguments; `command` is the name of the command, None where there is none.

    Raises:
        SystemExit: Help was asked for, or the arguments make no sense (code 2).
    """
    if (plain := parse_plain(argv)) is not None:
        return plain
    from punchlist_apps.cli.parsing import parser

    return parser.parse(argv)


def parse_plain(argv: "Sequence[str]") -> "Namespace | None":
    """The same arguments as argparse would find, or None where argparse has to look."""
    count = 2 if len(argv) > 1 and argv[0] in GROUPS and not argv[1].startswith("-") else 1
    name = " ".join(argv[:count])
    entry = COMMANDS.get(ALIASES.get(name, name))
    if entry is None:
        return None
    declared = (*entry.usage.arguments, *COMMON)
    options = {flag: one for one in declared if not one.positional for flag in one.flags}
    given: dict[str, Any] = {"command": entry.name, "former": ""}
    for one in declared:
        given[_name(one)] = one.options.get("default", None if one.takes_value else False)
    try:
        words = _take_options(argv[count:], options, given)
        _take_positionals(words, [one for one in declared if one.positional], given)
        if any(one.options.get("required") and not given[_name(one)] for one in declared):
            raise _Unusual
    except Exception:  # whatever a type says to its text: argparse says it again, and how to write it
        return None
    return Namespace(**given)


class _Unusual(Exception):
    pass


def _take_options(argv: "Sequence[str]", options: "dict[str, Argument]", given: "dict[str, Any]") -> list[str]:
    """Note the options; what is left are the positional words, which must stand together."""
    words: list[str] = []
    ended = False
    rest = list(reversed(argv))
    while rest:
        word = rest.pop()
        if word.startswith("-"):
            ended = bool(words)
            _take_option(word, rest, options, given)
        elif ended:
            raise _Unusual
        else:
            words.append(word)
    return words


def _take_option(word: str, rest: list[str], options: "dict[str, Argument]", given: "dict[str, Any]") -> None:
    flag, equals, text = word.partition("=")
    if flag not in options or (equals and not flag.startswith("--")):
        raise _Unusual
    one = options[flag]
    name, action = _name(one), one.options.get("action")
    if not equals and one.takes_value and rest and not rest[-1].startswith("-"):
        equals, text = "=", rest.pop()
    if equals and action in (None, "append"):
        value = _value(one, text)
        given[name] = [*(given[name] or ()), value] if action else value
    elif not equals and action == "store_true":
        given[name] = True
    elif not equals and one.options.get("nargs") == "?":
        given[name] = one.options.get("const")
    else:
        raise _Unusual


def _take_positionals(words: list[str], declared: "Iterable[Argument]", given: "dict[str, Any]") -> None:
    for one in declared:
        count = one.options.get("nargs", 1)
        if count in ("*", "+"):
            if count == "+" and not words:
                raise _Unusual
            given[_name(one)] = [_value(one, word) for word in words]
            words = []
        elif words:
            given[_name(one)] = _value(one, words.pop(0))
        elif count != "?":
            raise _Unusual
    if words:
        raise _Unusual


def _value(one: "Argument", text: str) -> "Any":
    value = one.options.get("type", str)(text)
    if text == "--" or value not in one.options.get("choices", (value,)):
        raise _Unusual
    return value


def _name(one: "Argument") -> str:
    """The attribute, as argparse calls it: by the first long flag."""
    flag = next((flag for flag in one.flags if flag.startswith("--")), one.flags[0])
    return str(one.options.get("dest", flag.lstrip("-").replace("-", "_")))
