"""A real Neovim without a screen, driven over its own RPC (MessagePack on standard input and output)."""

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from punchlist.connection.readable import is_readable

PLUGIN = Path(__file__).resolve().parents[3] / "editors" / "nvim"
ANSWER_S = 10.0
"""How long an answer may take before a test gives up, in seconds."""


class Editor:
    """One Neovim with the plugin, and no other configuration.

    Args:
        socket: Where the daemon listens, or will.
        directory: The working directory.
        plugin: The directory of the plugin.
        env: Further variables.
    """

    def __init__(self, socket: str, directory: Path, plugin: Path = PLUGIN, env: dict[str, str] | None = None) -> None:
        (directory / "home").mkdir(parents=True, exist_ok=True)
        variables = {
            "HOME": str(directory / "home"),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "PUNCHLIST_SOCKET": socket,
            "PUNCHLIST_AUTOSTART": "0",
            "USER": "ann",
            **(env or {}),
        }
        command = ["nvim", "--headless", "--embed", "--clean", "-n", "--cmd", f"set runtimepath^={plugin}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory, env=variables
        )
        # What a person is told or asked is kept, and answered from `answers`.
        self.lua("""
            vim.g.maplocalleader = "\\\\"
            _G.said, _G.asked, _G.answers = {}, {}, {}
            vim.notify = function(message) table.insert(_G.said, message) end
            local function answer(question, done)
                table.insert(_G.asked, question)
                local given = table.remove(_G.answers, 1)
                vim.schedule(function() done(given) end)
            end
            vim.ui.select = function(items, options, done) answer(options.prompt, done) end
            vim.ui.input = function(options, done) answer(options.prompt, done) end
        """)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def call(self, method: str, *arguments: Any) -> Any:
        """The result of an API function.

        Raises:
            AssertionError: Neovim says that it failed, or says nothing in time.
        """
        self.send(method, *arguments)
        return self.receive()

    def lua(self, code: str, *arguments: Any) -> Any:
        """What a piece of Lua returns."""
        return self.call("nvim_exec_lua", code, list(arguments))

    def command(self, text: str) -> None:
        """Run a command line."""
        self.call("nvim_command", text)

    def keys(self, typed: str) -> None:
        """Type, in normal mode."""
        self.lua("vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(..., true, true, true), 'mtx', false)", typed)

    def until(self, condition: str, *arguments: Any) -> None:
        """Let Neovim work until a Lua expression of `...` holds."""
        code = f"local given = {{...}}; return vim.wait(8000, function() return {condition} end, 2)"
        if not self.lua(code, *arguments):
            raise AssertionError(f"{condition} {arguments}: {self.lines()}, said {self.said()}")

    def said(self) -> list[str]:
        """What a person was told so far."""
        return self.lua("return _G.said")

    def lines(self) -> list[str]:
        """The lines of the current buffer."""
        return self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")

    def write(self, lines: list[str], *, force: bool = False) -> None:
        """Make the buffer's text be these lines, as typing does, and `:w`."""
        self.type(lines)
        self.command("write!" if force else "write")

    def type(self, lines: list[str]) -> None:
        """Make the buffer's text be these lines, unsaved."""
        self.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, ...); vim.bo.modified = true", lines)

    def shows(self, lines: list[str]) -> None:
        """Wait until the buffer holds exactly these lines and nothing unsaved."""
        shown = "vim.deep_equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), given[1]) and not vim.bo.modified"
        self.until(shown, lines)

    def send(self, method: str, *arguments: Any) -> None:
        """Call an API function without waiting for its result: `receive` has it."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.msgpack.encode([0, 0, method, list(arguments)]))
        self._process.stdin.flush()

    def receive(self) -> Any:
        """The result of what was sent.

        Raises:
            AssertionError: Neovim says that it failed, or says nothing in time.
        """
        assert self._process.stdout is not None
        unread = b""
        while True:
            ready = is_readable(self._process.stdout.fileno(), ANSWER_S)
            data = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
            assert data, "Neovim says nothing any more"
            unread += data
            try:
                _, _, error, result = msgspec.msgpack.decode(unread)
            except msgspec.DecodeError:
                continue  # only a part of it is here: we ask one thing at a time, so nothing else comes behind it
            assert error is None, error
            return result
