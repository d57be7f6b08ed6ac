"""The extras: whether what one brings is installed, and how to install it."""

import json
import shlex
import sys
from importlib.util import find_spec
from typing import Any

_MODULES = {
    "mcp": ("mcp", "mcp_types", "uvicorn"),
    "web": ("starlette", "uvicorn"),
    "ui": ("textual",),
    "shared": ("nats", "nkeys"),
    "postgres": ("asyncpg",),
}

MISSING = "the MCP server needs the extra mcp, which is not installed"
WEB_MISSING = "the web server needs the extra web, which is not installed"
SHARED_MISSING = "lists on several machines need the extra shared, which is not installed"
UI_MISSING = "the full screen needs the extra ui, which is not installed"


def is_installed(extra: str = "mcp") -> bool:
    """Whether what the extra is for could be run by this Python."""
    return all(find_spec(name) is not None for name in _MODULES[extra])


def install(extra: str = "mcp") -> str:
    """The one command that installs it, for this Python and from where punchlist itself came."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin: dict[str, Any] = json.loads(distribution("punchlist").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        origin = {}
    url = str(origin.get("url", ""))
    source = url.removeprefix("file://") if url.startswith("file://") else "punchlist"
    edit = ["-e"] if origin.get("dir_info", {}).get("editable") else []
    return shlex.join([sys.executable, "-m", "pip", "install", *edit, f"{source}[{extra}]"])
