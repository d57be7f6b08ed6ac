"""Everything but the fast path: parse, dispatch by the table, and turn whatever goes wrong into an exit code."""

import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from punchlist.cli import exits, failure, parser
from punchlist.cli.look import write
from punchlist.text import safe_block


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code. A traceback is for faults of ours alone."""
    command = ""
    try:
        _check_text(argv)
        args = parser.parse(argv)
        command = args.command or ""
        return _dispatch(args)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else exits.USAGE
    except BrokenPipeError:
        return exits.OK
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except Exception as error:
        code = failure.tell_any(error, command)
        return _tell_fault() if code is None else code


def _tell_fault() -> int:
    sys.stderr.write(safe_block(traceback.format_exc()))
    failure.tell("internal_error", "that is a fault of punch's, please report it")
    return exits.FAULT


def _check_text(argv: Sequence[str]) -> None:
    for number, text in enumerate(argv, 1):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise failure.UsageError(f"argument {number} is not UTF-8 text") from None


def _dispatch(args: Namespace) -> int:
    if args.version:
        return _version()
    if args.command is None:
        write(parser.build().format_help())
        return 0
    from punchlist.cli.context import Context

    command = parser.command_named(args.command)
    module = import_module(f"punchlist.cli.commands.{command.module}")
    handler: Callable[[Context], int] = getattr(module, f"run_{command.name}")
    context = Context(args)
    try:
        code = handler(context)
    finally:
        context.close()
        if context.cut:
            failure.tell("damaged", context.cut)
    return exits.REFUSED if context.cut and code == exits.OK else code


def _version() -> int:
    from importlib.metadata import version

    write(f"punch {version('punchlist')} (Python {sys.version.split()[0]})\n")
    return 0
