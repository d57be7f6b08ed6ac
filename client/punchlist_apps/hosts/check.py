"""Checks the command in a host's configuration: starts the MCP server and lists its tools."""

import contextlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from punchlist.connection.readable import is_readable

TIMEOUT_S = 30.0
"""Timeout for a server to start and list its tools, in seconds."""

_VERSION = "2025-06-18"
_LAST_LINES = 3
_STOP_S = 5.0


class ServerError(Exception):
    """A server that doesn't work. `advice` is the server's own advice, or empty."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def list_tools(command: Sequence[str], env: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> list[str]:
    """Start a server without a daemon, return the names of its tools, and stop it.

    Raises:
        ServerError: The server can't be started, exits, or doesn't respond in time.
    """
    program = find_program(command[0], env)
    with tempfile.TemporaryFile() as errors:
        try:
            server = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**env, "PUNCHLIST_AUTOSTART": "0"},
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise ServerError(
                f"{program}: the Python in its first line doesn't exist",
                "reinstall punchlist there, or put a working punch before it in PATH",
            ) from error
        except OSError as error:
            raise ServerError(f"{program}: {error.strerror}") from error
        with server:
            try:
                return _request_tools(server, time.monotonic() + timeout_s)
            except (OSError, _ExitedError) as error:
                _stop(server)
                raise _read_error(command, server.returncode, errors) from error
            finally:
                _stop(server)


def find_program(name: str, env: Mapping[str, str]) -> str:
    """Return the executable for a name or path in a configuration."""
    path = env.get("PATH", os.defpath)
    if executable := shutil.which(name, path=path):
        return executable
    places = [name] if os.path.dirname(name) else [os.path.join(part, name) for part in path.split(os.pathsep) if part]
    for place in places:
        if os.path.isfile(place):
            raise ServerError(f"{place}: not executable", f"chmod +x {shlex.quote(place)}")
    raise ServerError(f"{name}: no such program")


class _ExitedError(Exception):
    """The server closed its output before it responded."""


def _request_tools(server: "subprocess.Popen[bytes]", deadline: float) -> list[str]:
    messages = _read_messages(server, deadline)
    client = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "punch setup", "version": "1"}}
    _send(server, {"id": 1, "method": "initialize", "params": client})
    _await_result(messages, 1)
    _send(server, {"method": "notifications/initialized"})
    _send(server, {"id": 2, "method": "tools/list", "params": {}})
    tools: list[dict[str, Any]] = _await_result(messages, 2).get("tools", [])
    if not tools:
        raise ServerError("it offers no tools")
    return [str(tool.get("name")) for tool in tools]


def _send(server: "subprocess.Popen[bytes]", message: dict[str, Any]) -> None:
    if server.stdin is None:
        raise _ExitedError
    with contextlib.suppress(BrokenPipeError):  # The server has exited; the reason is on standard error.
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()


def _await_result(messages: Iterator[dict[str, Any]], number: int) -> dict[str, Any]:
    for message in messages:
        if message.get("id") == number:
            if "error" in message:
                raise ServerError(f"it returns the error {message['error'].get('message')}")
            return message.get("result") or {}
    raise _ExitedError


def _read_messages(server: "subprocess.Popen[bytes]", deadline: float) -> Iterator[dict[str, Any]]:
    if server.stdout is None:
        return
    descriptor, rest = server.stdout.fileno(), b""
    while True:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0 or not is_readable(descriptor, remaining_s):
            raise ServerError("it does not respond in time")
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                head = line[:80].decode(errors="replace")
                raise ServerError(
                    f"it prints {head!r} to standard output, which must carry protocol messages only"
                ) from None
            if isinstance(message, dict):
                yield message


def _read_error(command: Sequence[str], code: int, errors: Any) -> ServerError:
    """Return the error and the advice that the server wrote to standard error."""
    errors.seek(0)
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    reasons = [index for index, line in enumerate(lines) if line.startswith("error: ")]
    if reasons:
        first = reasons[-1]
        return ServerError(lines[first].removeprefix("error: "), " ".join(lines[first + 1 :]))
    return ServerError(" ".join(lines[-_LAST_LINES:]) or f"{command[0]} exits with code {code}")


def _stop(server: "subprocess.Popen[bytes]") -> None:
    if server.stdin is not None:
        with contextlib.suppress(OSError):
            server.stdin.close()
    try:
        server.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        server.kill()
