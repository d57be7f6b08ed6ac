"""Parses a command line, runs its command from the table, and turns errors into exit codes."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from importlib import import_module

from punchlist.base.text import safe_block
from punchlist_apps.cli.parsing.index import COMMANDS, WAITING_OPTIONS
from punchlist_apps.cli.parsing.parser import parse
from punchlist_apps.cli.printing import exit_codes, failure
from punchlist_apps.common.terminal.style import write


def run(argv: Sequence[str], admit: Callable[[str, bool], None] = lambda _name, _waits: None) -> int:
    """Run one command line and return its exit code. Only a bug prints a traceback.

    Args:
        argv: The arguments, without the program's name.
        admit: Called before the command runs, with its name and whether it waits for something to happen.
    """
    command = ""
    failure.set_json_errors(_wants_json(argv))
    try:
        _check_text(argv)
        if argv and argv[0] == "complete":
            from punchlist_apps.cli.calling.completions import print_completions

            admit("complete", False)
            return print_completions(argv[1:])
        args = parse(argv)
        command = args.command or ""
        return _dispatch(args, admit)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else exit_codes.USAGE
    except BrokenPipeError:
        return exit_codes.OK
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except Exception as error:
        code = failure.show_exception(error, command)
        return _show_fault() if code is None else code


def _wants_json(argv: Sequence[str]) -> bool:
    """Return whether errors are printed as JSON.

    This doesn't use the parser, because it is also needed for parse errors.
    """
    words = argv[: argv.index("--")] if "--" in argv else argv
    return "--json" in words


def _show_fault() -> int:
    import traceback

    sys.stderr.write(safe_block(traceback.format_exc()))
    failure.show_error("internal_error", "this is a bug in punch; report it with the traceback above")
    return exit_codes.FAULT


def _check_text(argv: Sequence[str]) -> None:
    for number, text in enumerate(argv, 1):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise failure.UsageError(f"argument {number} is not UTF-8 text") from None


def _dispatch(args: Namespace, admit: Callable[[str, bool], None]) -> int:
    if args.command is None and args.version:
        return _print_version()
    from punchlist_apps.cli.calling.context import Context

    entry = COMMANDS[args.command or "list"]
    admit(entry.name, any(getattr(args, option, None) for option in WAITING_OPTIONS))
    module = import_module(f"punchlist_apps.cli.commands.{entry.module}")
    handler: Callable[[Context], int] = getattr(module, f"run_{entry.word}" if args.command else "run_alone")
    context = Context(args)
    if args.former:
        context.note(f"punch: `punch {args.former}` is now `punch {entry.name}`; the next version removes the old name")
    try:
        code = handler(context)
    finally:
        context.close()
        if context.truncation:
            failure.show_error("damaged", context.truncation)
    return exit_codes.REFUSED if context.truncation and code == exit_codes.OK else code


def _print_version() -> int:
    from punchlist import __version__
    from punchlist_schemas.build import build_stamp

    build = build_stamp(__version__).removeprefix(f"{__version__}+")
    write(f"punch {__version__} (build {build}, Python {sys.version.split()[0]})\n")
    return 0
