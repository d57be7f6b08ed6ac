"""Values of the contract for statuses and priorities. Imports little, so that commands start fast."""

from collections.abc import Mapping

STATUSES = ("pending", "in_progress", "paused", "completed", "failed")
FINISHED = frozenset({"completed", "failed"})
"""Statuses of a task that needs no more work."""

MCP_CLIENT = "punch mcp"
"""Client name that the MCP server sends in `daemon.hello`. Its connections are used by agents."""

PRIORITIES = ("low", "normal", "high", "urgent")


def is_heading(metadata: "Mapping[str, object] | None") -> bool:
    """Return whether a task's metadata marks it as an imported heading, which groups tasks and is not worked on."""
    return bool(metadata) and type(metadata.get("heading")) is int
