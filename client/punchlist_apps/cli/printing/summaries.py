"""Short summaries of errors and servers."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from punchlist.base.text import safe


def count_errors(errors: Iterable[str]) -> Iterable[str]:
    """Return each distinct error with its count, in the order of first occurrence."""
    return (error if count == 1 else f"{error} ({count} times)" for error, count in Counter(errors).items())


def format_server(space: dict[str, Any]) -> str:
    """Return the product and version of a space's server."""
    name = "PostgreSQL" if space.get("server", "").startswith("postgres://") else "NATS"
    return f"{name} {safe(space.get('server_version', ''))}"
