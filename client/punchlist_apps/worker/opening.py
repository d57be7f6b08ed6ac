"""Opens the server of a session from the command line, directory and variables of its relay."""

import json
import logging
from argparse import Namespace
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, redirect_stderr
from io import StringIO
from typing import Any

import msgspec
from mcp.server import Server

from punchlist_apps.cli.commands.mcp import check_options
from punchlist_apps.cli.parsing.parser import parse
from punchlist_apps.cli.printing import exit_codes
from punchlist_apps.cli.printing.failure import show_exception
from punchlist_apps.mcp.agents import AgentMemory
from punchlist_apps.mcp.server_process import ServerProcess
from punchlist_apps.mcp.stdio import open_session
from punchlist_apps.mcp.updates import Feeds
from punchlist_apps.relay.frames import Hello

_log = logging.getLogger(__name__)


class Refused(Exception):
    """The session can't begin: exit code, and text for standard error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@asynccontextmanager
async def open_server(
    hello: Hello, pid: int, feeds: Feeds, memory: bytes, remember: Callable[[bytes], None]
) -> AsyncGenerator[Server[Any]]:
    """Yield the server of a session.

    Args:
        pid: The relay's process; the host is one of its ancestors.
        feeds: The worker's subscriptions to the daemon.
        memory: What the last worker remembered; empty for a new session.
        remember: Called with what the next worker needs to know.

    Raises:
        Refused: The command line is invalid.
    """
    process = ServerProcess(hello.env, hello.directory, pid)
    agents = _decode_memory(memory)
    args = _parse(hello.words)
    async with open_session(
        args,
        process,
        hello.session,
        feeds=feeds,
        is_resumed=hello.is_resumed,
        memory=agents,
        on_memory=lambda agents: remember(_encode_memory(agents)),
    ) as server:
        yield server


def _encode_memory(agents: AgentMemory) -> bytes:
    # msgspec encodes no file names that aren't text.
    return json.dumps(msgspec.to_builtins(agents)).encode()


def _decode_memory(memory: bytes) -> AgentMemory | None:
    """Return the memory of the last worker; None if it can't be read, such as that of a newer version."""
    try:
        return msgspec.convert(json.loads(memory), AgentMemory) if memory else None
    except ValueError as error:  # also msgspec's errors
        _log.warning("the memory of the last worker can't be read: %s", error)
        return None


def _parse(words: list[str]) -> Namespace:
    with redirect_stderr(StringIO()) as errors:
        try:
            args = parse(words)
            check_options(args)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else exit_codes.USAGE
        except Exception as error:
            shown = show_exception(error, "agent mcp")
            if shown is None:
                raise
            code = shown
        else:
            return args
    raise Refused(code, errors.getvalue())
