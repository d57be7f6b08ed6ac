"""Addresses of resources: `punchlist://CONVERSATION/tasks` and `punchlist://CONVERSATION/events?after=SEQ`."""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

TEMPLATES = {"tasks": "punchlist://{conversation}/tasks", "events": "punchlist://{conversation}/events{?after}"}

_ADDRESS = re.compile(r"punchlist://([^/?#]{1,384})/(tasks|events)(?:\?after=([0-9]{1,16}))?")


class Address(NamedTuple):
    """A parsed address; `after` is a position in the log, for events."""

    conversation: str
    kind: str
    after: int


def parse_uri(uri: str) -> Address | None:
    """Parse an address, or return None if it isn't an address of this server's resources."""
    match = _ADDRESS.fullmatch(uri)
    if match is None or (match[2] == "tasks" and match[3] is not None):
        return None
    return Address(unquote(match[1]), match[2], int(match[3] or 0))


def format_tasks_uri(conversation: str) -> str:
    return f"punchlist://{quote(conversation, safe=':')}/tasks"
