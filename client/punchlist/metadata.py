"""Keys of a task's metadata that importers keep there, and what of it people are shown."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

SOURCE = "source"
"""Where a task came from: `beads:bd-12`."""

IMPORTED = "imported"
"""Marks of the values that the last import gave a task.

So an import tells what a person changed here from what changed in the file. Only tasks with a key in their file have
it, since others are known by their title.
"""


def shown(metadata: "Mapping[str, Any]") -> "Iterable[tuple[str, Any]]":
    """Return the keys and values that say something to people."""
    return ((key, value) for key, value in metadata.items() if key != IMPORTED)
