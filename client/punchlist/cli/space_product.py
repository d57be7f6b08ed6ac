"""What runs a space, for `punch space` and `punch doctor`."""

from typing import Any

from punchlist.text import safe


def product(space: dict[str, Any]) -> str:
    """Return the name and version of a space's server."""
    name = "PostgreSQL" if space.get("server", "").startswith("postgres://") else "NATS"
    return f"{name} {safe(space.get('server_version', ''))}"
