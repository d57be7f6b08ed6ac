"""Resets, in a forked child, objects that it must not share with its parent: connections, claims, loop-bound state."""

import os
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_resets: "WeakKeyDictionary[Any, Callable[[Any], None]]" = WeakKeyDictionary()


def on_fork(thing: T, reset: Callable[[T], None]) -> None:
    """Call `reset(thing)` in each child right after `os.fork`, as long as `thing` exists.

    The parent's other threads don't exist in the child, so `reset` must not wait, and must not touch the parent's loop.
    """
    _resets[thing] = reset


def _run_resets() -> None:
    for thing, reset in list(_resets.items()):
        reset(thing)


os.register_at_fork(after_in_child=_run_resets)
