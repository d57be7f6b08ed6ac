"""Keys that importers use in a task's metadata, and the part of the metadata to show to people."""

from collections.abc import Iterable, Mapping
from typing import Any

SOURCE = "source"
"""Origin of a task, such as `beads:bd-12`."""

IMPORTED = "imported"
"""Digests of the values that the last import gave a task.

They tell an import which values were changed here and which in the file, and identify a task that was renamed here by
its title in the file.
"""


def visible_items(metadata: "Mapping[str, Any]") -> "Iterable[tuple[str, Any]]":
    """Return the keys and values that are meaningful to people."""
    return ((key, value) for key, value in metadata.items() if key != IMPORTED)
