"""The dialects there are: every module of `punchlist.tools.dialects` that holds a `DIALECT`.

A module is named as its dialect; an underscore stands for a dash.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from punchlist.tools import dialects
from punchlist.tools.model import Dialect, Problem


def names() -> tuple[str, ...]:
    found = {module.name.replace("_", "-") for module in iter_modules(dialects.__path__)}
    return tuple(sorted(found, key=lambda name: (name != "native", name)))


@cache
def dialect(name: str) -> Dialect:
    """The dialect of this name."""
    if name not in names():
        raise Problem("not_found", f"there is no dialect {name[:60]!r}; there are: {', '.join(names())}")
    return import_module(f"{dialects.__name__}.{name.replace('-', '_')}").DIALECT
