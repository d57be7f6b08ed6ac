"""The words of the contract for states and urgency. Light: a command line that only offers them loads nothing else."""

STATUSES = ("pending", "in_progress", "paused", "completed", "failed")
FINISHED = frozenset({"completed", "failed"})
"""A task in one of these states is no longer work to be done."""

MCP_CLIENT = "punch mcp"
"""The name that the MCP server gives its connections in `daemon.hello`: agents speak over them."""

PRIORITIES = ("low", "normal", "high", "urgent")
