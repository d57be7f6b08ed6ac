"""Processes that the measuring of coverage must leave alone."""

import os


def unmeasured() -> dict[str, str]:
    """Our environment for a process whose own modules are counted, or whose user may not write where we do."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
