r"""Generates manual pages from the parsers that also print `--help`, so that the two can't differ.

argparse-manpage expects one parser with subparsers. A separate parser for each command produces a page with a broken
heading (`.TH PUNCH ADD`), without the NAME line that apropos reads, and with all examples under COMMENTS.
"""

import argparse
import re
from collections.abc import Iterator

from punchlist_apps.cli.parsing.index import COMMANDS, GROUPS
from punchlist_apps.cli.parsing.parser import build_command_parser, build_group_parser, build_main_parser
from punchlistd.__main__ import build_parser as build_daemon_parser


def pages(version: str) -> dict[str, str]:
    """Return the source of each page by name."""
    parsers = {"punch": build_main_parser(), "punchlistd": build_daemon_parser()}
    parsers |= {f"punch-{group}": build_group_parser(group) for group in GROUPS}
    parsers |= {f"punch-{name.replace(' ', '-')}": build_command_parser(entry) for name, entry in COMMANDS.items()}
    return {name: "\n".join(_page(name, one, version)) + "\n" for name, one in parsers.items()}


def _page(name: str, parser: argparse.ArgumentParser, version: str) -> Iterator[str]:
    summary = (parser.description or "").partition("\n")[0]
    blocks = (parser.description or "").split("\n\n")
    yield f'.TH {escaped(name.upper())} 1 "" "punchlist {escaped(version)}" "punchlist"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {escaped(summary.rstrip('.:'))}"
    yield ".SH SYNOPSIS"
    yield escaped(" ".join(parser.format_usage().removeprefix("usage: ").split()))
    yield ".SH DESCRIPTION"
    for block in blocks:
        yield from _block(block, ".SS") if ":\n" in block else [".PP", escaped(block)]
    for group in parser._action_groups:  # noqa: SLF001  (argparse has no other way to ask)
        shown = [action for action in group._group_actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
        if shown:
            yield f".SH {escaped((group.title or 'options').upper())}"
        for action in shown:
            yield ".TP"
            yield f"\\fB{escaped(_called(action))}\\fR"
            yield escaped((action.help or "").replace("%%", "%"))
    for block in (parser.epilog or "").split("\n\n"):
        yield from _block(block, ".SH")
    others = (other for other in ("punch", "punchlistd") if other != name)
    yield ".SH SEE ALSO"
    yield ", ".join(f"\\fB{escaped(other)}\\fR(1)" for other in others)


def _called(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    value = f" {metavar or '|'.join(map(str, action.choices or ())) or action.dest.upper()}"
    if not action.option_strings:
        return metavar or action.dest
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else value)


def _block(text: str, heading: str) -> Iterator[str]:
    """Format a block as a section: `title:` with indented lines, or `title: text`."""
    title, _, body = text.partition(":")
    if not body.strip():
        return
    yield f"{heading} {escaped(title.upper() if heading == '.SH' else title)}"
    if body.startswith("\n"):
        yield ".nf"
        yield from (escaped(line.removeprefix("  ")) for line in body.strip("\n").split("\n"))
        yield ".fi"
    else:
        yield escaped(" ".join(body.split()))


def escaped(text: str) -> str:
    """Escape text for roff, so that backslashes, dashes, and dots at the start of a line have no special meaning."""
    quoted = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("…", "...")
    return re.sub(r"^(?=[.'])", r"\\&", quoted, flags=re.MULTILINE)
