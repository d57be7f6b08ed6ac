"""Keys of a task's metadata that importers keep there, and what of it people are shown."""

from collections.abc import Iterable, Mapping
from typing import Any

SOURCE = "source"
"""Where a task came from: `beads:bd-12`."""

IMPORTED = "imported"
"""Marks of the values that the last import gave a task.

An import separates by them what a person changed here from what changed in the file, and finds a task that was renamed
here by the title that it has in the file.
"""


def visible_items(metadata: "Mapping[str, Any]") -> "Iterable[tuple[str, Any]]":
    """Return the keys and values that say something to people."""
    return ((key, value) for key, value in metadata.items() if key != IMPORTED)
