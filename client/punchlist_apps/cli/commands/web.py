"""`punch web`: serve the lists over HTTP, and print links that sign in a browser."""

import errno
import os
import secrets
import socket
import webbrowser
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag, value
from punchlist_apps.cli.printing import qr_code, stored
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION, REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common import extras
from punchlist_apps.common.terminal.argument_types import parse_duration, parse_port
from punchlist_schemas.system.atomic import atomic_write

if TYPE_CHECKING:
    from punchlist_apps.common.http.keys import Keys

COMMANDS = {
    "web": Usage(
        (
            value(
                "--port",
                text="listen on this port of 127.0.0.1 and ::1 (default: 8322)",
                metavar="PORT",
                type=parse_port,
                default=8322,
            ),
            Argument(("--unix",), "listen on this Unix socket instead of a port", {"metavar": "PATH"}, "file"),
            value(
                "--allow-host",
                text="also accept requests for this host name, or with --link name it in the link; repeatable",
                metavar="NAME",
                action="append",
            ),
            value(
                "--idle-exit",
                text="exit after this long without a connection",
                metavar="TIME",
                type=parse_duration,
            ),
            flag("--open", text="open the page in a browser"),
            flag("--link", text="print a link that signs in one browser within a minute, and exit"),
            flag("--code", text="print six digits that sign in one browser within a minute, and exit"),
            flag("--qr", text="with --link: also draw the link as a QR code"),
            flag("--read-only", text="with --link, --code or --open: allow no changes by the browser"),
            value("--only", text="with --link, --code or --open: show the browser only this list", metavar="LIST"),
            value(
                "--user",
                text="with --link, --code or --open: show the browser only this user's lists",
                metavar="NAME",
            ),
            value(
                "--as",
                text="with --link, --code or --open: record changes as NAME (with --only or --user: web/ID)",
                metavar="NAME",
            ),
            value(
                "--for",
                text="with --link, --code or --open: keep the browser signed in this long (default: 30d)",
                metavar="TIME",
                type=parse_duration,
            ),
            flag("--verbose", text="print the chat agent's tools and calls to standard error"),
            flag("--revoke", text="invalidate all links and sign-ins, and write a new secret for scripts to web.token"),
        ),
        (
            "punch web --open",
            "punch web --link --read-only --only website",
            "punch web --link --only website --as ann",
            "punch web --link --qr",
            "punch web --code",
            "punch web --unix ~/web.sock",
            "punch web --revoke",
        ),
    ),
}

_SECRET = "web.token"
_USED = "web.used"
_TIMEOUT_S = 5.0
_MAX_NAME = 128
_ID_BYTES = 3
"""Length of the random id in the actor name `web/ID`, in bytes."""


def run_web(context: Context) -> int:
    """Serve until a signal arrives. With `--link`, `--code` or `--revoke`, do only that."""
    from msgspec import UNSET

    from punchlist_apps.common.http.codes import Codes
    from punchlist_apps.common.http.keys import SESSION_S, Keys, Scope
    from punchlist_apps.common.http.secret_file import SecretFile

    args = context.args
    secret = SecretFile(os.path.join(context.target.data_dir, _SECRET))
    if args.revoke:
        secret.rotate()
        stored.record(f"the new secret in {secret.path}")
        context.print_lines(
            ["all links and sign-ins are invalid now", f"the new secret for scripts is in {safe(str(secret.path))}"]
        )
        return 0
    name = _resolve_actor(args)
    if args.link and args.unix:
        raise UsageError(
            "a link can't contain a Unix socket; leave out --unix, and give the port forwarded by ssh -L as --port"
        )
    if (args.link or args.code) and secret.problem:
        show_error("configuration", secret.problem)
        return CONFIGURATION
    keys = Keys(secret, Path(context.target.data_dir, _USED))
    scope = Scope("ro" if args.read_only else "rw", args.only, args.user, name or UNSET)
    lasts_s = SESSION_S if vars(args)["for"] is None else max(1, vars(args)["for"] // 1000)

    def build_link(port: int, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{port}/#ticket={keys.issue_ticket(scope, lasts_s)}"

    if args.link or args.code:
        return _print_access(context, build_link, lambda: Codes(keys).issue(scope, lasts_s))
    if not extras.is_installed("web"):
        show_error("configuration", extras.WEB_MISSING, extras.build_install_command("web"))
        return CONFIGURATION
    secret.check()
    _serve(context, keys, build_link)
    return 0


def _resolve_actor(args: Namespace) -> str:
    """Return the actor of changes made through the link; empty for this user."""
    name = vars(args)["as"]
    is_limited = args.read_only or args.only or args.user or name is not None or vars(args)["for"]
    if is_limited and not (args.link or args.code or args.open):
        raise UsageError("--read-only, --only, --user, --as and --for need --link, --code or --open; add one")
    if args.qr and not args.link:
        raise UsageError("--qr draws a link; add --link")
    if name is None:
        # Each link gets its own actor, so that undo doesn't reverse changes made through another link.
        return f"web/{secrets.token_hex(_ID_BYTES)}" if (args.only or args.user) and not args.read_only else ""
    if not 0 < len(name := name.strip()) <= _MAX_NAME or not name.isprintable():
        raise UsageError(f"invalid name for --as; use 1 to {_MAX_NAME} printable characters")
    return name


def _print_access(context: Context, build_link: Callable[..., str], issue_code: Callable[[], str]) -> int:
    """Print a link, a code, or both."""
    from punchlist_apps.common.http.codes import TooManyTries

    args = context.args
    if args.link:
        link = build_link(args.port, *(args.allow_host or ())[:1])
        context.print_lines([link])
        if args.qr and not _draw(context, link):
            return CONFIGURATION
    if args.code:
        try:
            context.print_lines([issue_code()])
        except TooManyTries as error:
            show_error("refused", str(error))
            return REFUSED
    if not (args.unix or _is_served(args.port)):
        context.note(f"nothing listens on port {args.port} yet; start punch web within a minute, before this expires")
    return 0


def _draw(context: Context, link: str) -> bool:
    """Draw a link in a terminal. Return whether the library for this is installed."""
    if not extras.is_installed("web"):
        show_error("configuration", extras.WEB_MISSING, extras.build_install_command("web"))
        return False
    style = context.style
    if not style.moves:  # A pipe, or a terminal without colors.
        return True
    lines = qr_code.draw(link)
    if (columns := qr_code.count_columns(lines)) <= style.width:
        context.print_lines(lines)
    else:
        context.note(f"the QR code needs {columns} columns; this terminal has {style.width}")
    return True


def _serve(context: Context, keys: "Keys", build_link: Callable[[int], str]) -> None:
    args = context.args
    import anyio

    from punchlist_apps.chat.settings import BadSettings, build_model, load_settings
    from punchlist_apps.chat.trace import print_to_stderr
    from punchlist_apps.chat.usage import Limits
    from punchlist_apps.common.http.sockets import open_loopback_sockets, open_unix_socket, take_systemd_sockets
    from punchlist_apps.web.app import Setup
    from punchlist_apps.web.serve import serve

    try:
        settings = load_settings(os.environ)
        model = build_model(settings, os.environ)
    except BadSettings as error:
        raise UsageError(str(error)) from None
    try:
        inherited = take_systemd_sockets()
        sockets = inherited or ([open_unix_socket(args.unix)] if args.unix else open_loopback_sockets(args.port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            error.filename = args.unix or f"port {args.port}"
            error.strerror = "in use by another program; use another with --port"
        raise
    # With sockets from systemd, output goes to the journal, which must not contain a ticket.
    if not inherited:
        context.print_lines([f"listening on {safe(args.unix)}" if args.unix else build_link(args.port)])
    if args.open and not args.unix:
        _open(context, build_link(args.port))
    if args.verbose:
        print_to_stderr()
    options = context.options_of("punch web")
    options["timeout_s"] = _TIMEOUT_S
    setup = Setup(
        args.conversation or os.environ.get("PUNCHLIST_CONVERSATION") or "default",
        tuple(args.allow_host or ()),
        idle_s=None if args.idle_exit is None else args.idle_exit / 1000,
        model=model,
        limits=Limits(settings.turn_s, settings.max_turn_tokens, settings.max_day_tokens),
        person=context.actor,
    )
    anyio.run(serve, options, keys, sockets, setup)


def _is_served(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), _TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _open(context: Context, link: str) -> None:
    """Open a link in a browser by way of a private file, because other users can see a browser's arguments."""
    path = Path(context.target.data_dir, "web.html")
    page = f'<!doctype html><meta http-equiv="refresh" content="0;url={link}"><title>punchlist</title>'
    atomic_write(str(path), page.encode())
    path.chmod(0o600)
    if not webbrowser.open(path.as_uri()):
        context.note("no browser could be started; open the link above yourself")
