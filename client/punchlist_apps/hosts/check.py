"""Starts an MCP server by the command line that a host's configuration names, and asks it for its tools."""

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
"""How long a server may take from its start to the list of its tools, in seconds."""

_VERSION = "2025-06-18"
_LAST_LINES = 3
_END_S = 5.0


class ServerError(Exception):
    """A server that does not work; `advice` is the server's own advice, or empty."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def tools_of(command: Sequence[str], env: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> list[str]:
    """Start a server without a daemon, return the names of the tools that it offers, and end it.

    Raises:
        ServerError: It can't be started, ends, or does not answer in time.
    """
    program = program_of(command[0], env)
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
                f"{program}: the Python that its first line names is not there",
                "install punchlist there anew, or put a punch that works before it in PATH",
            ) from error
        except OSError as error:
            raise ServerError(f"{program}: {error.strerror}") from error
        with server:
            try:
                return _asked(server, time.monotonic() + timeout_s)
            except (OSError, _EndedError) as error:
                _end(server)
                raise _error_of(command, server.returncode, errors) from error
            finally:
                _end(server)


def program_of(name: str, env: Mapping[str, str]) -> str:
    """The executable that a name or path in a configuration stands for."""
    path = env.get("PATH", os.defpath)
    if found := shutil.which(name, path=path):
        return found
    places = [name] if os.path.dirname(name) else [os.path.join(part, name) for part in path.split(os.pathsep) if part]
    for place in places:
        if os.path.isfile(place):
            raise ServerError(f"{place}: not executable", f"chmod +x {shlex.quote(place)}")
    raise ServerError(f"{name}: no such program")


class _EndedError(Exception):
    """The server said nothing more."""


def _asked(server: "subprocess.Popen[bytes]", deadline: float) -> list[str]:
    answers = _answers(server, deadline)
    client = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "punch setup", "version": "1"}}
    _send(server, {"id": 1, "method": "initialize", "params": client})
    _result(answers, 1)
    _send(server, {"method": "notifications/initialized"})
    _send(server, {"id": 2, "method": "tools/list", "params": {}})
    tools: list[dict[str, Any]] = _result(answers, 2).get("tools", [])
    if not tools:
        raise ServerError("it offers no tools")
    return [str(tool.get("name")) for tool in tools]


def _send(server: "subprocess.Popen[bytes]", message: dict[str, Any]) -> None:
    if server.stdin is None:
        raise _EndedError
    with contextlib.suppress(BrokenPipeError):  # it has ended: what it said before tells why
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()


def _result(answers: Iterator[dict[str, Any]], number: int) -> dict[str, Any]:
    for answer in answers:
        if answer.get("id") == number:
            if "error" in answer:
                raise ServerError(f"it answers {answer['error'].get('message')}")
            return answer.get("result") or {}
    raise _EndedError


def _answers(server: "subprocess.Popen[bytes]", deadline: float) -> Iterator[dict[str, Any]]:
    if server.stdout is None:
        return
    descriptor, rest = server.stdout.fileno(), b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not is_readable(descriptor, left):
            raise ServerError("it does not answer in time")
        data = os.read(descriptor, 1 << 16)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            try:
                answer = json.loads(line)
            except ValueError:
                shown = line[:80].decode(errors="replace")
                raise ServerError(
                    f"it prints {shown!r} to standard output, which must carry protocol messages only"
                ) from None
            if isinstance(answer, dict):
                yield answer


def _error_of(command: Sequence[str], code: int, errors: Any) -> ServerError:
    """What the server wrote to standard error: the reason, and below it what to do."""
    errors.seek(0)
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    reasons = [index for index, line in enumerate(lines) if line.startswith("error: ")]
    if reasons:
        first = reasons[-1]
        return ServerError(lines[first].removeprefix("error: "), " ".join(lines[first + 1 :]))
    return ServerError(" ".join(lines[-_LAST_LINES:]) or f"{command[0]} ends with code {code}")


def _end(server: "subprocess.Popen[bytes]") -> None:
    if server.stdin is not None:
        with contextlib.suppress(OSError):
            server.stdin.close()
    try:
        server.wait(_END_S)
    except subprocess.TimeoutExpired:
        server.kill()
