"""Finds the directory of the project that a request is for.

Most hosts start a server in the project, or name it in a variable. A host that starts its server in a plugin's
directory may name the project otherwise, in this order:

1. Codex: `sandboxCwd` in the request's `_meta`, which it sends to servers with the capability `SANDBOX_STATE`.
2. Codex in a git repository: the only workspace in the request's `_meta`.
3. Hosts of the handshake era: their only root (`roots/list`).
"""

import os
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote_to_bytes, urlsplit

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import ListRootsRequest, ListRootsResult

from punchlist_apps.mcp.elicitation import is_modern
from punchlist_apps.mcp.file_systems import Reachability
from punchlist_apps.mcp.server_process import ServerProcess

Context = ServerRequestContext[Any, Any]

SANDBOX_STATE = "codex/sandbox-state-meta"
"""Experimental capability, and member of `_meta`, for the state of Codex' sandbox."""

TURN = "x-codex-turn-metadata"
"""Member of `_meta` in which Codex describes its turn."""

_ROOTS_S = 5.0
"""Upper limit for the host's reply to `roots/list`, in seconds."""


class Directories:
    """Finds directories for the requests to one server."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._can_fetch_roots = True
        self._reachability = Reachability()

    async def find(self, context: Context) -> str:
        """Return the project's directory; "" if it is unknown.

        Raises:
            Problem: Its file system does not respond.
        """
        meta = dict(context.meta or {})
        directory = (
            self._process.project_directory
            or _read_sandbox_directory(meta)
            or _read_only_workspace(meta)
            or await self._fetch_only_root(context)
        )
        await self._reachability.check(directory)
        return directory

    async def _fetch_only_root(self, context: Context) -> str:
        capabilities = context.session.client_capabilities
        has_roots = capabilities is not None and capabilities.roots is not None
        if not has_roots or not self._can_fetch_roots or is_modern(context) or context.request is not None:
            return ""
        try:
            roots = (await context.session.send_request(ListRootsRequest(), ListRootsResult, _ROOTS_S)).roots
        except (MCPError, ValueError):
            self._can_fetch_roots = False  # A host that doesn't reply must not delay each call.
            return ""
        return _parse_file_url(str(roots[0].uri)) if len(roots) == 1 else ""


def _read_sandbox_directory(meta: Mapping[str, Any]) -> str:
    return _parse_file_url(_read_members(meta, SANDBOX_STATE).get("sandboxCwd"))


def _read_only_workspace(meta: Mapping[str, Any]) -> str:
    workspaces = _read_members(_read_members(meta, TURN), "workspaces")
    return _check_path(next(iter(workspaces))) if len(workspaces) == 1 else ""


def _read_members(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    members = value.get(name)
    return cast("dict[str, Any]", members) if isinstance(members, dict) else {}


def _parse_file_url(url: object) -> str:
    """Return the absolute path in a URL of a file on this machine; "" for anything else."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        return ""
    is_local_file = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return _check_path(os.fsdecode(unquote_to_bytes(parts.path))) if is_local_file else ""


def _check_path(path: str) -> str:
    """Return the path if it is absolute and valid; otherwise ""."""
    return path if path.startswith("/") and "\0" not in path else ""
