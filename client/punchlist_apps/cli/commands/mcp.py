"""`punch agent mcp`: serve the tools to an agent's host over MCP."""

import errno
import os
import signal
from argparse import Namespace
from typing import TYPE_CHECKING

from punchlist.base import host_variables
from punchlist.tools.catalog import offered
from punchlist.tools.model import Problem
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag, parse_names, value
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common import extras
from punchlist_apps.common.terminal.argument_types import parse_port
from punchlist_apps.relay import is_own, run

if TYPE_CHECKING:
    from punchlist_apps.mcp.server_process import ServerProcess

COMMANDS = {
    "mcp": Usage(
        (
            value(
                "--dialect",
                text="serve the tools of this dialect; repeatable (default: native)",
                metavar="DIALECT",
                action="append",
            ),
            value("--tools", text="serve only these tools (default: all)", metavar="NAME,NAME", type=parse_names),
            value("--user", text="serve only this user's lists (default: calls name the user)", metavar="NAME"),
            flag("--own", text="serve in this process, not in the one that all sessions share"),
            flag("--http", text="serve HTTP on this machine instead of standard input and output"),
            value(
                "--port",
                text="with --http: listen on this port (default: 8321)",
                metavar="PORT",
                type=parse_port,
                default=8321,
            ),
            Argument(
                ("--token-file",),
                "with --http: read the token from this file, created if missing",
                {"metavar": "FILE"},
                "file",
            ),
            Argument(
                ("--users",),
                "with --http: read tokens and the users allowed for each (default: one token for all)",
                {"metavar": "FILE"},
                "file",
            ),
            flag(
                "--private-webhooks",
                text="with --http: also send events to this machine, private networks and plain HTTP",
            ),
        ),
        ("punch agent mcp --dialect claude -c website", "punch agent mcp --http --port 8321"),
    ),
}

_MAX_NAME = 128


def run_mcp(context: Context) -> int:
    """Serve until the host disconnects, or with `--http` until a signal arrives."""
    args = context.args
    check_options(args)
    if not (args.http or args.own or is_own()) and (code := run(args.typed)) is not None:
        return code
    if not extras.is_installed():
        show_error("configuration", extras.MISSING, extras.build_install_command())
        return CONFIGURATION
    import anyio

    from punchlist_apps.mcp.http_auth import Token
    from punchlist_apps.mcp.serve import serve_http, serve_stdio
    from punchlist_apps.mcp.users import UsersFile

    process = _describe_process()
    if args.http:
        path = args.users or args.token_file or os.path.join(context.target.data_dir, "mcp.token")
        try:
            grants = UsersFile(path) if args.users else Token(path)
            grants.check()
        except ValueError as error:
            show_error("configuration", str(error))
            return CONFIGURATION
        context.note(f"serving http://127.0.0.1:{args.port}/mcp with the token in {path}")
        try:
            anyio.run(serve_http, args, process, grants)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                error.filename = f"port {args.port}"
                error.strerror = "in use by another program; use another with --port"
            raise
    else:
        # Restore the default action, because a handler couldn't interrupt the thread that is blocked reading standard
        # input.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        anyio.run(serve_stdio, args, process)
    return 0


def _describe_process() -> "ServerProcess":
    from punchlist_apps.mcp.server_process import ServerProcess

    try:
        directory = os.getcwd()
    except FileNotFoundError:
        directory = "/"  # It was deleted. The host's variables or options may name the list.
    return ServerProcess(host_variables.select(dict(os.environ)), directory, os.getpid())


def check_options(args: Namespace) -> None:
    """Check the options that the parser can't check.

    Raises:
        UsageError: An option is invalid, or two can't be combined.
    """
    try:
        offered(args.dialect or ("native",), args.tools)
    except Problem as problem:
        raise UsageError(problem.text) from None
    if args.private_webhooks and not args.http:
        raise UsageError("--private-webhooks needs --http")
    if args.users and (args.user or args.token_file or not args.http):
        raise UsageError("--users needs --http and can't be combined with --user or --token-file")
    if args.actor is not None and not (args.actor.isprintable() and 0 < len(args.actor) <= _MAX_NAME):
        raise UsageError(f"invalid --actor; use 1 to {_MAX_NAME} characters without control characters")
