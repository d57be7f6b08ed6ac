"""What all watches over folders share: how often they check everything, and how they recognize a folder."""

import os

RECONCILE_S = 30.0
"""Seconds between two checks of everything."""

DEBOUNCE_MS = 60
STEP_MS = 10


def inode_of(path: str) -> int:
    """The number that tells a folder from another one put in its place; 0 if there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
