"""`punch ui`: all lists in a full-screen interface."""

import os
import sys
from pathlib import Path

from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION
from punchlist_apps.cli.printing.failure import StateError, UsageError, show_error
from punchlist_apps.common import extras

COMMANDS = {
    "ui": Usage(
        (
            flag("--read-only", text="allow no changes"),
            Argument(
                ("--keys",),
                'use key bindings from this TOML file, with lines such as start = "S"',
                {"metavar": "FILE"},
                "file",
            ),
        ),
        ("punch ui", "punch ui -c website", "punch ui --read-only"),
    ),
}


def run_ui(context: Context) -> int:
    args = context.args
    if not extras.is_installed("ui"):
        show_error("configuration", extras.UI_MISSING, extras.build_install_command("ui"))
        return CONFIGURATION
    # textual draws on standard error.
    if not (sys.stdin.isatty() and os.isatty(2)) or os.environ.get("TERM", "") in ("", "dumb"):
        raise StateError(
            "punch ui needs a terminal as standard input and standard error; to see a list anywhere: punch watch"
        )
    name = context.existing_conversation if args.conversation else os.environ.get("PUNCHLIST_CONVERSATION") or None
    _ = context.caller
    from punchlist_apps.ui.app import PunchApp
    from punchlist_apps.ui.keymap import BadKeys
    from punchlist_apps.ui.program import Setup

    keys = Path(args.keys) if args.keys else None
    options = context.options_of("punch ui")
    setup = Setup(options, context.style.glyphs, name, context.actor, context.owner, args.read_only, keys)
    try:
        app = PunchApp(setup)
    except BadKeys as error:
        raise UsageError(str(error)) from None
    app.run()
    return app.return_code or 0
