"""Keys that importers use in a task's metadata, and the part of the metadata to show to people."""

from collections.abc import Iterable, Mapping
from typing import Any

SOURCE = "source"
"""Origin of a task, such as `beads:bd-12`."""

IMPORTED = "imported"
"""Digests of the values that the last import wrote to a task.

With them, an import detects which values were changed here and which in the file. They also identify, by its title in
the file, a task that was renamed here.
"""


def visible_items(metadata: "Mapping[str, Any]") -> "Iterable[tuple[str, Any]]":
    """Return the keys and values that are meaningful to people."""
    return ((key, value) for key, value in metadata.items() if key != IMPORTED)
