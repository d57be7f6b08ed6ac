"""What Linux and macOS do each in their own way: one function for each, twice, in a module for each system.

`os_calls` is the module of the system that this process runs on. Nothing outside of this package may name what only
one of them has (a test holds this). Both modules have the same functions; those of macOS use nothing that Linux lacks
where the calls of both allow it, so that the tests run them here. `atomic` writes files whole by these calls.
"""

import sys

if sys.platform == "darwin":
    from punchlist_schemas.system import macos as os_calls
else:
    from punchlist_schemas.system import linux as os_calls

__all__ = ["os_calls"]
