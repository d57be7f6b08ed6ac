"""The applications of punchlist: each a folder, each built on the library `punchlist` alone."""
