"""Writes lists as JSON: `punch export --format json`."""

from collections.abc import Sequence
from typing import Any

EXPORT_VERSION = 1


def build_export(conversation: dict[str, Any], tasks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return a conversation's list as the JSON value that `punch import` reads."""
    head = {name: conversation[name] for name in ("conversation", "title", "version") if conversation.get(name)}
    return {"format": "punchlist", "format_version": EXPORT_VERSION, **head, "tasks": list(tasks)}
