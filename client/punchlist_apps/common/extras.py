"""The extras: which are installed, and the command that installs another."""

import json
import os
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote

MODULES = {
    "mcp": ("mcp", "mcp_types", "uvicorn"),
    "web": ("starlette", "uvicorn"),
    "ui": ("textual",),
    "shared": ("nats", "nkeys"),
    "postgres": ("asyncpg",),
    "chat-sdk": ("agents",),
    "chatkit": ("chatkit", "agents", "starlette", "uvicorn"),
    "uvloop": ("uvloop",),
}
"""Extra → modules that it brings."""

MISSING = "the MCP server needs the extra mcp, which is not installed"
WEB_MISSING = "the web server needs the extra web, which is not installed"
SHARED_MISSING = "lists on several machines need the extra shared, which is not installed"
UI_MISSING = "the full screen needs the extra ui, which is not installed"


def is_installed(extra: str = "mcp") -> bool:
    """Whether this Python has all modules of an extra."""
    return all(find_spec(name) is not None for name in MODULES[extra])


def install(extra: str = "mcp") -> str:
    """Return the command that adds an extra to this installation, by the tool and from the source that made it."""
    return _command([name for name in MODULES if name == extra or is_installed(name)], [extra])


def reinstall() -> str:
    """Return the command that installs punchlist again from its source, with the extras that are installed."""
    return _command([name for name in MODULES if is_installed(name)], [], is_again=True)


def source_directory() -> str | None:
    """Return the directory that punchlist was installed from, None unless it was installed from one."""
    origin = _origin()[0]
    return unquote(str(origin["url"]).removeprefix("file://")) if "dir_info" in origin and "url" in origin else None


def _command(every: list[str], added: list[str], *, is_again: bool = False) -> str:
    """Return the command for `every` extra, or for those `added` where the tool keeps the others.

    uv and pipx replace the requirements of a tool, so their commands repeat the extras that are installed.
    """
    origin, installer = _origin()
    edit = ["--editable"] if origin.get("dir_info", {}).get("editable") else []
    if _has("uv-receipt.toml"):
        again = ["--reinstall"] if is_again else []
        return shlex.join(["uv", "tool", "install", *again, *edit, _requirement(origin, every)])
    if _has("pipx_metadata.json"):
        return shlex.join(["pipx", "install", "--force", *edit, _requirement(origin, every)])
    words = [*(["-e"] if edit else []), _requirement(origin, added)]
    if find_spec("pip") is not None:
        again = ["--force-reinstall", "--no-deps"] if is_again else []
        return shlex.join([sys.executable, "-m", "pip", "install", *again, *words])
    if installer == "uv":  # `uv venv` makes environments without pip
        again = ["--reinstall-package", "punchlist"] if is_again else []
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, *again, *words])
    # The one file and the Debian package: their directories are replaced as a whole, so nothing can be added to them.
    return shlex.join(["pipx", "install", _requirement({}, every)])


def _origin() -> tuple[dict[str, Any], str]:
    """Where punchlist was installed from (PEP 610), and by which program."""
    try:
        known = distribution("punchlist")
        return json.loads(known.read_text("direct_url.json") or "{}"), (known.read_text("INSTALLER") or "").strip()
    except (PackageNotFoundError, ValueError):
        return {}, ""


def _requirement(origin: dict[str, Any], extras: list[str]) -> str:
    url, repository = str(origin.get("url", "")), origin.get("vcs_info", {})
    bracket = f"[{','.join(extras)}]" if extras else ""
    if not url:
        return f"punchlist{bracket}"
    if url.startswith("file://") and not repository:
        return f"{unquote(url.removeprefix('file://'))}{bracket}"
    kind = f"{repository['vcs']}+" if "vcs" in repository else ""
    revision = f"@{repository['requested_revision']}" if "requested_revision" in repository else ""
    return f"punchlist{bracket} @ {kind}{url}{revision}"


def _has(name: str) -> bool:
    return os.path.exists(os.path.join(sys.prefix, name))
