"""Harnesses that break things on purpose and look whether the promises of RELIABILITY.md hold.

Each is a module with a `run(options) -> figures`, a `make` target of its own for any seed and size, and a small size in
the test suite. They start real daemons (`python -m punchlistd`) and leave nothing behind.
"""
