"""What every watch over folders shares: how often it looks at everything, and how it knows a folder again."""

import os

RECONCILE_S = 30.0
"""Seconds between two looks at everything."""

DEBOUNCE_MS = 60
STEP_MS = 10


def inode_of(path: str) -> int:
    """What tells a folder from another one that was put in its place; 0 if there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
