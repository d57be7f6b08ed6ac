"""What a forked child must not share with its parent: connections, claims, and what belongs to the parent's loop."""

import os
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_resets: "WeakKeyDictionary[Any, Callable[[Any], None]]" = WeakKeyDictionary()


def on_fork(thing: T, reset: Callable[[T], None]) -> None:
    """Call `reset(thing)` in every child forked by `os.fork`, right after the fork, as long as the thing lives.

    It runs where no other thread of the parent does: it must neither wait nor touch what is still the parent's.
    """
    _resets[thing] = reset


def _run_resets() -> None:
    for thing, reset in list(_resets.items()):
        reset(thing)


os.register_at_fork(after_in_child=_run_resets)
