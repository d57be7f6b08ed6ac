"""The extra `mcp`: whether what it brings is installed, and how to install it."""

import json
import shlex
import sys
from importlib.util import find_spec
from typing import Any

_MODULES = ("mcp", "mcp_types", "uvicorn")

MISSING = "the MCP server needs the extra mcp, which is not installed"


def is_installed() -> bool:
    """Whether `punch mcp` could be run by this Python."""
    return all(find_spec(name) is not None for name in _MODULES)


def install() -> str:
    """The one command that installs it, for this Python and from where punchlist itself came."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin: dict[str, Any] = json.loads(distribution("punchlist").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    source = url.removeprefix("file://") if url.startswith("file://") else "punchlist"
    edit = ["-e"] if origin.get("dir_info", {}).get("editable") else []
    return shlex.join([sys.executable, "-m", "pip", "install", *edit, f"{source}[mcp]"])
