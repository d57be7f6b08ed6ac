"""`punch setup HOST`: write, show or take back what a host's configuration has to say."""

import os
import shutil
import sys

from punchlist.cli import extra
from punchlist.cli.context import Context
from punchlist.cli.exits import REFUSED
from punchlist.cli.failure import tell
from punchlist.cli.safe import safe_block
from punchlist.hosts.catalog import Place, host_named
from punchlist.hosts.configure import Change, Configurator, SetupError


def run_setup(context: Context) -> int:
    """Plan all files first, show the difference, then write them; nothing is written if one can't be."""
    args = context.args
    host = host_named(args.host)
    place = Place(args.scope, os.getcwd(), os.environ, _punch(args.scope), args.conversation)
    files = Configurator(context.target.data_dir)
    try:
        changes = [(files.plan_removal if args.remove else files.plan)(wanted) for wanted in host.files(place)]
    except SetupError as error:
        tell("unreadable_file", str(error), "put it right first; nothing was changed")
        return REFUSED
    changed = [change for change in changes if change.before != change.after]
    if not args.print:
        for change in changes:
            (files.apply_removal if args.remove else files.apply)(change)
    if not (args.remove or extra.is_installed()):
        context.note(f"warning: {extra.MISSING}: {extra.INSTALL}")
    value = {"host": host.name, "files": [change.path for change in changes], "changed": [one.path for one in changed]}
    return context.answer(value, _lines(context, changed, files, host.title, host.then))


def _lines(context: Context, changed: list[Change], files: Configurator, title: str, then: str) -> list[str]:
    args = context.args
    if not changed:
        return [f"{title}: nothing to {'remove' if args.remove else 'change'}"]
    lines = [safe_block(line) for change in changed for line in change.diff()]
    if args.print:
        return lines
    if args.remove:
        return [*lines, "", f"{title}: removed"]
    kept = [f"  backup: {files.backup_of(one.path)}" for one in changed if one.before is not None]
    return [*lines, "", f"{title} is set up; {then}", *kept, f"  take it back: {_again(context)}"]


def _again(context: Context) -> str:
    return f"punch setup {context.args.host} --scope {context.args.scope} --remove"


def _punch(scope: str) -> str:
    """The command as a host should call it: by its path for this user, by its name in a file that others share."""
    if scope == "project":
        return "punch"
    beside = os.path.join(os.path.dirname(sys.executable), "punch")
    return shutil.which("punch") or (beside if os.path.exists(beside) else "punch")
