"""The words of the contract for states and urgency. Light: a command line that only offers them loads nothing else."""

from collections.abc import Mapping

STATUSES = ("pending", "in_progress", "paused", "completed", "failed")
FINISHED = frozenset({"completed", "failed"})
"""A task in one of these states is no longer work to be done."""

MCP_CLIENT = "punch mcp"
"""The name that the MCP server gives its connections in `daemon.hello`: agents speak over them."""

PRIORITIES = ("low", "normal", "high", "urgent")


def is_heading(metadata: "Mapping[str, object] | None") -> bool:
    """Return whether a task was imported as a heading, by its metadata: it holds tasks and is not worked on itself."""
    return bool(metadata) and type(metadata.get("heading")) is int
