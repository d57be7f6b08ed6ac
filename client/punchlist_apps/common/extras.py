"""Optional dependencies: which extras are installed, and the command that installs another extra."""

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
    "web": ("segno", "starlette", "uvicorn"),
    "ui": ("textual",),
    "shared": ("nats", "nkeys"),
    "postgres": ("asyncpg",),
    "chat-sdk": ("agents",),
    "chatkit": ("chatkit", "agents", "starlette", "uvicorn"),
    "uvloop": ("uvloop",),
}
"""Extra → modules that it installs."""

MISSING = "the MCP server needs the extra mcp, which is not installed"
WEB_MISSING = "the web server needs the extra web, which is not installed"
SHARED_MISSING = "lists on several machines need the extra shared, which is not installed"
UI_MISSING = "the full screen needs the extra ui, which is not installed"


def is_installed(extra: str = "mcp") -> bool:
    """Return whether this Python has all modules of an extra."""
    return all(find_spec(name) is not None for name in MODULES[extra])


def build_install_command(extra: str = "mcp") -> str:
    """Return the command that adds an extra, using the tool and the source of this installation."""
    return _build_command([name for name in MODULES if name == extra or is_installed(name)], [extra])


def build_reinstall_command() -> str:
    """Return the command that reinstalls punchlist from its source with the currently installed extras."""
    return _build_command([name for name in MODULES if is_installed(name)], [], is_again=True)


def find_source_directory() -> str | None:
    """Return the directory that punchlist was installed from, or None if it wasn't installed from a directory."""
    origin = _read_origin()[0]
    return unquote(str(origin["url"]).removeprefix("file://")) if "dir_info" in origin and "url" in origin else None


def _build_command(every: list[str], added: list[str], *, is_again: bool = False) -> str:
    """Return the command that installs the extras `every`, or only `added` if the tool keeps the others.

    uv and pipx replace the requirements of a tool, so their commands repeat the installed extras.
    """
    origin, installer = _read_origin()
    edit = ["--editable"] if origin.get("dir_info", {}).get("editable") else []
    if _has("uv-receipt.toml"):
        again = ["--reinstall"] if is_again else []
        return shlex.join(["uv", "tool", "install", *again, *edit, _build_requirement(origin, every)])
    if _has("pipx_metadata.json"):
        return shlex.join(["pipx", "install", "--force", *edit, _build_requirement(origin, every)])
    words = [*(["-e"] if edit else []), _build_requirement(origin, added)]
    if find_spec("pip") is not None:
        again = ["--force-reinstall", "--no-deps"] if is_again else []
        return shlex.join([sys.executable, "-m", "pip", "install", *again, *words])
    if installer == "uv":  # `uv venv` creates environments without pip
        again = ["--reinstall-package", "punchlist"] if is_again else []
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, *again, *words])
    # The single file and the Debian package are replaced as a whole, so nothing can be added to them.
    return shlex.join(["pipx", "install", _build_requirement({}, every)])


def _read_origin() -> tuple[dict[str, Any], str]:
    """Return the source of this installation (PEP 610) and the program that installed it."""
    try:
        package = distribution("punchlist")
        origin = json.loads(package.read_text("direct_url.json") or "{}")
        return origin, (package.read_text("INSTALLER") or "").strip()
    except (PackageNotFoundError, ValueError):
        return {}, ""


def _build_requirement(origin: dict[str, Any], extras: list[str]) -> str:
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
