"""What a forked child must not share with its parent: connections, claims, and what belongs to the parent's loop."""

import os
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_inherited: "WeakKeyDictionary[Any, Callable[[Any], None]]" = WeakKeyDictionary()


def on_fork(thing: T, let_go: Callable[[T], None]) -> None:
    """Call `let_go(thing)` in every child forked by `os.fork`, right after the fork, as long as the thing lives.

    It runs where no other thread of the parent does: it must neither wait nor touch what is still the parent's.
    """
    _inherited[thing] = let_go


def _in_child() -> None:
    for thing, let_go in list(_inherited.items()):
        let_go(thing)


os.register_at_fork(after_in_child=_in_child)
