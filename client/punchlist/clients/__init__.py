"""The clients that `punchlist.connect()` and `connect_async()` return."""
