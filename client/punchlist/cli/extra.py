"""The extra `mcp`: whether what it brings is installed, and how to install it."""

from importlib.util import find_spec

_MODULES = ("mcp", "mcp_types", "uvicorn")

MISSING = "the MCP server needs the extra mcp, which is not installed"
INSTALL = "pip install '.[mcp]' in punchlist's source directory"
"""The advice: one command, wherever it is told."""


def is_installed() -> bool:
    """Whether `punch mcp` could be run by this Python."""
    return all(find_spec(name) is not None for name in _MODULES)
