"""Generates the completion scripts for bash, zsh and fish from the declarations of the commands.

At each TAB, shells request task ids and names of lists, agents and people with `punch complete`. This takes only
slightly longer than starting Python.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, cast

import shtab

from punchlist_apps.cli.parsing.arguments import COMMON, Argument
from punchlist_apps.cli.parsing.index import COMMANDS, GROUPS, SECTIONS, Entry
from punchlist_apps.cli.parsing.parser import VERSION
from punchlist_apps.cli.parsing.settings import SETTINGS
from punchlist_schemas.methods import METHODS

HERE = Path(__file__).parent
FILES = {"bash": "bash/punch", "zsh": "zsh/_punch", "fish": "fish/punch.fish"}

ASKING = {
    "bash": """
_punch_ask() {
  local kind="$1" word="$2" id
  while IFS=$'\\t' read -r id _; do
    [[ "$id" == "$word"* ]] && echo "$id"
  done < <(punch complete "$kind" -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
}
_punch_task() { _punch_ask task "$1"; }
_punch_list() { _punch_ask list "$1"; }
_punch_name() { _punch_ask name "$1"; }
""",
    "zsh": """
_punch_ask() {
  local -a found
  found=("${(@f)$(punch complete $1 -- "${(@)punch_words}" 2>/dev/null | sed $'s/:/\\\\:/g; s/\\t/:/')}")
  _describe $1 found
}
_punch_task() { _punch_ask task }
_punch_list() { _punch_ask list }
_punch_name() { _punch_ask name }
""",
    "fish": """
function _punch_ask
  set -l words (commandline -opc)
  punch complete $argv[1] -- $words[2..] 2>/dev/null
end
""",
}
BOTH_PROGRAMS = {
    "bash": "\ncomplete -o bashdefault -F _shtab_punch punchlist\n",
    "zsh": "",
    "fish": "\ncomplete -c punchlist -w punch\n",
}
MENDED = {
    # The words before the subcommand name the list. They are saved here, because they are removed from `words` further
    # down.
    "_shtab_punch() {\n": '_shtab_punch() {\n  local -a punch_words; punch_words=("${(@)words[2,CURRENT-1]}")\n',
    # "(*):" is one argument, after which nothing is offered; "*:" is any number of them.
    '"(*)::': '"*:',
    '"(*):': '"*:',
    "#compdef punch\n": "#compdef punch punchlist\n",
    "compdef _shtab_punch -N punch\n": "compdef _shtab_punch -N punch punchlist\n",
}
"""Output of shtab for zsh → its replacement."""
COMPLETE: dict[str, Any] = {
    "file": shtab.FILE,
    **{
        kind: {"bash": f"_punch_{kind}", "zsh": f"_punch_{kind}", "fish": f"(_punch_ask {kind})"}
        for kind in ("task", "list", "name")
    },
}


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(prog="punch")
    _declare(whole, (VERSION, *COMMON))
    commands = whole.add_subparsers(metavar="COMMAND")
    for entries in SECTIONS.values():
        for entry in entries:
            one = _add(commands, entry, [entry.name, *(name for name in entry.aliases if " " not in name)])
            if entry.name in GROUPS:
                _add_group(one, entry.name)
    for group, (about, _) in GROUPS.items():
        if group not in COMMANDS:
            one = commands.add_parser(group, help=about, description=about)
            _declare(one, COMMON)
            _add_group(one, group)
    for entry in COMMANDS.values():
        for alias in entry.aliases:
            if " " in entry.name and " " not in alias:
                _add(commands, entry, [alias])
    return whole


def _add_group(parent: argparse.ArgumentParser, group: str) -> None:
    commands = parent.add_subparsers(metavar="COMMAND")
    for entry in COMMANDS.values():
        for name in (entry.name, *entry.aliases):
            if name.startswith(f"{group} "):
                _add(commands, entry, [name.removeprefix(f"{group} ")])


def _add(commands: Any, entry: Entry, names: list[str]) -> argparse.ArgumentParser:
    one = commands.add_parser(names[0], aliases=names[1:], help=entry.summary, description=entry.summary)
    _declare(one, (*entry.usage.arguments, *COMMON))
    return one


def _declare(to: argparse.ArgumentParser, arguments: tuple[Argument, ...]) -> None:
    for argument in arguments:
        options = dict(argument.options)
        if argument.complete == "method":
            # shtab doesn't escape dollar signs for fish, which then rejects the whole script.
            options["choices"] = tuple(name for name in METHODS if "$" not in name)
        if argument.complete == "setting":
            options["choices"] = tuple(f"{one.name}={value}" for one in SETTINGS for value in (one.values or ("",)))
        action: Any = to.add_argument(*argument.flags, help=argument.help.replace("%", "%%"), **options)
        if argument.complete in COMPLETE:
            action.complete = COMPLETE[argument.complete]


def script(shell: str) -> str:
    text = shtab.complete(parser(), shell=shell, preamble=cast("str", ASKING)).rstrip() + "\n" + BOTH_PROGRAMS[shell]
    for written, needed in MENDED.items() if shell == "zsh" else ():
        if written not in text:
            raise ValueError(f"shtab no longer writes {written!r}: see whether zsh still needs {needed!r}")
        text = text.replace(written, needed)
    return text


def main() -> None:
    """Write the scripts to the folder named by the argument (default: the folder of this file)."""
    folder = Path(*sys.argv[1:2] or [HERE])
    for shell, name in FILES.items():
        (path := folder / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(shell), "utf-8")


if __name__ == "__main__":
    main()
