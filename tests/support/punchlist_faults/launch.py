"""The daemon with a fault planted: for controls that show that a harness sees what it looks for.

`python -m punchlist_faults.launch WHAT… -- OPTIONS…`; the product itself has no such options.
"""

import importlib
import sys
from collections.abc import Callable
from typing import Any


def _normal() -> None:
    """Commits are not flushed: SQLite's `synchronous = NORMAL`."""
    schema: Any = importlib.import_module("punchlistd.store.schema")
    changed = tuple(("synchronous", "NORMAL", 1) if row[0] == "synchronous" else row for row in schema.SETTINGS)
    schema.apply_settings.__defaults__ = (changed,)


def _small_checkpoints() -> None:
    """The log is moved out of the WAL every few commits, and indexed as often."""
    importlib.import_module("punchlistd.store.operations").CHECKPOINT_PAGES = 12  # pyright: ignore[reportAttributeAccessIssue]


def _upgrade() -> None:
    """A next version of the log, so that one of this version is upgraded."""
    schema: Any = importlib.import_module("punchlistd.store.schema")
    planted = "CREATE TABLE planted(x INTEGER) STRICT"
    schema.TABLES = (*schema.TABLES, planted)
    schema.UPGRADES = (*schema.UPGRADES, (planted,))


PLANTS: dict[str, Callable[[], None]] = {
    "normal": _normal,
    "small-checkpoints": _small_checkpoints,
    "upgrade": _upgrade,
}


def main() -> None:
    """Plant what was asked for, then be the daemon."""
    split = sys.argv.index("--")
    for name in sys.argv[1:split]:
        PLANTS[name]()
    sys.argv[1:] = sys.argv[split + 1 :]
    sys.exit(importlib.import_module("punchlistd.__main__").main())


if __name__ == "__main__":
    main()
