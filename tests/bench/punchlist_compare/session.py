"""An MCP session over standard input and output, as a host opens it."""

import contextlib
import json
import os
import select
import subprocess
import time
from typing import Any, Self

from punchlist_compare.place import TIMEOUT_S, Place, UnmeasuredError, shorten

START_S = 60.0
"""Maximum time from the start of a server to its reply to tools/list, in seconds."""

END_S = 2.0
"""Time that a server has to end after its input was closed, in seconds."""

VERSION = "2025-06-18"
"""Protocol version that all peers speak."""


class Session:
    """A running MCP server.

    Attributes:
        started_s: Time from the start to the reply to tools/list.
        tools: The definitions in that reply.
    """

    def __init__(self, place: Place) -> None:
        """Start the server and read its tools.

        Raises:
            UnmeasuredError: It ended, sent an error, or was too slow.
        """
        begin = time.perf_counter()
        self._root = place.home.as_uri()
        self._last_id = 0
        self._input = b""
        self._errors = (place.home / "mcp-errors").open("w+b")
        self._child = subprocess.Popen(
            place.server,
            cwd=place.home,
            env=place.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )
        try:
            client = {"name": "compare", "version": "1"}
            self.request(
                "initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}, timeout_s=START_S
            )
            self._send({"method": "notifications/initialized"})
            self.tools: list[dict[str, Any]] = self.request("tools/list", {}, timeout_s=START_S)["tools"]
        except BaseException:
            self.close()
            raise
        self.started_s = time.perf_counter() - begin

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return the text that the model gets.

        Raises:
            UnmeasuredError: The tool reported an error.
        """
        result = self.request("tools/call", {"name": name, "arguments": arguments})
        text = "\n".join(block.get("text", "") for block in result.get("content", []))
        if result.get("isError"):
            raise UnmeasuredError(f"{name} failed: {shorten(text)}")
        return text

    def request(self, method: str, params: dict[str, Any], timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
        """Send a request and return its result.

        Raises:
            UnmeasuredError: The server ended, sent an error, or took too long.
        """
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        end = time.perf_counter() + timeout_s
        while True:
            message = self._receive(method, end, timeout_s)
            if "method" in message and "id" in message:
                self._answer(message)
            elif message.get("id") == self._last_id:
                if "error" in message:
                    raise UnmeasuredError(f"{method} failed: {shorten(message['error'].get('message', ''))}")
                return message["result"]

    def _answer(self, message: dict[str, Any]) -> None:
        if message["method"] == "roots/list":
            self._send({"id": message["id"], "result": {"roots": [{"uri": self._root, "name": "work"}]}})
        else:
            self._send({"id": message["id"], "error": {"code": -32601, "message": "The client can't do this."}})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        except BrokenPipeError:
            raise self._describe_end() from None

    def _receive(self, method: str, end: float, timeout_s: float) -> dict[str, Any]:
        assert self._child.stdout is not None
        while True:
            line, newline, rest = self._input.partition(b"\n")
            if newline:
                self._input = rest
                # Some servers also write log lines to standard output.
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        return message  # pyright: ignore[reportUnknownVariableType]
                continue
            if not select.select([self._child.stdout], [], [], max(0.0, end - time.perf_counter()))[0]:
                raise UnmeasuredError(f"{method} takes longer than {timeout_s:.0f} s")
            piece = os.read(self._child.stdout.fileno(), 1 << 16)
            if not piece:
                raise self._describe_end()
            self._input += piece

    def _describe_end(self) -> UnmeasuredError:
        self._errors.seek(0)
        return UnmeasuredError(f"the MCP server ended: {shorten(self._errors.read().decode('utf-8', 'replace'))}")

    def close(self) -> None:
        """Close the server's input, and kill the server if it doesn't end."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()
        try:
            self._child.wait(END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
        self._errors.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
