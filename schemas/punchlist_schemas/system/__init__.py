"""Functions that differ between Linux and macOS, in one module for each system.

`os_calls` is the module of the running system. A test ensures that code outside this package uses no names that only
one system has. Both modules have the same functions. Where possible, the macOS functions use calls that Linux has too,
so that tests can run them on Linux. `atomic` replaces files atomically.
"""

import sys

if sys.platform == "darwin":
    from punchlist_schemas.system import macos as os_calls
else:
    from punchlist_schemas.system import linux as os_calls

__all__ = ["os_calls"]
