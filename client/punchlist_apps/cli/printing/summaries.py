"""Errors and servers in few words."""

from collections.abc import Iterable
from typing import Any

from punchlist.base.text import safe


def count_errors(errors: Iterable[str]) -> Iterable[str]:
    """Return errors by first occurrence, each with its count."""
    times: dict[str, int] = {}
    for error in errors:
        times[error] = times.get(error, 0) + 1
    return (error if count == 1 else f"{error} ({count} times)" for error, count in times.items())


def format_server(space: dict[str, Any]) -> str:
    """Return the product and version of a space's server."""
    name = "PostgreSQL" if space.get("server", "").startswith("postgres://") else "NATS"
    return f"{name} {safe(space.get('server_version', ''))}"
