"""Finds dialects: the modules of `punchlist.tools.dialects`, each with a `DIALECT`.

A module has the name of its dialect, with underscores instead of dashes.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from punchlist.tools import dialects
from punchlist.tools.model import Dialect, Problem


def names() -> tuple[str, ...]:
    """Return the names of all dialects, `native` first."""
    modules = {module.name.replace("_", "-") for module in iter_modules(dialects.__path__)}
    return tuple(sorted(modules, key=lambda name: (name != "native", name)))


@cache
def dialect(name: str) -> Dialect:
    """Return a dialect by its name."""
    if name not in names():
        raise Problem("not_found", f"there is no dialect {name[:60]!r}; available: {', '.join(names())}")
    return import_module(f"{dialects.__name__}.{name.replace('-', '_')}").DIALECT
