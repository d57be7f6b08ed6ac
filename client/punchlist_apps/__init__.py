"""The applications of punchlist. Each one is a folder, and is built only on the library `punchlist`."""
