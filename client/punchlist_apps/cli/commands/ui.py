"""`punch ui`: all lists in a full-screen interface."""

import os
import sys
from pathlib import Path

from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION
from punchlist_apps.cli.printing.failure import StateError, UsageError, show_error
from punchlist_apps.common import extras

THEMES = ("auto", "dark", "light")
COMMANDS = {
    "ui": Usage(
        (
            flag("--read-only", text="allow no changes"),
            flag("--bell", text="ring when a task waits for approval"),
            Argument(
                ("--theme",), "colors: dark, light, or auto for those that fit the terminal (kept)", {"choices": THEMES}
            ),
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
    from punchlist_apps.ui.memory import Memory, find_path
    from punchlist_apps.ui.program import Setup
    from punchlist_apps.ui.theme import find_theme

    memory = find_path(os.environ)
    kept = Memory(memory)
    if args.theme and args.theme != kept.theme:
        kept.theme = args.theme
        kept.save()
    setup = Setup(
        options=context.options_of("punch ui"),
        glyphs=context.style.glyphs,
        conversation=name,
        actor=context.actor,
        owner=context.owner,
        read_only=args.read_only,
        keys=Path(args.keys) if args.keys else None,
        memory=memory,
        theme=find_theme(os.environ, 0) if kept.theme == "auto" else kept.theme,
        bell=args.bell,
    )
    try:
        app = PunchApp(setup)
    except BadKeys as error:
        raise UsageError(str(error)) from None
    app.run()
    return app.return_code or 0
