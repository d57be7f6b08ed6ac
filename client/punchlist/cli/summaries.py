"""Lists, errors and servers in few words."""

from punchlist.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


def with_counts(errors: "Iterable[str]") -> "Iterable[str]":
    """Errors in the order in which they first came, each with how often it came."""
    times: dict[str, int] = {}
    for error in errors:
        times[error] = times.get(error, 0) + 1
    return (error if count == 1 else f"{error} ({count} times)" for error, count in times.items())


def product(space: "dict[str, Any]") -> str:
    """What runs a space, with its version."""
    name = "PostgreSQL" if space.get("server", "").startswith("postgres://") else "NATS"
    return f"{name} {safe(space.get('server_version', ''))}"


def nothing_left(failed: int, known: "Sequence[str]" = ()) -> str:
    """What is said of a list without unfinished tasks: how many failed, and how to try them again."""
    if not failed:
        return "all finished"
    if failed == 1 and known:
        return f"nothing left: 1 failed (punch reopen {safe(known[0])})"
    return f"nothing left: {failed} failed (punch list --status failed)"
