"""A headless Neovim, driven over its RPC (MessagePack on standard input and output)."""

from pathlib import Path
from typing import Any

import msgspec

from punchlist_testing.editor_process import EditorProcess, environment

PLUGIN = Path(__file__).resolve().parents[3] / "editors" / "nvim"
ANSWER_S = 10.0
"""Timeout for a response, in seconds."""


class Editor(EditorProcess):
    """Neovim with the plugin and no other configuration.

    Args:
        socket: Path of the daemon's socket, which may not exist yet.
        directory: Working directory.
        plugin: Directory of the plugin.
        env: Additional environment variables.
    """

    def __init__(self, socket: str, directory: Path, plugin: Path = PLUGIN, env: dict[str, str] | None = None) -> None:
        command = ["nvim", "--headless", "--embed", "--clean", "-n", "--cmd", f"set runtimepath^={plugin}"]
        variables = environment(socket, directory / "home", **(env or {}))
        super().__init__(command, ANSWER_S, cwd=directory, env=variables)
        # Record notifications and questions; answer questions from `_G.answers`.
        self.lua("""
            vim.g.maplocalleader = "\\\\"
            _G.said, _G.asked, _G.answers = {}, {}, {}
            vim.notify = function(message) table.insert(_G.said, message) end
            local function answer(question, done)
                table.insert(_G.asked, question)
                local reply = table.remove(_G.answers, 1)
                vim.schedule(function() done(reply) end)
            end
            vim.ui.select = function(items, options, done) answer(options.prompt, done) end
            vim.ui.input = function(options, done) answer(options.prompt, done) end
        """)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call an API function and return its result."""
        self.send(method, *arguments)
        return self.receive()

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.call("nvim_exec_lua", code, list(arguments))

    def command(self, text: str) -> None:
        self.call("nvim_command", text)

    def keys(self, typed: str) -> None:
        self.lua("vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(..., true, true, true), 'mtx', false)", typed)

    def until(self, condition: str, *arguments: Any) -> None:
        code = f"local given = {{...}}; return vim.wait(8000, function() return {condition} end, 2)"
        if not self.lua(code, *arguments):
            raise AssertionError(f"{condition} {arguments}: {self.lines()}, said {self.said()}")

    def said(self) -> list[str]:
        return self.lua("return _G.said")

    def lines(self) -> list[str]:
        return self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")

    def write(self, lines: list[str], *, force: bool = False) -> None:
        """Replace the buffer's text and save it."""
        self.type(lines)
        self.command("write!" if force else "write")

    def type(self, lines: list[str]) -> None:
        """Replace the buffer's text without saving it."""
        self.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, ...); vim.bo.modified = true", lines)

    def shows(self, lines: list[str]) -> None:
        """Wait until the buffer consists of exactly these lines, all saved."""
        condition = "vim.deep_equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), given[1]) and not vim.bo.modified"
        self.until(condition, lines)

    def displays(self, lines: list[str]) -> None:
        """Wait until the buffer's lines, each followed by its virtual text, are these."""
        self.lua("""
            local space = vim.api.nvim_create_namespace("punchlist")
            function _G.displayed()
                local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
                for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })) do
                    local at = mark[2] + 1
                    for _, chunk in ipairs(mark[4].virt_text or {}) do lines[at] = lines[at] .. chunk[1] end
                end
                return lines
            end
        """)
        try:
            self.until("vim.deep_equal(_G.displayed(), given[1])", lines)
        except AssertionError as error:
            raise AssertionError(f"displays {self.lua('return _G.displayed()')}, not {lines}") from error

    def send(self, method: str, *arguments: Any) -> None:
        """Call an API function without waiting; `receive` returns its result."""
        self.write_bytes(msgspec.msgpack.encode([0, 0, method, list(arguments)]))

    def receive(self) -> Any:
        """Return the result of the last `send`."""
        unread = b""
        while True:
            unread += self.read_bytes()
            try:
                _, _, error, result = msgspec.msgpack.decode(unread)
            except msgspec.DecodeError:
                # Incomplete. Requests are sent one at a time, so no other message follows the response.
                continue
            assert error is None, error
            return result
