"""Functions that differ between Linux and macOS, in a module for each system.

`os_calls` is the module of the running system. Code outside of this package must not use names that only one system has
(tested). Both modules have the same functions. Those of macOS use calls that Linux has too where possible, so that
tests can run them on Linux. `atomic` replaces files atomically.
"""

import sys

if sys.platform == "darwin":
    from punchlist_schemas.system import macos as os_calls
else:
    from punchlist_schemas.system import linux as os_calls

__all__ = ["os_calls"]
